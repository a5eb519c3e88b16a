"""The two ends of a log's life: its newest commit, and what is left of it once all of it has expired.

DynamoDB deletes expired items within days and in any order. The newest commit of a log expires a week after all others,
so while it is there nothing older can be taken for it; once it has expired itself, all others have too.
"""

import asyncio
from typing import Any

from ...common.clock import Clock
from ...history.commit import ExecutionKey
from ...history.ports import SequenceGap
from . import keys
from .attributes import Item, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import HEAD_KEPT, is_there, seconds
from .faults import ConditionFailed
from .heads_seen import HELD

_DELETED_TOGETHER = 25


class LogEnds:
    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock

    async def newest(self, key: ExecutionKey) -> Item | None:
        """Strong read. None also when it has expired; then what is left is cleared away, so that a new log may begin
        at its first seq and not below the rest of the old one."""
        answer = await self._dynamodb.call("query", **self._commits(key), ScanIndexForward=False, Limit=1)
        for attributes in answer["Items"]:
            item = from_attributes(attributes)
            if is_there(item, self._clock.now()):
                return item
            await self.clear(key)
        return None

    async def hold(self, key: ExecutionKey, seq: int, run_id: str) -> None:
        """Makes sure that the commit is there, of that run (if it is known which: else it may be of another log that
        the id has had since), and stays for long enough that somebody may append behind it. Raises SequenceGap when it
        is not."""
        where = self._where(key, seq)
        answer = await self._dynamodb.call(
            "get_item", TableName=self._table, Key=where, ConsistentRead=True, ProjectionExpression="pk, run, x"
        )
        now = self._clock.now()
        item = from_attributes(answer["Item"]) if "Item" in answer else None
        if item is None or not is_there(item, now) or run_id not in ("", item["run"]):
            raise SequenceGap(seq + 1)
        if "x" not in item or item["x"] > (now + HELD).timestamp():
            return
        try:
            await self._dynamodb.call(
                "update_item",
                TableName=self._table,
                Key=where,
                UpdateExpression="SET x = :later",
                ConditionExpression="attribute_exists(pk) AND x > :now",
                ExpressionAttributeValues={
                    ":later": value(seconds(now + HEAD_KEPT)),
                    ":now": value(seconds(now)),
                },
            )
        except ConditionFailed as failed:
            raise SequenceGap(seq + 1) from failed

    async def clear(self, key: ExecutionKey) -> None:
        """Deletes what has expired of the log's commits. What has not stays, also if it came in meanwhile."""
        query = {**self._commits(key), "ProjectionExpression": "pk, sk"}
        while True:
            answer = await self._dynamodb.call("query", **query)
            found = answer["Items"]
            for start in range(0, len(found), _DELETED_TOGETHER):
                part = found[start : start + _DELETED_TOGETHER]
                await asyncio.gather(*(self._delete_expired(where) for where in part))
            if not (last := answer.get("LastEvaluatedKey")):
                return
            query["ExclusiveStartKey"] = last

    async def _delete_expired(self, where: dict[str, Any]) -> None:
        try:
            await self._dynamodb.call(
                "delete_item",
                TableName=self._table,
                Key=where,
                ConditionExpression="x <= :now",
                ExpressionAttributeValues={":now": value(int(self._clock.now().timestamp()))},
            )
        except ConditionFailed:
            return

    def _commits(self, key: ExecutionKey) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND begins_with(sk, :commits)",
            "ExpressionAttributeValues": to_attributes({":pk": keys.log_key(key), ":commits": keys.COMMITS}),
        }

    def _where(self, key: ExecutionKey, seq: int) -> dict[str, Any]:
        return to_attributes({"pk": keys.log_key(key), "sk": keys.commit_key(seq)})
