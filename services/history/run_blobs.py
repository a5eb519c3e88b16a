"""Blobs of runs: what is too large for an item of the log, each under the run that refers to it (design section 3).

Theory of operation. The key is ``p/{namespace}/{hash of the workflow id}/{run}/{name}``, the name ``{sha256}-{hour}``:
what it holds, and the hour in which it was put. A blob is put before the write that refers to it, which may never come;
so one that is a day old and that nothing refers to is garbage (``blob_collector``). For that to be safe, whoever writes
refers to blobs that were put a short while ago, by the hour in their names, or that a commit of the same run refers to
already. Equal content in a later hour is another blob, so it does not matter that the earlier one is being deleted.
Nothing is shared between runs, so erasing a run erases all of it.
"""

import hashlib
import re
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ..common.blobs import BlobStore
from ..common.clock import Clock
from . import codec
from .commit import ExecutionKey

PREFIX = "p/"
"""Of the keys of all such blobs."""

GARBAGE_AFTER = timedelta(hours=26)
"""From then on a blob that nothing refers to is garbage: a day, and the hours of the name and of clocks apart."""

PREFIX_GARBAGE_AFTER = timedelta(days=8)
"""The same of blobs of a prefix: a part of one whose run is not there yet is kept for a week (``put_prefix``)."""

PUT_SOON = timedelta(hours=1)
"""A write that has not begun this long after its blobs were put begins again, with blobs of another hour."""

PUT_LATE = timedelta(hours=12)
"""A write that took longer than this puts its blobs again: they may have been taken for garbage before it landed."""

_FRESH_HOURS = 1
"""A blob of this hour or the one before may be referred to anew."""

_OF_PREFIX = "-b"
_HOUR = 3_600
_LONGEST_NAMESPACE = 300
_OTHER = re.compile(rb"[^A-Za-z0-9._-]")


class _Blob(msgspec.Struct, frozen=True, array_like=True):
    """``data`` and whose it is: so a collector finds the log that a key belongs to."""

    namespace: str
    workflow_id: str
    run_id: str
    data: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Blob)


class Owner(msgspec.Struct, frozen=True):
    """The run that a blob belongs to."""

    key: ExecutionKey
    run_id: str

    @property
    def prefix(self) -> str:
        """With which the keys of all blobs of the run begin."""
        namespace = quoted(self.key.namespace)
        if len(namespace) > _LONGEST_NAMESPACE:
            namespace = "=" + hashlib.blake2b(self.key.namespace.encode(), digest_size=16).hexdigest()
        workflow = hashlib.blake2b(self.key.workflow_id.encode(), digest_size=16).hexdigest()
        return f"{PREFIX}{namespace}/{workflow}/{quoted(self.run_id)}/"


def quoted(text: str) -> str:
    """As a part of a key: bytes that it may not have as ``=XX``."""
    return _OTHER.sub(lambda found: b"=%02X" % found[0][0], text.encode()).decode()


def hour_of(time: datetime) -> int:
    return int(time.timestamp()) // _HOUR


def put_at(name: str) -> int:
    """The hour in which the blob of that name was put. Raises ValueError for what is no such name."""
    _, _, hour = name.removesuffix(_OF_PREFIX).partition("-")
    return int(hour, 16)


def is_fresh(name: str, now: datetime) -> bool:
    """Whether something new may refer to it."""
    return abs(hour_of(now) - put_at(name)) <= _FRESH_HOURS


def garbage_from(name: str) -> int:
    """The hour from which on it is garbage, if nothing refers to it. Raises ValueError."""
    after = PREFIX_GARBAGE_AFTER if name.endswith(_OF_PREFIX) else GARBAGE_AFTER
    return put_at(name) + int(after.total_seconds()) // _HOUR


class PayloadLost(codec.UnreadableRecord):
    """A run refers to a blob that is not there. To call again does not help: somebody deleted it."""

    def __init__(self, owner: Owner, blob: str) -> None:
        super().__init__(
            f"run {owner.run_id!r} of workflow {owner.key.workflow_id!r} refers to the blob {blob!r}, which is not "
            "there; restore it (an earlier version, a backup), or terminate or reset the run"
        )
        self.owner = owner
        self.blob = blob


class RunBlobs:
    """Blobs by run and name, in any store of blobs."""

    def __init__(self, blobs: BlobStore, clock: Clock) -> None:
        self._blobs = blobs
        self._clock = clock

    def form(self, owner: Owner, data: bytes) -> bytes:
        """As it is stored: compressed, with the owner."""
        return codec.pack(_encoder.encode(_Blob(*owner.key, owner.run_id, data)))

    def name(self, form: bytes, *, of_prefix: bool = False) -> str:
        """The name that it has if it is put now."""
        tail = _OF_PREFIX if of_prefix else ""
        return f"{hashlib.sha256(form).hexdigest()}-{hour_of(self._clock.now()):x}{tail}"

    async def put(self, owner: Owner, name: str, form: bytes) -> None:
        """Raises StoreUnavailable."""
        await self._blobs.put(owner.prefix + name, form)

    async def get(self, owner: Owner, name: str) -> bytes:
        """The data. Raises BlobMissing, UnreadableRecord, StoreUnavailable."""
        key = owner.prefix + name
        blob = opened(await self._blobs.get(key))
        if (blob.namespace, blob.workflow_id) != owner.key or blob.run_id != owner.run_id:
            raise codec.UnreadableRecord(f"blob {key!r} is damaged: it says that it belongs to run {blob.run_id!r}")
        data: bytes = blob.data
        return data

    async def owner(self, key: str) -> Owner:
        """Whose blob that is. Raises BlobMissing, UnreadableRecord, StoreUnavailable."""
        blob = opened(await self._blobs.get(key))
        return Owner(ExecutionKey(blob.namespace, blob.workflow_id), blob.run_id)


def opened(form: bytes) -> Any:
    """Raises UnreadableRecord."""
    try:
        return _decoder.decode(codec.unpack(form))
    except msgspec.DecodeError as error:
        raise codec.UnreadableRecord(f"a blob does not fit this release: {error}") from error
