"""ExecutionLog on DynamoDB: put-if-absent of single items, strong reads, no transactions.

What is older than its expiry counts for nothing, whether or not DynamoDB deleted it yet, and in whatever order it does
(``expiry``). Safety comes from the seq alone, on one condition: who appends behind a commit knows that the commit is
there. So it is looked at, unless this process saw it a short while ago.
"""

import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from stepwell.api import limits
from stepwell.api.events import HistoryEvent

from ...common.clock import Clock
from ...history.activity_item import ActivityItem
from ...history.commit import Commit, ExecutionKey
from ...history.ports import Conflict, EventsPage, Marker, StoreUnavailable, VersionConflict
from ...history.run_blobs import Owner
from ...timer_sweeper.arming import Arming
from ...timer_sweeper.buckets import Awaited, TimerRow
from ..large_states import LargeStates
from . import commit_items
from .activity_items import ActivityItemsTable
from .attributes import Attributes, Item, from_attributes
from .client import ServiceClient
from .commit_items import HandsOn, check_size
from .expiry import RunExpiry
from .faults import ConditionFailed
from .heads_seen import HeadsSeen
from .large_parts import LargeParts, PartBlobs
from .log_ends import LogEnds
from .markers import MarkersTable
from .prefixes import PrefixesTable
from .run_reads import Locate, RunReads


class ExecTable:
    """``parts``: where parts of large items are. ``hands_on``: whether the writer does what its commits owe (``W``), or
    the feed (``S``). ``locate``: where to look for a run that is not the newest of its id. ``expiry``: marks what is
    over."""

    def __init__(
        self,
        dynamodb: ServiceClient,
        table: str,
        clock: Clock,
        arming: Arming,
        *,
        hands_on: HandsOn,
        parts: LargeParts,
        locate: Locate | None = None,
        expiry: RunExpiry | None = None,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._arming = arming
        self._hands_on = hands_on
        self._seen = HeadsSeen(clock)
        self._parts = parts
        self._ends = LogEnds(dynamodb, table, clock)
        self._items = ActivityItemsTable(dynamodb, table, clock)
        self._markers = MarkersTable(dynamodb, table)
        self._prefixes = PrefixesTable(dynamodb, table, parts)
        self._reads = RunReads(dynamodb, table, clock, self._newest, self._prefixes, parts, locate)
        self._large = LargeStates()
        self._expiry = expiry or RunExpiry(dynamodb, table, clock, lambda namespace: limits.DEFAULT_RETENTION, parts)

    async def head(self, key: ExecutionKey) -> Commit | None:
        item = await self._newest(key)
        return None if item is None else commit_items.decode(item)

    async def _newest(self, key: ExecutionKey) -> Item | None:
        item = await self._ends.newest(key)
        if item is None:
            self._seen.forget(key)
        else:
            self._seen.saw(key, commit_items.seq_of(item), item["run"], item.get("x"))
            item = await self._parts.whole(item, key)
        return item

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        attributes, state_bytes = commit_items.encode(commit, self._hands_on, limits.MAX_STATE_BYTES)
        self._large.look_at(commit, state_bytes)
        key, seq = commit.key, commit.seq
        part_blobs = PartBlobs(self._parts, Owner(key, commit.run_id), self._clock)
        item = await part_blobs.small(attributes)
        check_size(f"commit {seq} of workflow {commit.workflow_id!r}", item)
        if seq > 1 and not self._seen.is_there(key, seq - 1):
            await self._ends.hold(key, seq - 1, _continued(commit) or self._seen.run_of(key, seq - 1))
        begins_with_prefix = commit.state.prefix_tail_seq != 0 and commit.state.first_seq == seq
        if begins_with_prefix:
            await self._prefixes.claim(key, commit.run_id, self._clock.now())
        row = await self._arm(key, arm, Awaited(seq=seq))
        try:
            await self._written(row, self._put(item, seq))
        except ConditionFailed as failed:
            self._seen.forget(key)
            there = from_attributes(failed.item or {})
            existing = commit_items.decode(await self._parts.whole(there, key))
            if begins_with_prefix and existing.run_id != commit.run_id:
                await self._prefixes.expire(key, commit.run_id, self._clock.now())
            raise Conflict(existing) from failed
        self._seen.saw(key, seq, commit.run_id, None)
        await part_blobs.landed()

    async def _put(self, attributes: Attributes, seq: int) -> None:
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": attributes,
            "ConditionExpression": "attribute_not_exists(pk)",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        try:
            await self._dynamodb.call("put_item", **put)
        except ConditionFailed as failed:
            there = from_attributes(failed.item or {})
            if seq > 1 or not there or commit_items.is_there(there, self._clock.now()):
                raise
            # All that is left of this id has expired: it is a new one, as soon as that is out of the way.
            await self._ends.clear(commit_items.key_of(there))
            await self._dynamodb.call("put_item", **put)

    async def _arm(self, key: ExecutionKey, arm: datetime | None, awaited: Awaited) -> TimerRow | None:
        return None if arm is None else await self._arming.arm(key, arm, awaited)

    async def _written(self, row: TimerRow | None, write: Any) -> None:
        """The write, and a second look at the deadline that was armed before it."""
        try:
            await write
        except StoreUnavailable:
            if row is not None:
                with contextlib.suppress(StoreUnavailable):
                    await self._arming.landed(row)  # it may have landed
            raise
        except (ConditionFailed, VersionConflict):
            if row is not None:
                await self._arming.landed(row)  # by an earlier try of this very write, whose answer was lost
            raise
        if row is not None:
            await self._arming.landed(row)

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        item = await self._reads.item(key, seq)
        return None if item is None else commit_items.decode(item)

    async def part_blobs(self, key: ExecutionKey, run_id: str) -> set[str]:
        """Names of the run's blobs that are parts of items which are there, also when the run is shown to nobody."""
        return await self._reads.part_blobs(key, run_id)

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        return await self._reads.events(key, run_id, after_seq, limit)

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        await self._prefixes.put(key, run_id, seq, events, now)

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return await self._reads.newest(key, run_id)

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        return await self._items.get(key, run_id, scheduled_event_id)

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        parameters = self._items.encode(item)
        key = ExecutionKey(item.namespace, item.workflow_id)
        row = await self._arm(key, arm, Awaited(0, item.run_id, item.scheduled_event_id, item.version))
        await self._written(row, self._items.put(parameters))

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        return await self._items.read(key, run_id, scheduled_event_ids)

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        return await self._markers.put(key, name, Marker(value, expires_at), now)

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        return await self._markers.get(key, name)

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        """Marks it to go at once; the table does the rest. What shows the run to readers is marked last."""
        newest = await self.head(key)
        last = None if newest is None else await self._reads.newest(key, run_id)
        if newest is None or last is None:
            return
        state = last.state_of(run_id)
        if last.seq == newest.seq and last.run_id == run_id and state is not None:
            await self._markers.erase(key, state.first_seq - 1, newest.seq)
        await self._expiry.erase(newest, last, run_id)

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        """The newest commit has an expiry of its own; the one before needs to stay no longer."""
        await self._expiry.let_go_before(key, seq)


def _continued(commit: Commit) -> str:
    """The run that the commit before was of; empty for one that begins a run without closing one."""
    if commit.closed is not None:
        return commit.closed.run_id
    return commit.run_id if commit.state.first_seq < commit.seq else ""
