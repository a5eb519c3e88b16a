"""Payloads as objects: nearly all of them, in a world whose hours are so short that garbage is collected while runs
are under way; and what is behind references, read at the moment of a write."""

import contextlib
import functools
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, TypeVar
from unittest import mock

import msgspec
from stepwell.api.payloads import Payload

from stepwell_server.adapters.aws import backend, large_parts
from stepwell_server.entrypoints import aws_server
from stepwell_server.entrypoints.blob_collecting import keep_collecting
from stepwell_server.history import blob_collector, offload, run_blobs
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit
from stepwell_server.history.offload import REFERENCE, OffloadingLog
from stepwell_server.history.payload_fields import with_payloads
from stepwell_server.history.run_blobs import Owner
from tests.simulation.blobbed import TINY
from tests.simulation.violation import Violation

T = TypeVar("T")

HOUR = 8
"""Seconds of an hour, as far as objects are concerned."""

PASS_SECONDS = 24.0 * HOUR
"""After which the collector begins anew."""

_LONGEST_LOOK = 20.0
_decode = msgspec.msgpack.Decoder(Payload).decode


class _TinyLog(OffloadingLog):
    def __init__(self, *ports: Any, threshold: int) -> None:
        super().__init__(*ports)
        self._threshold = TINY


@contextlib.contextmanager
def payloads_are_objects() -> Iterator[None]:
    with mock.patch.object(backend, "OffloadingLog", _TinyLog):
        yield


@contextlib.contextmanager
def short_hours() -> Iterator[None]:
    """All that the rules of objects say in hours and days, in the same proportions."""

    def short(time: timedelta) -> timedelta:
        return time * HOUR / 3_600

    collecting = functools.partial(keep_collecting, interval=timedelta(seconds=7), seconds=5.0)
    with contextlib.ExitStack() as stack:
        for module, name, value in [
            (run_blobs, "_HOUR", HOUR),
            (run_blobs, "GARBAGE_AFTER", short(run_blobs.GARBAGE_AFTER)),
            (run_blobs, "PREFIX_GARBAGE_AFTER", short(run_blobs.PREFIX_GARBAGE_AFTER)),
            *((module, "PUT_SOON", short(run_blobs.PUT_SOON)) for module in (offload, large_parts)),
            *((module, "PUT_LATE", short(run_blobs.PUT_LATE)) for module in (offload, large_parts)),
            (blob_collector, "_LONGEST", timedelta(seconds=_LONGEST_LOOK)),
            (aws_server, "keep_collecting", collecting),
        ]:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


class ObjectReader:
    """Reads what references name, at once and without faults. A write that names what is not there is a finding."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self._objects = objects

    def commit(self, commit: Commit) -> Commit:
        own = self.whole(offload._own_parts(commit), Owner(commit.key, commit.run_id))
        closed = commit.closed
        if closed is not None:
            closed = self.whole(closed, Owner(commit.key, closed.run_id))
        return offload._with_parts(commit, own, closed)

    def item(self, item: ActivityItem) -> ActivityItem:
        return self.whole(item, offload._owner_of(item))

    def whole(self, value: T, owner: Owner) -> T:
        return with_payloads(value, lambda payload: self._payload(payload, owner))

    def _payload(self, payload: Payload, owner: Owner) -> Payload:
        name = payload.metadata.get(REFERENCE)
        if not name:
            return payload
        form = self._objects.get(owner.prefix + name)
        if form is None:
            raise Violation(f"{owner.key.workflow_id}: a write refers to object {name}, which is not there")
        return _decode(run_blobs.opened(form).data)
