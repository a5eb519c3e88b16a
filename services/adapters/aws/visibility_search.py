"""Queries of the filter language on ``vis``: from an index that leads to what is asked for, with the rest of the filter
decided here, for so many read units a call and no more.

What leads, the first of these that the query has: a workflow id; a value of a search attribute with an index of its own
(equal, or one of a few); ORDER BY such an attribute; statuses and start times, which are the index that all runs are
in. Without any of it, that index is gone through from its newest end, a bounded part a call: a page may be short, and
says where to go on.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from stepwell.api.enums import WorkflowExecutionStatus

from ...common.clock import Clock
from ...history.commit import ExecutionKey
from ...visibility.attributes import START_TIME, STATUS, WORKFLOW_ID, Attribute, Value
from ...visibility.bounds import bounds
from ...visibility.evaluate import matches
from ...visibility.filters import All, Compare, Filter, In, Operator, Query, attributes_of, conjuncts
from ...visibility.pages import MAX_GROUPS, Counted, Group, Page, Phase, Position, TooManyGroups, phases
from . import keys, visibility_index, visibility_rows
from .attributes import Item, from_attributes, size, to_attributes
from .client import ServiceClient
from .visibility_index import BEFORE_ALL, BEHIND_ALL, KINDS, encoded
from .visibility_rows import INDEX_PARTITIONS, SHOWN, from_us, start_key
from .visibility_walks import Merged, Range, Rows, Sorted, Spent, Walk

LIST_UNITS = 250
COUNT_UNITS = 1_000
"""Read units, but for those of the records that it shows, after which a call ends with what it has: about 10,000 and
40,000 runs of the index, fewer where records must be read as well."""

_TOGETHER = 100
_FEWEST_TOGETHER = 25
_MOST_VALUES = 10
"""Of an IN that leads by its values; each is two walks."""

_FIRST, _LAST = "0", ":"
"""Around all start times."""


class _Found(NamedTuple):
    """A run that was looked at: its row, or its record where that was read."""

    item: Item
    position: Position


class VisibilitySearch:
    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock

    async def search(self, namespace: str, query: Query, after: Position | None, limit: int) -> Page:
        found: list[_Found] = []
        spent = Spent()
        for phase in phases(query, after):
            looking = _Looking(self, namespace, phase, limit + 1, spent)
            while (
                rows := await looking.next(min(max(limit + 1 - len(found), _FEWEST_TOGETHER), _TOGETHER))
            ) is not None:
                found += rows
                if len(found) > limit:
                    return await self._page(found[:limit], found[limit - 1].position)
                if spent.units - len(found) / 2 >= LIST_UNITS and looking.reached is not None:
                    return await self._page(found, looking.reached)
        return await self._page(found, None)

    async def scan(self, namespace: str, filter_: Filter, after: Position | None, limit: int) -> Page:
        """Partition behind partition of the index that all runs are in, so that a page is one read and none is made of
        partitions that have nothing to do with it. Those of open runs come first: a run that closes meanwhile moves to
        where nobody has looked yet."""
        (phase,) = phases(Query(filter_), None)
        if _leads(phase.filter):
            return await self.search(namespace, Query(filter_), after, limit)
        legs = _legs(namespace, conjuncts(phase.filter))
        found: list[_Found] = []
        spent = Spent()
        first = after.value if after is not None and isinstance(after.value, int) else 0
        place = None if after is None else after._replace(value=None)
        for number in range(first, len(legs)):
            leg = replace(phase, after=place if number == first else None)
            looking = _Looking(self, namespace, leg, limit + 1 - len(found), spent, partitions=legs[number])
            while (rows := await looking.next(_TOGETHER)) is not None:
                found += [row._replace(position=row.position._replace(value=number)) for row in rows]
                if len(found) > limit:
                    return await self._page(found[:limit], found[limit - 1].position)
                if spent.units - len(found) / 2 >= LIST_UNITS and looking.reached is not None:
                    return await self._page(found, looking.reached._replace(value=number))
        return await self._page(found, None)

    async def count(self, namespace: str, query: Query, after: Position | None) -> Counted:
        spent, total = Spent(), 0
        groups: dict[str | None, int] = {}
        (phase,) = phases(query, after)
        looking = _Looking(self, namespace, phase, 1_000, spent, group_by=query.group_by)
        while (rows := await looking.next(_TOGETHER)) is not None:
            total += len(rows)
            if query.group_by is not None:
                for row in rows:
                    value = visibility_rows.values(row.item).get(query.group_by.name)
                    group = value if isinstance(value, str) else None
                    groups[group] = groups.get(group, 0) + 1
                if len(groups) > MAX_GROUPS:
                    raise TooManyGroups
            if spent.units >= COUNT_UNITS and looking.reached is not None:
                break
        else:
            looking.reached = None
        return Counted(total, tuple(Group(*group) for group in groups.items()), looking.reached)

    async def _page(self, found: Sequence[_Found], reached: Position | None) -> Page:
        """With memos and search attributes, which the index does not carry."""
        wanted = [row.item for row in found if "at" not in row.item and visibility_rows.must_read(row.item, SHOWN)]
        records = await self.records([(item["pk"], item["sk"]) for item in wanted], Spent())
        executions = []
        for row in found:
            whole = records.get((row.item["pk"], row.item["sk"]))
            shown = row.item if whole is None or "at" not in whole else {**row.item, "at": whole["at"]}
            executions.append(visibility_rows.info(shown))
        return Page(executions, reached)

    async def records(self, wanted: Sequence[tuple[str, str]], spent: Spent) -> dict[tuple[str, str], Item]:
        """Whole records that are there, by key."""
        of = [to_attributes({"pk": pk, "sk": sk}) for pk, sk in dict.fromkeys(wanted)]
        found: dict[tuple[str, str], Item] = {}
        for attributes in await self._dynamodb.get_all(self._table, of, strong=False):
            spent.read(size(attributes))
            item = from_attributes(attributes)
            found[item["pk"], item["sk"]] = item
        return found

    def is_there(self, item: Item) -> bool:
        """Neither over nor deleted."""
        over = "x" in item and item["x"] <= int(self._clock.now().timestamp())
        return visibility_rows.is_run(item) and not over

    def walk(self, range_: Range, phase: Phase, after: str, keyed: int, first: int, spent: Spent) -> Walk:
        """``first``: rows that are read at once, to begin with."""
        return Walk(
            self._dynamodb,
            self._table,
            range_,
            descending=phase.order.descending,
            after=after,
            keyed=keyed,
            first=max(first, 1),
            spent=spent,
        )

    def sorted(self, namespace: str, workflow_id: str, phase: Phase, after: str, spent: Spent) -> Sorted:
        partition = keys.visible_key(ExecutionKey(namespace, workflow_id))
        descending = phase.order.descending
        return Sorted(self._dynamodb, self._table, partition, descending=descending, after=after, spent=spent)


class _Looking:
    """Goes through one phase of a query."""

    def __init__(
        self,
        of: VisibilitySearch,
        namespace: str,
        phase: Phase,
        first: int,
        spent: Spent,
        *,
        group_by: Attribute | None = None,
        partitions: Sequence[str] | None = None,
    ) -> None:
        """``partitions``: of the index by status and start, these alone."""
        self._partitions = partitions
        self.reached: Position | None = None
        """The last run that was looked at."""
        self._shown: Position | None = None
        """The last that was found: one that closes while this reads is in two partitions, in the same place of both."""
        self._of = of
        self._namespace = namespace
        self._phase = phase
        self._spent = spent
        self._by_value = phase.order.attribute != START_TIME
        self._indexed: Attribute | None = None
        """Of whose own index the rows are; they say nothing but where the record is."""
        asked = attributes_of(phase.filter) | ({group_by} if group_by is not None else set())
        self._bits = visibility_rows.needed(asked)
        # Of many walks each has a part of a page.
        first = first if partitions is not None else min(first, _TOGETHER)
        self._merged = Merged(self._walks(first), descending=phase.order.descending)
        self._opened = False

    async def next(self, count: int) -> list[_Found] | None:
        """Those that satisfy the filter among the next rows; None when there are no more."""
        if not self._opened:
            self._opened = True
            await self._merged.open(asyncio.gather)
        rows = await self._merged.take(count)
        if not rows:
            return None
        wanted = [key for row in rows if (key := self._to_read(row.item)) is not None]
        records = await self._of.records(wanted, self._spent) if wanted else {}
        found: list[_Found] = []
        for row in rows:
            position = self._position(row.key)
            self.reached = position
            item = records.get(self._record_key(row.item), None if self._indexed else row.item)
            if item is None or not self._of.is_there(item) or not self._is_of(row.item, item):
                continue
            if position != self._shown and matches(self._phase.filter, visibility_rows.values(item)):
                self._shown = position
                found.append(_Found(item, position))
        return found

    def _record_key(self, item: Item) -> tuple[str, str]:
        return visibility_index.record_key(self._namespace, item) if self._indexed else (item["pk"], item["sk"])

    def _to_read(self, item: Item) -> tuple[str, str] | None:
        if self._indexed or ("at" not in item and visibility_rows.must_read(item, self._bits)):
            return self._record_key(item)
        return None

    def _is_of(self, entry: Item, record: Item) -> bool:
        """Whether an item of an attribute's index still says what the record says: a run may have some that do not."""
        if self._indexed is None:
            return True
        typed = visibility_rows.custom(record).get(self._indexed.name)
        return typed is not None and encoded(typed[1]) == visibility_index.split(entry["sk"])[0]

    def _position(self, key: str) -> Position:
        value, start = visibility_index.split(key) if self._by_value else (None, key)
        started, _, run_id = start.partition("#")
        return Position(from_us(int(started)), run_id, value)

    # --- where to look ---

    def _walks(self, first: int) -> list[Rows]:
        terms = conjuncts(self._phase.filter)
        if self._by_value:
            return self._in_order_of(self._phase.order.attribute, first)
        after = _after_start(self._phase)
        for term in terms:
            if isinstance(term, Compare) and term.attribute == WORKFLOW_ID and term.operator is Operator.EQ:
                return [self._of.sorted(self._namespace, str(term.value), self._phase, after, self._spent)]
        low, high = self._starts(terms, after)
        for term in terms:
            self._indexed, values = _values_of(term)
            if self._indexed is not None:
                ranges = [range_ for value in values for range_ in self._of_value(self._indexed, value, low, high)]
                keyed = visibility_index.before_start
                return [self._walk(range_, after, keyed(range_.low), first) for range_ in ranges]
        partitions = self._partitions
        if partitions is None:
            partitions = _partitions(self._namespace, _statuses(terms))
        return [self._walk(Range(partition, low, high, True), after, 0, first) for partition in partitions]

    def _of_value(self, attribute: Attribute, value: Value, low: str, high: str) -> list[Range]:
        code = encoded(value)
        low, high = visibility_index.joined(code, low), visibility_index.joined(code, high)
        partitions = visibility_index.partitions(self._namespace, attribute.name, attribute.type)
        return [Range(partition, low, high, False) for partition in partitions]

    def _walk(self, range_: Range, after: str, keyed: int, first: int) -> Walk:
        return self._of.walk(range_, self._phase, after, keyed, first, self._spent)

    def _in_order_of(self, attribute: Attribute, first: int) -> list[Rows]:
        self._indexed = attribute
        first_value, last_value = bounds(self._phase.filter, attribute)
        low = BEFORE_ALL if first_value is None else encoded(first_value)
        high = BEHIND_ALL if last_value is None else visibility_index.joined(encoded(last_value), BEHIND_ALL)
        place, after = self._phase.after, ""
        if place is not None:
            after = visibility_index.joined(str(place.value), start_key(place.start_time, place.run_id))
            low, high = (low, min(high, after)) if self._phase.order.descending else (max(low, after), high)
        high = max(low, high)
        return [
            self._walk(Range(partition, low, high, False), after, 0, first)
            for partition in visibility_index.partitions(self._namespace, attribute.name, attribute.type)
        ]

    def _starts(self, terms: Sequence[Filter], after: str) -> tuple[str, str]:
        """Keys around all start times that the filter and the place leave."""
        first, last = bounds(All(tuple(terms)), START_TIME)
        low = _FIRST if first is None else start_key(_time(first), "")
        high = _LAST if last is None else start_key(_time(last), BEHIND_ALL)
        if after:
            low, high = (low, min(high, after)) if self._phase.order.descending else (max(low, after), high)
        return low, max(low, high)


