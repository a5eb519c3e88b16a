"""Deletes blobs of runs whose retention is over, and what was put for writes that never came.

Theory of operation. A pass goes through all keys in their order, run by run, a bounded time per call, and remembers how
far it got. Of a run that the log does not have (any more) all that is old goes. Of one that it has, what is old and
nothing refers to: no event, no state of any of its commits, no activity item. Old is more than a day; whoever writes
refers to blobs that are younger, or that a commit refers to already (``run_blobs``). So it does not matter when a
collector runs, how many do, or where one dies.

The history of a run is read only when blobs of it have become old since the pass before: a run that waits costs two
reads a day, however long it waits and however much it has done.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec
from stepwell.api.events import ActivityTaskScheduled, HistoryEvent
from stepwell.api.payloads import Payload

from ..common.blobs import BlobMissing, BlobStore
from ..common.clock import Clock
from .commit import BEGINNING, Commit, ExecutionKey
from .offload import REFERENCE
from .payload_fields import each_payload
from .ports import ExecutionLog
from .run_blobs import PREFIX, Owner, RunBlobs, garbage_from, hour_of
from .state import OwedArchive

log = logging.getLogger(__name__)

PASS_EVERY = timedelta(hours=24)
PROGRESS = "g/"
"""Of the keys under which a collector remembers how far it got."""

_LONGEST = timedelta(minutes=10)
"""What took longer to look through is left to the next pass: it was looked at too long ago."""

_PAGE = 1_000
_COMMITS_TOGETHER = 16
_EVENTS_TOGETHER = 500
_ITEMS_TOGETHER = 100
_LAST = "~"
"""Behind all characters that a key may have."""

PartBlobs = Callable[[ExecutionKey, str], Awaitable[set[str]]]
"""Names of blobs of a run in which a store keeps parts of its items that are there."""


class Collected(NamedTuple):
    """What one call did."""

    runs: int = 0
    deleted: int = 0


class _Progress(msgspec.Struct, frozen=True, array_like=True):
    """Hours are those of blobs' names."""

    began: int
    """The hour in which the pass began."""
    before: int
    """The same of the pass before it."""
    after: str = ""
    """The key behind which it goes on."""
    done: bool = False


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Progress)


