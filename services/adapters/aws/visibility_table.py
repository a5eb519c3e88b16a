"""VisibilityStore on DynamoDB: one record per run, an index over them by namespace and status, newest start first, and
items for the search attributes that runs have.

The index is spread over a few partitions per status, so that many starts a second do not meet in one; a list merges
them. Records are projected from commits in any order and any number of times: the newest ``seq`` stays. A list may lag
behind by the moment that the index takes.

A run may come again by an import, with commits that count from 1: they take the place of what had expired, or was
removed, before they were made.
"""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from ...common.clock import Clock
from ...history.commit import Commit, ExecutionKey
from ...history.tasks import RecordVisibility
from ...timer_sweeper.buckets import EPOCH
from ...visibility.attributes import START_TIME, ValueType
from ...visibility.filters import Filter, Query
from ...visibility.pages import Counted, Page, Position
from . import keys, visibility_index, visibility_rows
from .attributes import Item, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import seconds
from .expiry import RetentionOf
from .faults import ConditionFailed
from .visibility_search import VisibilitySearch

_LAST_SEQ = 10**15
_REMEMBERED = timedelta(days=30)
"""A record of the stream that failed waits 14 days in its queue."""
_ORDERED_BY = frozenset({START_TIME.name})


class VisibilityTable:
    """``retention``: how long records of closed runs are kept, by namespace."""

    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock, retention: RetentionOf) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._retention = retention
        self._search = VisibilitySearch(dynamodb, table, clock)

    async def project(self, commit: Commit) -> None:
        tasks = [task for task in commit.tasks if type(task) is RecordVisibility]
        retention = self._retention(commit.namespace)
        records = [visibility_rows.record(commit, task, retention) for task in tasks]
        await asyncio.gather(*(self._put(record, commit.time) for record in records))

    async def _put(self, record: Item, time: datetime) -> None:
        """The items of the index first: a record never has a value by which it is not found. What a run had before, or
        what came too late, is left to expire."""
        entries = visibility_index.entries(record)
        if entries:
            await asyncio.gather(*(self._put_newer(entry, time) for entry in entries.values()))
        before, is_newer = await self._put_newer(record, time)
        if before is None:
            return
        others = visibility_index.entries(before)
        over = entries.keys() - others.keys() if not is_newer else others.keys() - entries.keys()
        await self._expire(((key, entries.get(key) or others[key]) for key in over), record["seq"])

    async def put_record(self, record: Item) -> None:
        """A record of another table of this kind, or the stone of a deleted run, unless there is a newer one."""
        await self._put(record, EPOCH)

    async def records(self, start: Item | None, limit: int) -> tuple[list[Item], Item | None]:
        """Up to so many items' records, stones included, in no order, and where to go on; None at the end. Reads all
        items of the table in the end: for copying it."""
        where = {} if start is None else {"ExclusiveStartKey": to_attributes(start)}
        answer = await self._dynamodb.call("scan", TableName=self._table, Limit=limit, **where)
        items = [from_attributes(item) for item in answer["Items"]]
        last = answer.get("LastEvaluatedKey")
        records = [item for item in items if not visibility_index.is_entry(item)]
        return records, from_attributes(last) if last else None

    async def _put_newer(self, item: Item, time: datetime) -> tuple[Item | None, bool]:
        """What was there before, and whether this, made at ``time``, took its place; where that is newer, or the same,
        it stays."""
        try:
            answer = await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=to_attributes(item),
                ConditionExpression="attribute_not_exists(pk) OR seq < :seq OR x < :second OR r < :time",
                ExpressionAttributeValues={
                    ":seq": value(item["seq"]),
                    ":second": value(int(time.timestamp())),
                    ":time": value(visibility_rows.to_us(time)),
                },
                ReturnValues="ALL_OLD",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            return None if failed.item is None else from_attributes(failed.item), False
        before = answer.get("Attributes")
        return from_attributes(before) if before else None, True

    async def _expire(self, over: Iterable[tuple[tuple[str, str], Item]], seq: int) -> None:
        """Unless a newer record has the value again."""
        now = int(self._clock.now().timestamp())
        await asyncio.gather(*(self._put_over({**entry, "seq": seq, "x": now}) for _, entry in over))

    async def _put_over(self, entry: Item) -> None:
        try:
            await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=to_attributes(entry),
                ConditionExpression="seq <= :seq",
                ExpressionAttributeValues={":seq": value(entry["seq"])},
            )
        except ConditionFailed:
            return

    async def remove(self, key: ExecutionKey, run_id: str, last: datetime) -> None:
        """A stone in its place, in no list, that outlasts whatever may still be projected of the run, and makes room
        for it if it comes again; what it was found by expires at once."""
        now = self._clock.now()
        removed = max(now, last)  # clocks of processes are apart
        stone: Item = {
            "pk": keys.visible_key(key),
            "sk": run_id,
            "seq": _LAST_SEQ,
            "r": visibility_rows.to_us(removed),
            "x": seconds(now + _REMEMBERED),
        }
        before, _ = await self._put_newer(stone, removed)
        if before is not None:
            await self._expire(visibility_index.entries(before).items(), _LAST_SEQ)

    @property
    def ordered_by(self) -> frozenset[str]:
        return _ORDERED_BY

    async def search(self, namespace: str, query: Query, *, after: Position | None, limit: int) -> Page:
        return await self._search.search(namespace, query, after, limit)

    async def scan(self, namespace: str, filter_: Filter, *, after: Position | None, limit: int) -> Page:
        return await self._search.scan(namespace, filter_, after, limit)

    async def count(self, namespace: str, query: Query, *, after: Position | None) -> Counted:
        return await self._search.count(namespace, query, after)

    async def attribute_types(self, namespace: str) -> Mapping[str, ValueType]:
        """None: here nothing is older than the registry."""
        return {}

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        """None: queues outlive processes here, and deadlines send again what they lost."""
        return []

    async def locate(self, key: ExecutionKey, run_id: str) -> int | None:
        """The seq of the newest commit that was projected of that run."""
        where = to_attributes({"pk": keys.visible_key(key), "sk": run_id})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=where, ProjectionExpression="pk, seq")
        seq = from_attributes(answer["Item"])["seq"] if "Item" in answer else None
        return None if seq == _LAST_SEQ else seq
