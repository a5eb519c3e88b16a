"""What a reset run's history begins with, as parts on DynamoDB.

A part is put before the commit that opens its run. Until that commit is under way, the part expires, so that those of a
run that never came to be go by themselves; the commit's writer **claims** the parts first, which takes the expiry off.
``e`` is the events part, as in a commit.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from stepwell.api.events import HistoryEvent

from ...history import codec
from ...history.commit import BEGINNING, ExecutionKey
from ...history.ports import StoreUnavailable
from ...history.run_blobs import Owner
from . import keys
from .attributes import Item, from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import check_size, is_there, seconds
from .faults import ConditionFailed
from .large_parts import LargeParts, names_in

ORPHANS_KEPT = timedelta(days=7)


class PrefixesTable:
    def __init__(self, dynamodb: ServiceClient, table: str, parts: LargeParts) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._parts = parts

    async def put(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], now: datetime
    ) -> None:
        item = to_attributes(
            {
                "pk": keys.log_key(key),
                "sk": keys.prefix_key(run_id, seq),
                "e": codec.encode_events(events),
                "x": seconds(now + ORPHANS_KEPT),
            }
        )
        small = await self._parts.small(item, Owner(key, run_id), of_prefix=True)
        check_size(f"a part of the history that run {run_id!r} begins with", small)
        try:
            await self._dynamodb.call(
                "put_item", TableName=self._table, Item=small, ConditionExpression="attribute_not_exists(pk)"
            )
        except ConditionFailed:
            return  # it is there

    async def claim(self, key: ExecutionKey, run_id: str, now: datetime) -> None:
        """Raises StoreUnavailable when a part has expired since it was put: then all have to be put again."""
        parts = [item for item in await self._all(key, run_id) if "x" in item]
        if any(not is_there(part, now) for part in parts):
            raise StoreUnavailable(f"the history that run {run_id!r} begins with took too long to write; call again")
        await asyncio.gather(*(self._update(key, part["sk"], "REMOVE x", {}) for part in parts))

    async def expire(self, key: ExecutionKey, run_id: str, at: datetime) -> None:
        """From then on the parts may be deleted: their run's retention is over, or its commit did not come to be."""
        parts = await self._all(key, run_id)
        await asyncio.gather(
            *(self._update(key, part["sk"], "SET x = :x", {":x": value(seconds(at))}) for part in parts)
        )

    async def page(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> tuple[list[Item], bool]:
        """Parts in order, behind ``after_seq``, and whether there are more."""
        answer = await self._dynamodb.call("query", **self._query(key, run_id, after_seq), Limit=limit)
        parts = [await self._parts.whole(from_attributes(item), key, run_id) for item in answer["Items"]]
        return parts, "LastEvaluatedKey" in answer

    async def part_blobs(self, key: ExecutionKey, run_id: str) -> set[str]:
        """Names of the blobs that are parts of these items."""
        return {name for item in await self._all(key, run_id) for name in names_in(item)}

    async def _all(self, key: ExecutionKey, run_id: str) -> list[Item]:
        """Their sort keys and expiry, and blobs."""
        query = {**self._query(key, run_id, BEGINNING), "ProjectionExpression": "sk, x, er"}
        found: list[Item] = []
        while True:
            answer = await self._dynamodb.call("query", **query)
            found += [from_attributes(item) for item in answer["Items"]]
            if not (last := answer.get("LastEvaluatedKey")):
                return found
            query["ExclusiveStartKey"] = last

    def _query(self, key: ExecutionKey, run_id: str, after_seq: int) -> dict[str, Any]:
        bounds = {":first": keys.prefix_key(run_id, after_seq + 1), ":last": keys.prefix_key(run_id, 0)}
        return {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": to_attributes({":pk": keys.log_key(key), **bounds}),
        }

    async def _update(self, key: ExecutionKey, sk: str, expression: str, values: dict[str, Any]) -> None:
        options = {"ExpressionAttributeValues": values} if values else {}
        try:
            await self._dynamodb.call(
                "update_item",
                TableName=self._table,
                Key=to_attributes({"pk": keys.log_key(key), "sk": sk}),
                UpdateExpression=expression,
                ConditionExpression="attribute_exists(pk)",
                **options,
            )
        except ConditionFailed as failed:
            raise StoreUnavailable("a part of a prefix is gone; call again") from failed
