"""Activity items on DynamoDB: put on the version before, read by key. What has expired counts for nothing: a run that
was deleted may come again by an import, whose activities begin anew.
"""

from collections.abc import Sequence
from typing import Any

from ...common.clock import Clock
from ...history import codec
from ...history.activity_item import ActivityItem
from ...history.commit import ExecutionKey
from ...history.ports import VersionConflict
from . import keys
from .attributes import from_attributes, to_attributes, value
from .client import ServiceClient
from .commit_items import check_size, is_there
from .faults import ConditionFailed


class ActivityItemsTable:
    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock

    def encode(self, item: ActivityItem) -> dict[str, Any]:
        """Parameters of the put. Raises StateTooLarge."""
        key = ExecutionKey(item.namespace, item.workflow_id)
        attributes = to_attributes(
            {
                "pk": keys.items_key(key, item.scheduled_event_id),
                "sk": keys.item_key(item.run_id, item.scheduled_event_id),
                "v": item.version,
                "b": codec.encode_activity_item(item),
            }
        )
        check_size(f"activity {item.activity_id!r} of workflow {item.workflow_id!r}", attributes)
        put: dict[str, Any] = {
            "TableName": self._table,
            "Item": attributes,
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
        if item.version == 1:
            now = {":now": value(int(self._clock.now().timestamp()))}
            gone = "attribute_not_exists(pk) OR x <= :now"
            return {**put, "ConditionExpression": gone, "ExpressionAttributeValues": now}
        before = {":before": value(item.version - 1)}
        return {**put, "ConditionExpression": "v = :before", "ExpressionAttributeValues": before}

    async def put(self, parameters: dict[str, Any]) -> None:
        """Raises VersionConflict, StoreUnavailable."""
        try:
            await self._dynamodb.call("put_item", **parameters)
        except ConditionFailed as failed:
            there = None if failed.item is None else self._there(failed.item)
            raise VersionConflict(there) from failed

    async def get(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        answer = await self._dynamodb.call(
            "get_item", TableName=self._table, Key=_key(key, run_id, scheduled_event_id), ConsistentRead=True
        )
        return self._there(answer["Item"]) if "Item" in answer else None

    async def read(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int], *, strong: bool = True
    ) -> list[ActivityItem]:
        wanted = [_key(key, run_id, number) for number in dict.fromkeys(scheduled_event_ids)]
        found = map(self._there, await self._dynamodb.get_all(self._table, wanted, strong=strong))
        return [item for item in found if item is not None]

    def _there(self, attributes: Any) -> ActivityItem | None:
        item = from_attributes(attributes)
        return codec.decode_activity_item(item["b"]) if is_there(item, self._clock.now()) else None


def _key(key: ExecutionKey, run_id: str, scheduled_event_id: int) -> dict[str, Any]:
    return to_attributes(
        {"pk": keys.items_key(key, scheduled_event_id), "sk": keys.item_key(run_id, scheduled_event_id)}
    )
