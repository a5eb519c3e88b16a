"""Leases of the timers' partitions in the control table: one item each, all of one layout under one key.

pk ``LEASE#timer#{layout version}`` (0: of the hours' buckets), sk the partition's number; ``o`` owner, ``c`` counter,
``u`` until, ``k`` cursor (milliseconds).
"""

from typing import Any

from ...timer_sweeper.buckets import Partition
from ...timer_sweeper.ports import Lease
from .attributes import Item, Value, from_attributes, to_attributes
from .client import ServiceClient
from .faults import ConditionFailed


class TimerLeases:
    """Leases on DynamoDB."""

    def __init__(self, dynamodb: ServiceClient, table: str) -> None:
        self._dynamodb = dynamodb
        self._table = table

    async def held(self, version: int) -> list[Lease]:
        leases: list[Lease] = []
        more: dict[str, Any] = {}
        while True:
            answer = await self._dynamodb.call(
                "query",
                TableName=self._table,
                ConsistentRead=True,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=to_attributes({":pk": _partition_key(version)}),
                **more,
            )
            leases += [_decode(version, from_attributes(item)) for item in answer["Items"]]
            if "LastEvaluatedKey" not in answer:
                return leases
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}

    async def change(self, lease: Lease) -> bool:
        partition, owner, counter, until_ms, cursor_ms = lease
        item: dict[str, Value] = {
            "pk": _partition_key(partition.version),
            "sk": f"{partition.number:03d}",
            "o": owner,
            "c": counter,
            "u": until_ms,
            "k": cursor_ms,
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if counter > 1:
            condition = {
                "ConditionExpression": "c = :c",
                "ExpressionAttributeValues": to_attributes({":c": counter - 1}),
            }
        try:
            await self._dynamodb.call(
                "put_item",
                TableName=self._table,
                Item=to_attributes(item),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **condition,
            )
        except ConditionFailed as failed:
            # An earlier try of this very call may have been done without an answer.
            return failed.item is not None and _decode(partition.version, from_attributes(failed.item)) == lease
        return True


def _partition_key(version: int) -> str:
    return f"LEASE#timer#{version}"


def _decode(version: int, item: Item) -> Lease:
    return Lease(Partition(version, int(item["sk"])), item["o"], item["c"], item["u"], item["k"])