def _after_start(phase: Phase) -> str:
    return "" if phase.after is None else start_key(phase.after.start_time, phase.after.run_id)


def _values_of(term: Filter) -> tuple[Attribute | None, list[Value]]:
    """Values of an indexed attribute of which each run found has one; no attribute when the term is of none."""
    given: tuple[Value, ...] = ()
    if isinstance(term, Compare) and term.operator is Operator.EQ:
        attribute, given = term.attribute, (term.value,)
    elif isinstance(term, In) and len(term.values) <= _MOST_VALUES:
        attribute, given = term.attribute, term.values
    else:
        return None, []
    if not attribute.custom or attribute.type not in KINDS:
        return None, []
    # Two values may look the same in the index, which is to be walked through once.
    return attribute, list({encoded(value): value for value in given}.values())


def _leads(filter_: Filter) -> bool:
    """Whether a term has an index of its own, or names a workflow."""
    return any(
        _values_of(term)[0] is not None
        or (isinstance(term, Compare) and term.attribute == WORKFLOW_ID and term.operator is Operator.EQ)
        for term in conjuncts(filter_)
    )


_OPEN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.PAUSED)


def _legs(namespace: str, terms: Sequence[Filter]) -> list[list[str]]:
    """Partitions that a scan goes through one behind the other; those of open runs at once, which move among them."""
    statuses = _statuses(terms)
    opened = _partitions(namespace, [status for status in statuses if status in _OPEN])
    closed = _partitions(namespace, [status for status in statuses if status not in _OPEN])
    return [*([opened] if opened else []), *([partition] for partition in closed)]


def _partitions(namespace: str, statuses: Sequence[WorkflowExecutionStatus]) -> list[str]:
    return [
        visibility_rows.index_key(namespace, status, number)
        for status in statuses
        for number in range(INDEX_PARTITIONS)
    ]


def _time(value: Value) -> datetime:
    assert isinstance(value, datetime)
    return value


def _statuses(terms: Sequence[Filter]) -> list[WorkflowExecutionStatus]:
    """Those that the filter leaves."""
    about = [term for term in terms if attributes_of(term) == {STATUS}]
    return [
        status
        for status in WorkflowExecutionStatus
        if all(matches(term, {STATUS.name: status.value}) for term in about)
    ]
