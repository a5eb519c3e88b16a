"""Markers on DynamoDB: put-if-absent of small values, replaced once they have expired.

``v`` is the value, ``u`` the exact time of expiry in microseconds, ``x`` the same for the table's own clean-up.
"""

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import Any

from ...history.claims import claimed_at
from ...history.commit import ExecutionKey
from ...history.ports import Marker
from ...timer_sweeper.buckets import EPOCH
from . import keys
from .attributes import Attributes, Item, Value, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import seconds
from .faults import ConditionFailed

_MICROSECOND = timedelta(microseconds=1)


class MarkersTable:
    def __init__(self, dynamodb: ServiceClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    async def put(self, key: ExecutionKey, name: str, marker: Marker, now: datetime) -> Marker:
        """A repeat of one's own finds it there, so a lost answer needs no care."""
        item: dict[str, Value] = {
            "pk": keys.log_key(key),
            "sk": keys.marker_key(name),
            "v": marker.value,
            "u": (marker.expires_at - EPOCH) // _MICROSECOND,
            "x": seconds(marker.expires_at),
        }
        try:
            await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=to_attributes(item),
                ConditionExpression="attribute_not_exists(pk) OR u <= :now",
                ExpressionAttributeValues={":now": value((now - EPOCH) // _MICROSECOND)},
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as failed:
            if failed.item is None:
                raise  # a condition that only something that is there can fail
            return _decode(failed.item)
        return marker

    async def get(self, key: ExecutionKey, name: str) -> Marker | None:
        where = to_attributes({"pk": keys.log_key(key), "sk": keys.marker_key(name)})
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=where, ConsistentRead=True)
        return _decode(answer["Item"]) if "Item" in answer else None

    async def erase(self, key: ExecutionKey, first: int, last: int) -> None:
        """Those that were put while the log's newest seq was in that range; not one that was put anew meanwhile."""
        query: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :markers)",
            "ExpressionAttributeValues": to_attributes({":pk": keys.log_key(key), ":markers": keys.MARKERS}),
            "ProjectionExpression": "pk, sk, v, u",
        }
        while True:
            answer = await self._dynamodb.call("query", **query)
            found = [from_attributes(item) for item in answer["Items"]]
            await asyncio.gather(*(self._delete(item) for item in found if first <= claimed_at(item["v"]) <= last))
            if not (after := answer.get("LastEvaluatedKey")):
                return
            query["ExclusiveStartKey"] = after

    async def _delete(self, item: Item) -> None:
        with contextlib.suppress(ConditionFailed):
            await self._dynamodb.call(
                "delete_item",
                TableName=self._table,
                Key=to_attributes({"pk": item["pk"], "sk": item["sk"]}),
                ConditionExpression="v = :v AND u = :u",
                ExpressionAttributeValues={":v": value(item["v"]), ":u": value(item["u"])},
            )


def _decode(attributes: Attributes) -> Marker:
    item = from_attributes(attributes)
    return Marker(item["v"], EPOCH + timedelta(microseconds=item["u"]))
