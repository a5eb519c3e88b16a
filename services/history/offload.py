"""Payload offload: an ExecutionLog whose large payloads are blobs, and a small reference in the log (design section 3).

Theory of operation. What is written is encoded first, as it would be stored. Small parts hold no large payload: then
nothing is looked at, and nothing encoded twice. Else payloads that are larger than the threshold, compressed, become
blobs of the run that refers to them (``run_blobs``), put before the write. A reference is a payload with ``REFERENCE``
in its metadata. A user's own payload that looks like one becomes a blob as well, whatever its size; so every one in the
log is a reference, and nobody can forge one.

Whoever reads gets payloads, never references. Payloads that were read or written a short while ago are remembered by
their blob, and blobs by the payload itself (the object, which passes from state to state): so the state's payloads cost
nothing with each commit, and what passes on to another run is found to be that run's first, and copied.

What is left may still be too large for a store's item; that is the store's to deal with (``adapters/aws/large_parts``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
from stepwell.api import limits
from stepwell.api.events import HistoryEvent
from stepwell.api.payloads import Payload

from ..common.blobs import BlobMissing
from ..common.clock import Clock
from . import codec
from .activity_item import ActivityItem
from .commit import Commit, EncodedCommit, ExecutionKey
from .payload_fields import each_payload, with_payloads
from .ports import Conflict, EventsPage, ExecutionLog, Marker, StateTooLarge, VersionConflict
from .run_blobs import PUT_LATE, PUT_SOON, Owner, PayloadLost, RunBlobs
from .seen_payloads import SeenPayloads

T = TypeVar("T")

REFERENCE = "stepwell/blob"
"""Name of the metadata of a reference; its value is the blob's name."""

DEFAULT_THRESHOLD = 8 * 1024
MIN_THRESHOLD, MAX_THRESHOLD = 4 * 1024, 32 * 1024
"""Below, a blob costs more than the write units that it saves; above, commits cost more than they need."""

_TOGETHER = 16
"""Requests for blobs at the same time, of one call."""

_ITEM_BYTES = 256 * 1024
"""Of payloads that stay in an activity item; if there are more, smaller ones become blobs as well."""

_SMALL_BYTES = 256

_COMMIT_FIELDS = Commit.__struct_fields__
_mark = REFERENCE.encode()
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Payload)


class _NotShown(Exception):
    """The run has no blobs, and nobody is shown it."""