class BlobCollector:
    """``execution_log``: the one below the offload, which shows references. ``part_blobs``: of a store that keeps parts
    of items in blobs."""

    def __init__(
        self,
        execution_log: ExecutionLog,
        blobs: BlobStore,
        clock: Clock,
        part_blobs: PartBlobs | None = None,
    ) -> None:
        self._log = execution_log
        self._blobs = blobs
        self._run_blobs = RunBlobs(blobs, clock)
        self._clock = clock
        self._part_blobs = part_blobs

    async def run(self, seconds: float) -> Collected:
        """Goes on with the pass, or begins one when the last began a day ago, for about so many seconds. Raises
        StoreUnavailable; the next call goes on where the last one got to."""
        until = self._clock.monotonic() + seconds
        progress = await self._progress()
        if progress.done:
            if (hour_of(self._clock.now()) - progress.began) * 3_600 < PASS_EVERY.total_seconds():
                return Collected()
            progress = _Progress(hour_of(self._clock.now()), progress.began)
        total = Collected()
        while not progress.done:
            progress, collected = await self._page(progress, until)
            total = Collected(total.runs + collected.runs, total.deleted + collected.deleted)
            await self._remember(progress)
            if self._clock.monotonic() >= until:
                break
        return total

    async def _page(self, progress: _Progress, until: float) -> tuple[_Progress, Collected]:
        """At least one run; no further one when the time is over."""
        page = await self._blobs.list(PREFIX, progress.after, _PAGE)
        runs: dict[str, list[str]] = {}
        for key in page.keys:
            prefix, _, name = key.rpartition("/")
            runs.setdefault(prefix + "/", []).append(name)
        deleted = looked = 0
        for number, (prefix, names) in enumerate(runs.items(), 1):
            if number == len(runs) and page.after:
                names = await self._names(prefix)
            deleted += await self._collect(prefix, names, progress.before)
            looked += 1
            progress = msgspec.structs.replace(progress, after=prefix + _LAST)
            if self._clock.monotonic() >= until and (number < len(runs) or page.after):
                return progress, Collected(looked, deleted)
        return msgspec.structs.replace(progress, done=not page.after), Collected(looked, deleted)

    async def _names(self, prefix: str) -> list[str]:
        found: list[str] = []
        after = ""
        while True:
            page = await self._blobs.list(prefix, after, _PAGE)
            found += [key[len(prefix) :] for key in page.keys]
            if not (after := page.after):
                return found

    async def _collect(self, prefix: str, names: Sequence[str], hour_before: int) -> int:
        """The number of blobs of that run that were deleted."""
        began = self._clock.now()
        old = [name for name in names if _is_old(name, hour_of(began))]
        if not old:
            return 0
        try:
            owner = await self._run_blobs.owner(prefix + old[0])
        except BlobMissing:
            return 0  # another collector was here
        if owner.prefix != prefix:
            log.warning("Blob %s says that it belongs to %r; it is left alone", prefix + old[0], owner)
            return 0
        commit = await self._log.find_run(owner.key, owner.run_id)
        if commit is None and await self._still_owes(owner):
            return 0
        if commit is not None and not any(garbage_from(name) > hour_before for name in old):
            return 0
        used = set() if self._part_blobs is None else await self._part_blobs(owner.key, owner.run_id)
        if commit is not None:
            used |= await self._references(owner, commit)
        garbage = [prefix + name for name in old if name not in used]
        if not garbage or self._clock.now() - began > _LONGEST:
            return 0
        await self._blobs.delete(garbage)
        return len(garbage)

    async def _still_owes(self, owner: Owner) -> bool:
        """What a closed run asked of others is read from its history until it is delivered."""
        head = await self._log.head(owner.key)
        if head is None:
            return False
        owed = (entry for entry in head.state.owed if not isinstance(entry, OwedArchive))
        return any(entry.run_id == owner.run_id for entry in owed)

    async def _references(self, owner: Owner, newest: Commit) -> set[str]:
        """Names of all blobs that something of the run refers to, up to that commit."""
        key, run_id = owner.key, owner.run_id
        state = newest.state_of(run_id)
        assert state is not None
        names: set[str] = set()
        scheduled: list[int] = []

        def look(events: Sequence[HistoryEvent], *more: Any) -> None:
            _look((tuple(events), *more), names)
            scheduled.extend(event.event_id for event in events if type(event.attributes) is ActivityTaskScheduled)

        after = BEGINNING
        while state.prefix_tail_seq and after < 0:
            page = await self._log.read_events(key, run_id, after, _EVENTS_TOGETHER)
            look(page.events)
            if page.last_seq == after:
                break
            after = page.last_seq
        for first in range(state.first_seq, newest.seq + 1, _COMMITS_TOGETHER):
            seqs = range(first, min(first + _COMMITS_TOGETHER, newest.seq + 1))
            for commit in await asyncio.gather(*(self._log.get(key, seq) for seq in seqs)):
                if commit is not None:
                    own = (commit.tasks, commit.rejected) if commit.run_id == run_id else ()
                    look(commit.events_of(run_id), commit.state_of(run_id), *own)
        for first in range(0, len(scheduled), _ITEMS_TOGETHER):
            _look(tuple(await self._log.activities(key, run_id, scheduled[first : first + _ITEMS_TOGETHER])), names)
        return names

    async def _progress(self) -> _Progress:
        page = await self._blobs.list(PROGRESS)
        for key in reversed(page.keys):
            try:
                return _decoder.decode(await self._blobs.get(key))
            except (BlobMissing, msgspec.DecodeError):
                continue
        return _Progress(hour_of(self._clock.now()), 0)

    async def _remember(self, progress: _Progress) -> None:
        earlier = (await self._blobs.list(PROGRESS)).keys
        # Keys are in the order of times; one that is there already is another collector's, who is as far.
        key = f"{PROGRESS}{int(self._clock.now().timestamp() * 1_000_000):014x}"
        await self._blobs.put(key, _encoder.encode(progress))
        await self._blobs.delete([each for each in earlier if each < key])


def _look(value: Any, names: set[str]) -> None:
    def look(payload: Payload) -> None:
        if name := payload.metadata.get(REFERENCE):
            names.add(name)

    each_payload(value, look)


def _is_old(name: str, hour: int) -> bool:
    """Not what has no name of ours."""
    try:
        return garbage_from(name) <= hour
    except ValueError:
        return False
