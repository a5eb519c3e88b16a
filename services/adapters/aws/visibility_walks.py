"""Walks through sorted rows of ``vis``, page by page, and what several of them give together in one order."""

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from .attributes import READ_UNIT, Item, from_attributes, size, to_attributes
from .client import ServiceClient
from .names import STARTS_INDEX
from .visibility_rows import is_run

_ROWS_AT_MOST = 1_000


class Spent:
    """Read units of one call, as DynamoDB counts eventual reads."""

    def __init__(self) -> None:
        self.units = 0.0

    def read(self, item_bytes: int) -> None:
        self.units += max(-(-item_bytes // READ_UNIT), 1) / 2


class Range(NamedTuple):
    """Rows of one partition with sort keys from ``low`` to ``high``, both included."""

    partition: str
    low: str
    high: str
    by_start: bool
    """Of the index by status and start, and not of the table."""


class Row(NamedTuple):
    key: str
    """By which rows of all walks are put in order."""
    item: Item


class Rows(Protocol):
    """Rows in order; ``ready`` until it says that there are no more."""

    rows: list[Row]

    async def ready(self) -> bool: ...


class Walk:
    """``keyed``: how many characters of a sort key stand before what orders."""

    def __init__(
        self,
        dynamodb: ServiceClient,
        table: str,
        range_: Range,
        *,
        descending: bool,
        after: str,
        keyed: int,
        first: int,
        spent: Spent,
    ) -> None:
        self.rows: list[Row] = []
        self._dynamodb = dynamodb
        self._table = table
        self._range = range_
        self._descending = descending
        self._after_key = after
        self._keyed = keyed
        self._limit = first
        self._spent = spent
        self._after: Any = None
        self._ended = False

    async def ready(self) -> bool:
        """Reads until there is a row, or no more."""
        while not self.rows and not self._ended:
            await self._read()
        return bool(self.rows)

    async def _read(self) -> None:
        partition, low, high, by_start = self._range
        names = ("gp", "gs") if by_start else ("pk", "sk")
        query: dict[str, Any] = {
            "TableName": self._table,
            "ScanIndexForward": not self._descending,
            "Limit": self._limit,
            "KeyConditionExpression": f"{names[0]} = :partition AND {names[1]} BETWEEN :low AND :high",
            "ExpressionAttributeValues": to_attributes({":partition": partition, ":low": low, ":high": high}),
        }
        if by_start:
            query["IndexName"] = STARTS_INDEX
        if self._after is not None:
            query["ExclusiveStartKey"] = self._after
        answer = await self._dynamodb.call("query", **query)
        self._spent.read(sum(size(item) for item in answer["Items"]))
        found = (Row(str(item[names[1]])[self._keyed :], item) for item in map(from_attributes, answer["Items"]))
        # The range includes the row that the page before ended with.
        self.rows = [row for row in found if row.key != self._after_key]
        self._after = answer.get("LastEvaluatedKey")
        self._ended = self._after is None
        self._limit = min(2 * self._limit, _ROWS_AT_MOST)


class Sorted:
    """All runs of one workflow id, which are few, put in order."""

    def __init__(
        self, dynamodb: ServiceClient, table: str, partition: str, *, descending: bool, after: str, spent: Spent
    ) -> None:
        self.rows: list[Row] = []
        range_ = Range(partition, " ", "\U0010ffff", False)
        self._walk = Walk(
            dynamodb, table, range_, descending=False, after="", keyed=0, first=_ROWS_AT_MOST, spent=spent
        )
        self._descending = descending
        self._after_key = after
        self._read = False

    async def ready(self) -> bool:
        if not self._read:
            self._read = True
            found: list[Row] = []
            while await self._walk.ready():
                found += [Row(row.item["gs"], row.item) for row in self._walk.rows if is_run(row.item)]
                self._walk.rows = []
            found.sort(key=lambda row: row.key, reverse=self._descending)
            self.rows = [row for row in found if not self._after_key or self._is_behind(row.key)]
        return bool(self.rows)

    def _is_behind(self, key: str) -> bool:
        return key < self._after_key if self._descending else key > self._after_key


class Merged:
    """The rows of several walks in one order."""

    def __init__(self, walks: Sequence[Rows], *, descending: bool) -> None:
        self._walks = walks
        self._key = _Descending if descending else str
        self._heap: list[tuple[str, int]] | None = None

    async def open(self, gather: Any) -> None:
        """Reads the first rows of all, side by side."""
        await gather(*(walk.ready() for walk in self._walks))
        self._heap = [(self._key(walk.rows[0].key), at) for at, walk in enumerate(self._walks) if walk.rows]
        heapq.heapify(self._heap)

    async def take(self, count: int) -> list[Row]:
        """The next rows, fewer only at the end."""
        assert self._heap is not None
        taken: list[Row] = []
        while self._heap and len(taken) < count:
            _, at = heapq.heappop(self._heap)
            walk = self._walks[at]
            taken.append(walk.rows.pop(0))
            if await walk.ready():
                heapq.heappush(self._heap, (self._key(walk.rows[0].key), at))
        return taken


class _Descending(str):
    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)
