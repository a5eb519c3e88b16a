"""Leases of a stream's shards, with checkpoints, as items of ``ctl``: changed only by who knows the counter before.

Of a stream that was made anew nothing is known, so that it is read from its beginning; what is known of an old one
expires.
"""

from datetime import timedelta
from typing import Any

from ...common.clock import Clock
from ...timer_sweeper.buckets import to_ms
from .attributes import Item, Value, from_attributes, to_attributes, value
from .client import ServiceClient
from .faults import ConditionFailed
from .stream_shards import ShardLease

KEPT = timedelta(days=3)
"""Behind the last change. Records are kept for one day, and a shard that is read is renewed all the time."""


class ShardLeases:
    """Of one stream. Raises StoreUnavailable."""

    def __init__(self, dynamodb: ServiceClient, table: str, stream_arn: str, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._partition = f"STREAM#{stream_arn}"
        self._clock = clock

    async def all(self) -> dict[str, ShardLease]:
        """By shard, in strong reads."""
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": to_attributes({":pk": self._partition}),
        }
        found: dict[str, ShardLease] = {}
        while True:
            answer = await self._dynamodb.call("query", **query)
            for attributes in answer["Items"]:
                lease = _lease(from_attributes(attributes))
                found[lease.shard_id] = lease
            if not (last := answer.get("LastEvaluatedKey")):
                return found
            query["ExclusiveStartKey"] = last

    async def change(self, lease: ShardLease) -> bool:
        """Puts it if the one that is there has the counter before (none for counter 1); whether it did. A repeat of
        one's own change is done."""
        condition = "attribute_not_exists(pk)" if lease.counter == 1 else "c = :before"
        try:
            await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=to_attributes(self._item(lease)),
                ConditionExpression=condition,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **({} if lease.counter == 1 else {"ExpressionAttributeValues": {":before": value(lease.counter - 1)}}),
            )
        except ConditionFailed as failed:
            return failed.item is not None and _lease(from_attributes(failed.item)) == lease
        return True

    def _item(self, lease: ShardLease) -> dict[str, Value]:
        return {
            "pk": self._partition,
            "sk": lease.shard_id,
            "o": lease.owner,
            "c": lease.counter,
            "u": lease.until_ms,
            "s": lease.after,
            "d": int(lease.done),
            "x": to_ms(self._clock.now() + KEPT) // 1_000,
        }


def _lease(item: Item) -> ShardLease:
    return ShardLease(item["sk"], item["o"], item["c"], item["u"], item["s"], bool(item["d"]))
