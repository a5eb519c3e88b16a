"""Reads of one run among all that a workflow id had: its newest commit, and its history in pages.

The runs of a log follow each other, and each commit's state says where its run began; so an earlier run is found by
stepping from run to run, or at once where the visibility table knows a commit of it. A run whose retention is over, or
that lost a part already, is not shown at all.
"""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from stepwell.api.events import HistoryEvent

from ...common.clock import Clock
from ...history import codec
from ...history.commit import Commit, ExecutionKey
from ...history.ports import EventsPage
from ...history.state import ExecutionState
from . import commit_items, keys
from .attributes import Item, from_attributes, to_attributes
from .client import ServiceClient
from .large_parts import LargeParts, names_in
from .prefixes import PrefixesTable

Locate = Callable[[ExecutionKey, str], Awaitable[int | None]]
"""The seq of some commit of that run, 0 or None when it is not known; a hint."""

_STEPS_BEFORE_ASKING = 2
_PARTS_TOGETHER = 4
_MOST_TOGETHER = 100


class _Place(NamedTuple):
    """A run, and the newest commit that has its state."""

    item: Item
    commit: Commit
    state: ExecutionState


class RunReads:
    """``newest``: the newest item of a log, by a strong read."""

    def __init__(
        self,
        dynamodb: ServiceClient,
        table: str,
        clock: Clock,
        newest: Callable[[ExecutionKey], Awaitable[Item | None]],
        prefixes: PrefixesTable,
        parts: LargeParts,
        locate: Locate | None,
    ) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._newest = newest
        self._prefixes = prefixes
        self._parts = parts
        self._locate = locate

    async def item(self, key: ExecutionKey, seq: int) -> Item | None:
        where = to_attributes({"pk": keys.log_key(key), "sk": keys.commit_key(seq)})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=where, ConsistentRead=True)
        item = from_attributes(answer["Item"]) if "Item" in answer else None
        if item is None or not commit_items.is_there(item, self._clock.now()):
            return None
        return await self._parts.whole(item, key)

    async def newest(self, key: ExecutionKey, run_id: str) -> Commit | None:
        place = await self._find(key, run_id)
        return None if place is None else place.commit

    async def _find(self, key: ExecutionKey, run_id: str) -> _Place | None:
        place = _newest_place(await self._newest(key))
        steps = 0
        while place is not None and place.state.run_id != run_id:
            steps += 1
            if steps == _STEPS_BEFORE_ASKING and (found := await self._ask(key, run_id)) is not None:
                place = found
                break
            place = await self._before(key, place)
        if place is None and 0 < steps < _STEPS_BEFORE_ASKING:
            place = await self._ask(key, run_id)  # a run in between was deleted
        if place is None or not commit_items.shows(place.item, run_id, self._clock.now()):
            return None
        return place

    async def _before(self, key: ExecutionKey, place: _Place) -> _Place | None:
        """The run before."""
        first_seq = place.state.first_seq
        opening: _Place | None = place
        if place.commit.run_id != place.state.run_id or place.commit.seq != first_seq:
            opening = _newest_place(await self.item(key, first_seq))
        if opening is None:
            return None
        if opening.commit.closed is not None:
            return opening._replace(state=opening.commit.closed.state)
        return _newest_place(await self.item(key, first_seq - 1)) if first_seq > 1 else None

    async def _ask(self, key: ExecutionKey, run_id: str) -> _Place | None:
        """By a commit of the run that somebody knows of: from there on to the run's last."""
        seq = await self._locate(key, run_id) if self._locate is not None else None
        found: _Place | None = None
        while seq and (item := await self.item(key, seq)) is not None:
            commit = commit_items.decode(item)
            state = commit.state_of(run_id)
            if state is None:
                break
            found, seq = _Place(item, commit, state), seq + 1
        return found

    async def events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        page = _Page(after_seq, limit)
        place: _Place | None = None
        if after_seq < 0:
            place = await self._find(key, run_id)
            if place is None:
                return EventsPage((), after_seq)
            await self._read_prefix(key, run_id, page)
            if page.is_full():
                return page.done()
        from_seq = max(page.last_seq, 0) + 1
        if place is not None:
            from_seq = place.state.first_seq
        complete = await self._read_commits(key, run_id, from_seq, page)
        if complete is None and place is None:
            # Not where the caller looked: before the run, behind it, or where something is missing already.
            place = await self._find(key, run_id)
            if place is not None and place.state.first_seq > from_seq:
                complete = await self._read_commits(key, run_id, place.state.first_seq, page)
        return page.done() if complete else EventsPage((), after_seq)

    async def _read_prefix(self, key: ExecutionKey, run_id: str, page: "_Page") -> None:
        more = True
        while more and not page.is_full():
            parts, more = await self._prefixes.page(key, run_id, page.last_seq, _PARTS_TOGETHER)
            for part in parts:
                page.add(keys.parse_prefix_key(part["sk"]), codec.decode_events(part["e"]))
                if page.is_full():
                    break

    async def _read_commits(self, key: ExecutionKey, run_id: str, from_seq: int, page: "_Page") -> bool | None:
        """Adds the run's events from that commit on. None when the commit is not there or not the run's; False when the
        run is one that is not shown."""
        seq = from_seq
        now = self._clock.now()
        while True:
            items, more = await self._query(key, seq, page.commits_wanted)
            for item in items:
                if commit_items.seq_of(item) != seq or not commit_items.is_of(item, run_id):
                    return seq > from_seq or None
                if not commit_items.shows(item, run_id, now):
                    return False
                part = (await self._parts.whole(item, key)).get("e", b"")
                opened = item["run"] == run_id
                page.add(seq, codec.decode_events(part) if opened else codec.decode_closed_events(part))
                if page.is_full() or not opened:
                    return True
                seq += 1
            if not more:
                return seq > from_seq or None

    async def part_blobs(self, key: ExecutionKey, run_id: str) -> set[str]:
        found = await self._prefixes.part_blobs(key, run_id)
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :commits)",
            "FilterExpression": "run = :run AND (attribute_exists(er) OR attribute_exists(hr))",
            "ExpressionAttributeValues": to_attributes(
                {":pk": keys.log_key(key), ":commits": keys.COMMITS, ":run": run_id}
            ),
            "ProjectionExpression": "run, er, hr",
        }
        while True:
            answer = await self._dynamodb.call("query", **query)
            for item in answer["Items"]:
                found |= names_in(from_attributes(item))
            if not (last := answer.get("LastEvaluatedKey")):
                return found
            query["ExclusiveStartKey"] = last

    async def _query(self, key: ExecutionKey, from_seq: int, limit: int) -> tuple[list[Item], bool]:
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": to_attributes(
                {
                    ":pk": keys.log_key(key),
                    ":first": keys.commit_key(from_seq),
                    ":last": keys.commit_key(10**12 - 1),
                }
            ),
            "ProjectionExpression": "sk, run, cr, e, er, x, rx, cx",
            "Limit": limit,
        }
        answer = await self._dynamodb.call("query", **query)
        return [from_attributes(item) for item in answer["Items"]], "LastEvaluatedKey" in answer


def _newest_place(item: Item | None) -> _Place | None:
    """That of the run which the commit goes on with."""
    if item is None:
        return None
    commit = commit_items.decode(item)
    return _Place(item, commit, commit.state)


class _Page:
    """Whole commits, until there are enough events."""

    def __init__(self, after_seq: int, limit: int) -> None:
        self.last_seq = after_seq
        self._limit = limit
        self._events: list[HistoryEvent] = []

    def is_full(self) -> bool:
        return len(self._events) >= self._limit

    @property
    def commits_wanted(self) -> int:
        """A commit of a step numbers about four events."""
        return min(max((self._limit - len(self._events)) // 4, 1), _MOST_TOGETHER)

    def add(self, seq: int, events: tuple[HistoryEvent, ...]) -> None:
        self.last_seq = seq
        self._events += events

    def done(self) -> EventsPage:
        return EventsPage(tuple(self._events), self.last_seq)
