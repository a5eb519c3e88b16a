"""DynamoDB in memory: strong and eventual reads, conditions that say what is there, pages, an index that lags, expiry
that deletes late and in any order, and the stream of a table. Each call is one step that nothing comes between.
"""

import bisect
from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from stepwell_server.adapters.aws.attributes import size
from stepwell_server.adapters.aws.faults import fault_of
from stepwell_server.common.clock import Clock
from tests.simulation.aws import expressions
from tests.simulation.aws.streams import EmulatedStream

Attributes = Mapping[str, Mapping[str, Any]]
OnWrite = Callable[[str, Attributes], None]

_LAG_SECONDS = 2.0
"""By which an eventual read, or the index, may be behind."""

_OF_A_BUCKET = "pk = :pk AND sk BETWEEN :first AND :last"
_PAGE_BYTES = 1_000_000
_NO_LIMIT = 1_000_000
_MAX_ITEM_BYTES = 409_600
_MAX_BATCH = 100


class _Write(NamedTuple):
    at: float
    pk: str
    sk: str
    before: Attributes | None


class _Table:
    def __init__(self) -> None:
        self.items: dict[str, dict[str, Attributes]] = {}
        self.order: dict[str, list[str]] = {}
        self.recent: deque[_Write] = deque()
        self.stream: EmulatedStream | None = None

    def get(self, pk: str, sk: str) -> Attributes | None:
        return self.items.get(pk, {}).get(sk)

    def set(self, pk: str, sk: str, item: Attributes | None) -> None:
        rows, order = self.items.setdefault(pk, {}), self.order.setdefault(pk, [])
        if item is None:
            if rows.pop(sk, None) is not None:
                order.remove(sk)
        else:
            if sk not in rows:
                bisect.insort(order, sk)
            rows[sk] = item
        if not rows:
            del self.items[pk], self.order[pk]


