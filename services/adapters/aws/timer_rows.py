"""Rows of the timer table as items: ``n`` namespace, ``w`` workflow id, ``f`` fire time (microseconds), ``a`` when
armed (ms); what it awaits (``s`` a commit's seq, or ``r``, ``e``, ``i`` an item's run, event, version, or ``s``, ``r``
a control record's version and incarnation); ``q`` queued.
"""

from datetime import timedelta

from ...history.commit import ExecutionKey
from ...timer_sweeper.buckets import (
    CLOCKS_MS,
    EPOCH,
    Awaited,
    Layout,
    Partition,
    TimerRow,
    bucket_key,
    ceil_ms,
    sort_bounds,
)
from ...timer_sweeper.layouts import Layouts
from ...timer_sweeper.ports import RowsPage
from .attributes import Item, Value, from_attributes, to_attributes
from .client import ServiceClient

_MICROSECOND = timedelta(microseconds=1)


class TimerRows:
    """TimerBuckets on DynamoDB."""

    def __init__(self, dynamodb: ServiceClient, table: str, layouts: Layouts | None = None) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._layouts = layouts or Layouts()

    async def put(self, row: TimerRow) -> None:
        item = to_attributes(_encode(row, self._layouts.of_writer(row.armed_ms)))
        await self._dynamodb.call("put_item", TableName=self._table, Item=item)

    async def read(
        self, partition: Partition, bucket_ms: int, from_ms: int, to_ms: int, *, after: str = "", limit: int = 500
    ) -> RowsPage:
        first, last = sort_bounds(from_ms, to_ms)
        pk = bucket_key(partition, bucket_ms)
        options = {"ExclusiveStartKey": to_attributes({"pk": pk, "sk": after})} if after else {}
        answer = await self._dynamodb.call(
            "query",
            TableName=self._table,
            ConsistentRead=True,
            KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
            ExpressionAttributeValues=to_attributes({":pk": pk, ":first": first, ":last": last}),
            Limit=limit,
            **options,
        )
        rows = tuple(_decode(from_attributes(item)) for item in answer["Items"])
        return RowsPage(rows, from_attributes(answer["LastEvaluatedKey"])["sk"] if "LastEvaluatedKey" in answer else "")

    async def since(self) -> int:
        """When the table was made, by AWS's clock; a bit before, so that no other clock says earlier."""
        table = (await self._dynamodb.call("describe_table", TableName=self._table))["Table"]
        return ceil_ms(table["CreationDateTime"]) - CLOCKS_MS


def _encode(row: TimerRow, layout: Layout) -> dict[str, Value]:
    item: dict[str, Value] = {
        "pk": row.partition_key(layout),
        "sk": row.sort_key,
        "n": row.key.namespace,
        "w": row.key.workflow_id,
        "f": (row.fire_at - EPOCH) // _MICROSECOND,
        "a": row.armed_ms,
        "x": row.expires,
    }
    awaited = row.awaited
    if awaited.seq:
        item["s"] = awaited.seq
        if awaited.run_id:
            item["r"] = awaited.run_id
    elif awaited.version:
        item.update(r=awaited.run_id, e=awaited.scheduled_event_id, i=awaited.version)
    if row.queued:
        item["q"] = 1
    return item


def _decode(item: Item) -> TimerRow:
    return TimerRow(
        ExecutionKey(item["n"], item["w"]),
        EPOCH + timedelta(microseconds=item["f"]),
        int(item["sk"].partition("#")[0]),
        item["a"],
        Awaited(item.get("s", 0), item.get("r", ""), item.get("e", 0), item.get("i", 0)),
        "q" in item,
    )