class OffloadingLog:
    """``threshold``: bytes of a payload, compressed, above which it becomes a blob."""

    def __init__(
        self, inner: ExecutionLog, blobs: RunBlobs, clock: Clock, *, threshold: int = DEFAULT_THRESHOLD
    ) -> None:
        if not MIN_THRESHOLD <= threshold <= MAX_THRESHOLD:
            raise ValueError(f"the offload threshold is {threshold}; use {MIN_THRESHOLD} to {MAX_THRESHOLD} bytes")
        self._inner = inner
        self._blobs = blobs
        self._clock = clock
        self._threshold = threshold
        self._seen = SeenPayloads()

    # writes

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        stored, state_bytes, marked = codec.encode_searched_commit(commit, _mark)
        if state_bytes > limits.MAX_STATE_BYTES and commit.state.close_time is None:
            raise StateTooLarge(state_bytes, limits.MAX_STATE_BYTES)
        puts: _Puts | None = None
        if marked or len(stored.head) > self._threshold or len(stored.events) > self._threshold:
            puts, small = await self._put(lambda puts: _small_commit(commit, puts))
            if small is not commit:
                stored = codec.encode_commit(small)
        encoded = EncodedCommit(
            **{name: getattr(commit, name) for name in _COMMIT_FIELDS},
            stored_head=stored.head,
            stored_events=stored.events,
            state_bytes=state_bytes,
            referring=puts is not None and puts.any,
        )
        try:
            await self._inner.append(encoded, arm=arm)
        except Conflict as conflict:
            raise Conflict(await self._commit(conflict.existing)) from conflict
        if puts is not None:
            await puts.landed(for_good=True)

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        puts, small = await self._put(lambda puts: _small_item(item, puts))
        try:
            await self._inner.put_activity(small, arm=arm)
        except VersionConflict as conflict:
            existing = conflict.existing
            raise VersionConflict(None if existing is None else await self._item(existing)) from conflict
        await puts.landed(for_good=False)

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        puts, small = await self._put(lambda puts: puts.small(tuple(events), Owner(key, run_id)), of_prefix=True)
        await self._inner.put_prefix(key, run_id, seq, small, now=now)
        await puts.landed(for_good=False)

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        return await self._inner.put_marker(key, name, value, expires_at=expires_at, now=now)

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        """Its blobs are the collector's, once the log does not show the run any more."""
        await self._inner.erase_run(key, run_id)

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        await self._inner.forget(key, seq)

    async def _put(self, make_small: Callable[["_Puts"], T], *, of_prefix: bool = False) -> tuple["_Puts", T]:
        """What is written, once all blobs that it refers to are there."""
        while True:
            puts = _Puts(self._blobs, self._seen, self._clock, self._threshold, of_prefix)
            small = make_small(puts)
            await puts.made()
            if puts.age <= PUT_SOON:
                return puts, small

    # reads

    async def head(self, key: ExecutionKey) -> Commit | None:
        return await self._found(await self._inner.head(key))

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        return await self._found(await self._inner.get(key, seq))

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return await self._found(await self._inner.find_run(key, run_id))

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        page = await self._inner.read_events(key, run_id, after_seq, limit)
        try:
            return page._replace(events=await self._whole(page.events, Owner(key, run_id), for_good=True))
        except _NotShown:
            return EventsPage((), after_seq)

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        item = await self._inner.get_activity(key, run_id, scheduled_event_id)
        return None if item is None else await self._item(item)

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        items = await self._inner.activities(key, run_id, scheduled_event_ids)
        return list(await self._whole(tuple(items), Owner(key, run_id), for_good=False))

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        return await self._inner.get_marker(key, name)

    async def _found(self, commit: Commit | None) -> Commit | None:
        return None if commit is None else await self._commit(commit)

    async def _commit(self, commit: Commit) -> Commit:
        own = await self._known(_own_parts(commit), Owner(commit.key, commit.run_id), for_good=True)
        closed = commit.closed
        if closed is not None:
            closed = await self._known(closed, Owner(commit.key, closed.run_id), for_good=True)
        return _with_parts(commit, own, closed)

    async def _item(self, item: ActivityItem) -> ActivityItem:
        return await self._known(item, _owner_of(item), for_good=False)

    async def _known(self, value: T, owner: Owner, *, for_good: bool) -> T:
        """With its references as they are if nobody is shown the run any more: its retention is over, and its blobs may
        be gone, while a commit of it is still there, as the head of the log or as the beginning of the next run."""
        try:
            return await self._whole(value, owner, for_good=for_good)
        except _NotShown:
            return value

    async def _whole(self, value: T, owner: Owner, *, for_good: bool) -> T:
        """With payloads in place of references. ``for_good``: what refers to them stays as long as the run."""
        names: dict[str, None] = {}

        def look(payload: Payload) -> None:
            if name := payload.metadata.get(REFERENCE):
                names[name] = None

        each_payload(value, look)
        if not names:
            return value
        found = dict(
            zip(names, await _all(partial(self._payload, owner, name, for_good) for name in names), strict=True)
        )
        return with_payloads(value, lambda payload: found.get(payload.metadata.get(REFERENCE, ""), payload))

    async def _payload(self, owner: Owner, name: str, for_good: bool) -> Payload:
        if (seen := self._seen.payload(owner, name, for_good)) is not None:
            return seen
        try:
            data = await self._blobs.get(owner, name)
        except BlobMissing as missing:
            if await self._inner.find_run(owner.key, owner.run_id) is None:
                raise _NotShown from missing
            raise PayloadLost(owner, missing.key) from missing
        payload = _decoder.decode(data)
        self._seen.saw(owner, name, payload, for_good=for_good)
        return payload


