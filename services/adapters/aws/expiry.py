"""Retention on DynamoDB: marks what a closed run left, so that the table deletes it once its time is over.

Never an open run's. The order makes it safe at every moment that a process may die, and however DynamoDB deletes: all
else of the run first, its newest commit last and for a week longer; so no commit of an open state is ever left as the
newest of its log. What a run still owes to others is told in its history, so it is marked when that is delivered; a run
that was passed over is marked with the next one of its id. A run that is deleted is marked at once, to go at once. No
mark makes anything stay longer than another one has said.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from stepwell.api.events import ActivityTaskScheduled

from ...common.clock import Clock
from ...history import codec
from ...history.commit import Commit, ExecutionKey
from ...history.machines import archiving
from ...history.requests import RecordArchived
from ...history.state import ExecutionState, OwedArchive
from . import commit_items, keys
from .activity_items import ActivityItemsTable
from .attributes import Item, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import HEAD_KEPT, seconds
from .faults import ConditionFailed
from .large_parts import LargeParts
from .prefixes import PrefixesTable

RetentionOf = Callable[[str], timedelta]
"""How long a namespace keeps what has ended."""

_TOGETHER = 25
_MOST_RUNS = 20
"""Runs that one call marks: the one that closed, and earlier ones that were passed over."""


class _Run(NamedTuple):
    """A closed run that owes nothing, and the seq of the newest commit that tells of it. ``shared``: that one opens the
    next run."""

    state: ExecutionState
    last_seq: int
    shared: bool
    expires_at: datetime


class RunExpiry:
    """Retention, as history's port has it."""

    def __init__(
        self, dynamodb: ServiceClient, table: str, clock: Clock, retention: RetentionOf, parts: LargeParts
    ) -> None:
        self._parts = parts
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._retention = retention
        self._items = ActivityItemsTable(dynamodb, table, clock)
        self._prefixes = PrefixesTable(dynamodb, table, parts)

    async def expire(self, commit: Commit) -> None:
        """To be called with each commit that was written; does something for those that ended a run, or all that a
        closed run owed. May be repeated, and go on where an earlier call broke off. Raises StoreUnavailable."""
        run = self._ended(commit)
        if run is None and commit.kind == RecordArchived.__name__:
            run = await self._archived(commit)
        for _ in range(_MOST_RUNS):
            if run is None or not await self._mark(commit.key, run, told_by=commit):
                return
            run = await self._before(commit, run)

    async def erase(self, newest: Commit, last: Commit, run_id: str) -> None:
        """Marks a deleted run to go now, of whatever it was marked before. ``newest``: of its log, ``last``: of the
        run."""
        state = last.state_of(run_id)
        assert state is not None and state.close_time is not None
        now = self._clock.now().replace(microsecond=0)  # not a part of a second from now
        run = _Run(state, last.seq, last.run_id != run_id, now)
        await self._mark(newest.key, run, again=True, last_kept=HEAD_KEPT if last.seq == newest.seq else timedelta(0))
        # Once that is gone, nobody gets from later runs to those before it.
        earlier = await self._before(newest, run)
        for _ in range(_MOST_RUNS):
            if earlier is None or not await self._mark(newest.key, earlier):
                return
            earlier = await self._before(newest, earlier)

    async def let_go_before(self, key: ExecutionKey, seq: int) -> None:
        """The commit before may go now, if that one says that all of the log is deleted: if not, it is of another log,
        which the id has had since."""
        item = await self._item(key, seq)
        if item is not None and (state := commit_items.decode(item).state).deleted:
            await self._set(key, state.run_id, [seq - 1], x=seconds(self._clock.now()))

    def _ended(self, commit: Commit) -> _Run | None:
        state = commit.state
        if commit.closed is not None:
            return self._over(commit, commit.closed.state, commit.seq, shared=True)
        if state.close_time is None:
            return None
        return self._over(commit, state, commit.seq, shared=False)

    async def _archived(self, commit: Commit) -> _Run | None:
        """The last of the runs that are archived by now, where a later one is open, or is not archived."""
        entry = archiving.owed_archive(commit.state)
        there = await self._item(commit.key, commit.seq)
        if there is None or commit_items.decode(there).time != commit.time:
            return None  # it is of another log, which the id has had since
        if entry is None:
            return await self._before(commit, _Run(commit.state, commit.seq, False, self._clock.now()))
        item = await self._item(commit.key, entry.after_seq)
        if item is None:
            return None
        closing = commit_items.decode(item)
        if closing.closed is not None:
            return self._over(commit, closing.closed.state, closing.seq, shared=True)
        last_seq = closing.seq  # or what was written behind the close, up to the next run
        while last_seq < commit.seq and (item := await self._item(commit.key, last_seq + 1)) is not None:
            following = commit_items.decode(item)
            if following.run_id != closing.run_id:
                break
            last_seq, closing = following.seq, following
        return self._over(commit, closing.state, last_seq, shared=False)

    def _over(self, newest: Commit, state: ExecutionState, last_seq: int, *, shared: bool) -> _Run | None:
        """None while the run is open, or something that it owes is still to be delivered."""
        if state.close_time is None or archiving.awaits(newest.state, state.numbered_seq):
            return None
        others = (owed for owed in newest.state.owed if not isinstance(owed, OwedArchive))
        if any(owed.run_id == state.run_id for owed in others):
            return None
        return _Run(state, last_seq, shared, state.close_time + self._retention(state.namespace))

    async def _mark(
        self,
        key: ExecutionKey,
        run: _Run,
        *,
        again: bool = False,
        last_kept: timedelta = HEAD_KEPT,
        told_by: Commit | None = None,
    ) -> bool:
        """False when it was marked before, or is gone. What is late may tell of a run that an import has brought again
        since, in another log."""
        last = await self._item(key, run.last_seq)
        if last is None or (not again and ("cx" if run.shared else "x") in last):
            return False
        if told_by is not None and told_by.seq == run.last_seq and commit_items.decode(last).time != told_by.time:
            return False
        until = seconds(run.expires_at)
        await self._mark_activities(key, run, until)
        if run.state.prefix_tail_seq:
            await self._prefixes.expire(key, run.state.run_id, run.expires_at)
        first, run_id = run.state.first_seq, run.state.run_id
        if first < run.last_seq:
            # The first may be the end of the run before as well, which may be kept longer.
            opening = await self._item(key, first) or {}
            if "cr" in opening and "cx" not in opening:
                await self._set(key, run_id, [first], rx=until)  # goes with the run before, which is not over yet
            else:
                await self._set(key, run_id, [first], x=max(until, opening.get("cx", 0)))
            await self._set(key, run_id, range(first + 1, run.last_seq), x=until)
        if run.shared:
            await self._set(key, run_id, [run.last_seq], cx=until)
            if "rx" in last and "x" not in last:
                await self._set(key, run_id, [run.last_seq], x=max(until, last["rx"]))  # the run behind it went first
        else:
            await self._set(key, run_id, [run.last_seq], rx=until, x=seconds(run.expires_at + last_kept))
        return True

    async def _before(self, newest: Commit, run: _Run) -> _Run | None:
        """The run before that one, if it is over."""
        first = run.state.first_seq
        opening = await self._item(newest.key, first)
        if opening is not None and "cr" in opening:
            closed = commit_items.decode(opening).closed
            assert closed is not None
            return self._over(newest, closed.state, first, shared=True)
        item = await self._item(newest.key, first - 1) if first > 1 else None
        if item is None:
            return None
        return self._over(newest, commit_items.decode(item).state, first - 1, shared=False)

    async def _mark_activities(self, key: ExecutionKey, run: _Run, until: int) -> None:
        """Of the activities that were scheduled, those that have an item."""
        found: list[int] = []
        async for item in self._history(key, run):
            part = item.get("e", b"")
            own = item["run"] == run.state.run_id
            events = codec.decode_events(part) if own else codec.decode_closed_events(part)
            found += [event.event_id for event in events if isinstance(event.attributes, ActivityTaskScheduled)]
        there = await self._items.read(key, run.state.run_id, found, strong=False)
        wanted = [
            (keys.items_key(key, item.scheduled_event_id), keys.item_key(item.run_id, item.scheduled_event_id))
            for item in there
        ]
        await self._update(wanted, {"x": until})

    async def _history(self, key: ExecutionKey, run: _Run) -> Any:
        bounds = {":first": keys.commit_key(run.state.first_seq), ":last": keys.commit_key(run.last_seq)}
        query: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": to_attributes({":pk": keys.log_key(key), **bounds}),
            "ProjectionExpression": "run, cr, e, er",
        }
        while True:
            answer = await self._dynamodb.call("query", **query)
            for item in answer["Items"]:
                yield await self._parts.whole(from_attributes(item), key)
            if not (last := answer.get("LastEvaluatedKey")):
                return
            query["ExclusiveStartKey"] = last

    async def _item(self, key: ExecutionKey, seq: int) -> Item | None:
        where = to_attributes({"pk": keys.log_key(key), "sk": keys.commit_key(seq)})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=where, ConsistentRead=True)
        return await self._parts.whole(from_attributes(answer["Item"]), key) if "Item" in answer else None

    async def _set(self, key: ExecutionKey, run_id: str, seqs: Iterable[int], **times: int) -> None:
        """Of commits of that run: by now they may be of another log, which the id has had since."""
        await self._update([(keys.log_key(key), keys.commit_key(seq)) for seq in seqs], times, run_id)

    async def _update(self, wanted: list[tuple[str, str]], times: dict[str, int], run_id: str = "") -> None:
        for start in range(0, len(wanted), _TOGETHER):
            part = wanted[start : start + _TOGETHER]
            await asyncio.gather(*(self._update_one(pk, sk, times, run_id) for pk, sk in part))

    async def _update_one(self, pk: str, sk: str, times: dict[str, int], run_id: str) -> None:
        """An update of what is gone would make an item of its own; what is gone needs no time any more, and what goes
        sooner stays so."""
        of_run = {":run": value(run_id)} if run_id else {}
        try:
            await self._dynamodb.call(
                "update_item",
                TableName=self._table,
                Key=to_attributes({"pk": pk, "sk": sk}),
                UpdateExpression="SET " + ", ".join(f"{name} = :{name}" for name in times),
                ConditionExpression=" AND ".join(
                    [
                        "attribute_exists(pk)",
                        *(f"(attribute_not_exists({name}) OR {name} >= :{name})" for name in times),
                        *(["(run = :run OR cr = :run)"] if run_id else []),
                    ]
                ),
                ExpressionAttributeValues={**{f":{name}": value(time) for name, time in times.items()}, **of_run},
            )
        except ConditionFailed:
            return