class EmulatedDynamo:
    """``on_write`` is told of each put, with its table, before anybody can read it. ``index`` names the index over
    ``gp`` and ``gs``. ``lags``: eventual reads may be behind."""

    def __init__(self, clock: Clock, random: Random, on_write: OnWrite, *, page: int = 0, lags: bool = True) -> None:
        self._clock = clock
        self._random = random
        self._on_write = on_write
        self._page = page
        """At most so many rows a page; 0: as many as are asked for."""
        self._lags = lags
        self._tables: dict[str, _Table] = {}
        self._made = clock.now()
        self._number = 0
        self.calls = 0

    def create(self, *tables: str, stream_of: str = "") -> None:
        for name in tables:
            self._tables[name] = _Table()
        if stream_of:
            self._tables[stream_of].stream = EmulatedStream(self._clock)

    def stream(self, table: str) -> EmulatedStream:
        stream = self._tables[table].stream
        assert stream is not None
        return stream

    def call(self, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Raises what a client of ours does for one try."""
        self.calls += 1
        if operation == "batch_get_item":
            return self._batch_get_item(**parameters)
        name = parameters["TableName"]
        if name not in self._tables:
            raise self._refused(operation, name, "ResourceNotFoundException", "no such table")
        try:
            answer: dict[str, Any] = getattr(self, f"_{operation}")(self._tables[name], **parameters)
        except expressions.BadExpression as error:
            raise self._refused(operation, name, "ValidationException", str(error)) from error
        return answer

    def delete_expired(self, share: float) -> int:
        """Deletes about that share of what has expired, in no order, as DynamoDB does within days."""
        now = self._clock.now().timestamp()
        gone = 0
        for table in self._tables.values():
            over = [
                (pk, sk)
                for pk, rows in table.items.items()
                for sk, item in rows.items()
                if int(item.get("x", {}).get("N", now + 1)) < now and self._random.random() < share
            ]
            for pk, sk in over:
                self._write(table, pk, sk, None)
            gone += len(over)
        return gone

    def rows(self, table: str) -> list[Attributes]:
        return [item for rows in self._tables[table].items.values() for item in rows.values()]

    # --- writes ---

    def _put_item(self, table: _Table, TableName: str, Item: Attributes, **options: Any) -> dict[str, Any]:
        if size(Item) > _MAX_ITEM_BYTES:
            raise self._refused("put_item", TableName, "ValidationException", "the item is too large")
        pk, sk = Item["pk"]["S"], Item["sk"]["S"]
        before = table.get(pk, sk)
        self._check("put_item", TableName, before, options)
        self._on_write(TableName, Item)
        self._write(table, pk, sk, dict(Item))
        return {"Attributes": dict(before)} if before and options.get("ReturnValues") == "ALL_OLD" else {}

    def _update_item(
        self, table: _Table, TableName: str, Key: Attributes, UpdateExpression: str, **options: Any
    ) -> dict[str, Any]:
        pk, sk = Key["pk"]["S"], Key["sk"]["S"]
        there = table.get(pk, sk)
        self._check("update_item", TableName, there, options)
        names, values = _names_and_values(options)
        self._write(table, pk, sk, expressions.updated(UpdateExpression, there or Key, names, values))
        return {}

    def _delete_item(self, table: _Table, TableName: str, Key: Attributes, **options: Any) -> dict[str, Any]:
        pk, sk = Key["pk"]["S"], Key["sk"]["S"]
        there = table.get(pk, sk)
        self._check("delete_item", TableName, there, options)
        if there is not None:
            self._write(table, pk, sk, None)
        return {}

    def _check(self, operation: str, name: str, there: Attributes | None, options: Mapping[str, Any]) -> None:
        condition = options.get("ConditionExpression")
        names, values = _names_and_values(options)
        if condition is None or expressions.holds(condition, there, names, values):
            return
        shown = there if options.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else None
        raise fault_of("dynamodb", operation, name, "ConditionalCheckFailedException", "planned", 400, shown)

    def _write(self, table: _Table, pk: str, sk: str, item: Attributes | None) -> None:
        before = table.get(pk, sk)
        now = self._clock.monotonic()
        table.recent.append(_Write(now, pk, sk, before))
        while table.recent and table.recent[0].at < now - _LAG_SECONDS:
            table.recent.popleft()
        table.set(pk, sk, item)
        if table.stream is not None and item != before:
            event = "REMOVE" if item is None else "INSERT" if before is None else "MODIFY"
            self._number += 1
            table.stream.add(event, {"pk": {"S": pk}, "sk": {"S": sk}}, item, self._number)

    # --- reads ---

    def _get_item(
        self, table: _Table, TableName: str, Key: Attributes, ConsistentRead: bool = False, **options: Any
    ) -> dict[str, Any]:
        item = self._seen(table, Key["pk"]["S"], Key["sk"]["S"], ConsistentRead)
        return {} if item is None else {"Item": _shown(item, options)}

    def _seen(self, table: _Table, pk: str, sk: str, strong: bool) -> Attributes | None:
        """An eventual read shows the item as it was up to two seconds ago."""
        now = table.get(pk, sk)
        if strong or not self._lags or self._random.random() < 0.5:
            return now
        since = self._clock.monotonic() - _LAG_SECONDS * self._random.random()
        for write in table.recent:
            if write.at >= since and (write.pk, write.sk) == (pk, sk):
                return write.before
        return now

    def _query(
        self, table: _Table, TableName: str, KeyConditionExpression: str, Limit: int = 0, **options: Any
    ) -> dict[str, Any]:
        names, values = _names_and_values(options)
        attribute, partition = expressions.partition_of(KeyConditionExpression, names, values)
        sort = "gs" if attribute == "gp" else "sk"
        strong = bool(options.get("ConsistentRead"))
        if KeyConditionExpression == _OF_A_BUCKET:  # most of all queries, and nearly all of those without rows
            order = table.order.get(partition, [])
            first = bisect.bisect_left(order, values[":first"]["S"])
            last = bisect.bisect_right(order, values[":last"]["S"])
            rows: list[Attributes] = [table.items[partition][sk] for sk in order[first:last]]
        else:
            rows = self._partition(table, attribute, partition, sort)
            rows = [row for row in rows if expressions.holds(KeyConditionExpression, row, names, values)]
        if not options.get("ScanIndexForward", True):
            rows.reverse()
        start = options.get("ExclusiveStartKey")
        if start is not None:
            places = [index for index, row in enumerate(rows) if _is_behind(row, start, sort, options)]
            rows = rows[places[0] :] if places else []
        limit = min(Limit or _NO_LIMIT, self._page or _NO_LIMIT)
        page = _page(rows[:limit])
        keys = ("pk", "sk", "gp", "gs") if attribute == "gp" else ("pk", "sk")
        # Also when the limit is met exactly: whoever asks finds that nothing follows.
        goes_on = len(page) < len(rows) or len(page) == limit
        more = {"LastEvaluatedKey": {name: page[-1][name] for name in keys}} if page and goes_on else {}
        shown = (self._seen(table, row["pk"]["S"], row["sk"]["S"], strong) for row in page)
        keeps = options.get("FilterExpression")
        found = [row for row in shown if row is not None]
        kept = [row for row in found if keeps is None or expressions.holds(keeps, row, names, values)]
        return {"Items": [_shown(row, options) for row in kept], **more}

    def _partition(self, table: _Table, attribute: str, partition: str, sort: str) -> list[Attributes]:
        if attribute == "pk":
            rows = table.items.get(partition, {})
            return [rows[sk] for sk in table.order.get(partition, ())]
        found = [row for rows in table.items.values() for row in rows.values() if _text(row, attribute) == partition]
        return sorted(found, key=lambda row: _text(row, sort))

    def _batch_get_item(self, RequestItems: Mapping[str, Any]) -> dict[str, Any]:
        """Some of it may be left undone, as when a table is throttled."""
        found: dict[str, list[Any]] = {}
        undone: dict[str, Any] = {}
        for name, request in RequestItems.items():
            wanted = list(request["Keys"])
            if len(wanted) > _MAX_BATCH:
                raise self._refused("batch_get_item", name, "ValidationException", "more than 100 keys")
            cut = len(wanted) if self._random.random() < 0.9 else self._random.randrange(1, len(wanted) + 1)
            if cut < len(wanted):
                undone[name] = {**request, "Keys": wanted[cut:]}
            table = self._tables[name]
            strong = bool(request.get("ConsistentRead"))
            items = [self._seen(table, key["pk"]["S"], key["sk"]["S"], strong) for key in wanted[:cut]]
            found[name] = [_shown(item, request) for item in items if item is not None]
        return {"Responses": found, "UnprocessedKeys": undone}

    def _describe_table(self, table: _Table, TableName: str) -> dict[str, Any]:
        told: dict[str, Any] = {"CreationDateTime": self._made, "TableStatus": "ACTIVE"}
        if table.stream is not None:
            told |= {"LatestStreamArn": f"arn:{TableName}", "StreamSpecification": {"StreamEnabled": True}}
        return {"Table": told}

    def _refused(self, operation: str, name: str, code: str, message: str) -> Exception:
        return fault_of("dynamodb", operation, name, code, message, 400, None)


def _names_and_values(options: Mapping[str, Any]) -> tuple[Mapping[str, str], Attributes]:
    return options.get("ExpressionAttributeNames", {}), options.get("ExpressionAttributeValues", {})


def _shown(item: Attributes, options: Mapping[str, Any]) -> dict[str, Any]:
    """A copy: who reads it may keep it."""
    wanted = options.get("ProjectionExpression")
    if not wanted:
        return {name: dict(typed) for name, typed in item.items()}
    return expressions.projected(wanted, item, options.get("ExpressionAttributeNames", {}))


def _page(rows: list[Attributes]) -> list[Attributes]:
    page: list[Attributes] = []
    total = 0
    for row in rows:
        page.append(row)
        total += size(row)
        if total > _PAGE_BYTES:
            break
    return page


def _is_behind(row: Attributes, start: Attributes, sort: str, options: Mapping[str, Any]) -> bool:
    here, there = _text(row, sort), start[sort]["S"]
    return here > there if options.get("ScanIndexForward", True) else here < there


def _text(row: Attributes, name: str) -> str:
    return str(row.get(name, {}).get("S", ""))