class _Puts:
    """The blobs that one write needs."""

    def __init__(self, blobs: RunBlobs, seen: SeenPayloads, clock: Clock, threshold: int, of_prefix: bool) -> None:
        self.any = False
        self.bytes_left = 0
        self.threshold = threshold
        self._blobs = blobs
        self._seen = seen
        self._clock = clock
        self._of_prefix = of_prefix
        self._began = clock.now()
        self._wanted: dict[tuple[Owner, str], bytes] = {}
        self._used: dict[tuple[Owner, str], Payload] = {}

    def small(self, value: T, owner: Owner) -> T:
        """``value`` with references in place of large payloads."""
        self.bytes_left = 0
        return with_payloads(value, lambda payload: self._small(payload, owner))

    def _small(self, payload: Payload, owner: Owner) -> Payload:
        forged = REFERENCE in payload.metadata
        if not forged and _size(payload) <= self.threshold:
            self.bytes_left += _size(payload)
            return payload
        name = self._seen.name(owner, payload, self._began)
        if name is None:
            form = self._blobs.form(owner, _encoder.encode(payload))
            if not forged and len(form) <= self.threshold:
                self.bytes_left += len(form)
                return payload
            name = self._blobs.name(form, of_prefix=self._of_prefix)
            if not self._seen.has(owner, name):
                self._wanted[owner, name] = form
        self.any = True
        self._used[owner, name] = payload
        return Payload(metadata={REFERENCE: name})

    @property
    def age(self) -> timedelta:
        return self._clock.now() - self._began

    async def made(self) -> None:
        """Puts what is not there yet. Raises StoreUnavailable."""
        if self._wanted:
            await _all(partial(self._put, *where, form) for where, form in self._wanted.items())

    async def _put(self, owner: Owner, name: str, form: bytes) -> None:
        await self._blobs.put(owner, name, form)
        self._seen.saw(owner, name, self._used[owner, name], for_good=False)

    async def landed(self, *, for_good: bool) -> None:
        """The write was made."""
        if self._used and self.age > PUT_LATE:
            forms = {
                where: self._blobs.form(where[0], _encoder.encode(payload)) for where, payload in self._used.items()
            }
            await _all(partial(self._put, *where, form) for where, form in forms.items())
        if for_good:
            for (owner, name), payload in self._used.items():
                self._seen.saw(owner, name, payload, for_good=True)


async def _all(work: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """Some at a time. All have ended when this returns or raises: nothing goes on behind the caller's back."""
    limit = asyncio.Semaphore(_TOGETHER)

    async def one(each: Callable[[], Awaitable[T]]) -> T:
        async with limit:
            return await each()

    results = await asyncio.gather(*(one(each) for each in work), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def _size(payload: Payload) -> int:
    size = len(payload.data)
    for name, value in payload.metadata.items():
        size += len(name) + len(value)
    return size


def _owner_of(item: ActivityItem) -> Owner:
    return Owner(ExecutionKey(item.namespace, item.workflow_id), item.run_id)


def _own_parts(commit: Commit) -> tuple[Any, ...]:
    """What has payloads and is of the run that the commit goes on with."""
    return commit.events, commit.state, commit.tasks, commit.rejected


def _with_parts(commit: Commit, own: tuple[Any, ...], closed: Any) -> Commit:
    if own == () or (closed is commit.closed and all(a is b for a, b in zip(own, _own_parts(commit), strict=True))):
        return commit
    events, state, tasks, rejected = own
    return msgspec.structs.replace(commit, events=events, state=state, tasks=tasks, rejected=rejected, closed=closed)


def _small_item(item: ActivityItem, puts: _Puts) -> ActivityItem:
    owner = _owner_of(item)
    small = puts.small(item, owner)
    if puts.bytes_left > _ITEM_BYTES:
        puts.threshold = _SMALL_BYTES
        small = puts.small(item, owner)
    return small


def _small_commit(commit: Commit, puts: _Puts) -> Commit:
    own = puts.small(_own_parts(commit), Owner(commit.key, commit.run_id))
    closed = commit.closed
    if closed is not None:
        closed = puts.small(closed, Owner(commit.key, closed.run_id))
    return _with_parts(commit, own, closed)
