"""Who polls which task queue, as items of the control table that end with their worker's silence.

``t`` is the time of the last note in milliseconds; ``x`` lets the table forget it.
"""

from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from stepwell.api.limits import POLLER_SEEN
from stepwell.api.requests import PollerInfo

from ...common.clock import Clock
from ...matching.queue_name import QueueName
from ...timer_sweeper.buckets import EPOCH
from .attributes import Value, from_attributes, to_attributes
from .client import ServiceClient
from .commit_items import seconds

_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_SORT_KEY = 1_024
_CALLED_FOR = timedelta(days=90)
"""Without any call in between. A function that was removed is missed that late: then who asks waits for nobody."""


class PollerItems:
    """Implements ``history.ports.PollersSeen``."""

    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock

    async def note(self, name: QueueName, identity: str, at: datetime) -> None:
        item: dict[str, Value] = {
            "pk": _partition(name),
            "sk": _sort_key(identity),
            "i": identity,
            "t": (at - EPOCH) // _MILLISECOND,
            "x": seconds(at + 2 * POLLER_SEEN),
        }
        await self._dynamodb.call("put_item", TableName=self._table, Item=to_attributes(item))

    async def note_called(self, name: QueueName, at: datetime) -> None:
        item: dict[str, Value] = {**_called(name), "x": seconds(at + _CALLED_FOR)}
        await self._dynamodb.call("put_item", TableName=self._table, Item=to_attributes(item))

    async def is_called(self, name: QueueName) -> bool:
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=to_attributes(_called(name)))
        found = answer.get("Item")
        return found is not None and int(from_attributes(found)["x"]) > seconds(self._clock.now())

    async def pollers(self, name: QueueName) -> list[PollerInfo]:
        since = (self._clock.now() - POLLER_SEEN - EPOCH) // _MILLISECOND
        found: list[dict[str, Any]] = []
        more: dict[str, Any] = {}
        while True:
            answer = await self._dynamodb.call(
                "query",
                TableName=self._table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues=to_attributes({":pk": _partition(name)}),
                **more,
            )
            found += [from_attributes(item) for item in answer.get("Items", ())]
            if "LastEvaluatedKey" not in answer:
                break
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return [
            PollerInfo(identity=item["i"], last_access_time=EPOCH + item["t"] * _MILLISECOND)
            for item in found
            if item["t"] >= since
        ]


def _called(name: QueueName) -> dict[str, Value]:
    return {"pk": f"CALLED#{name.kind.value}#{name.namespace}#{name.task_queue}", "sk": "-"}


def _partition(name: QueueName) -> str:
    return f"POLLER#{name.kind.value}#{name.namespace}#{name.task_queue}"


def _sort_key(identity: str) -> str:
    if 0 < len(identity.encode()) <= _LONGEST_SORT_KEY:
        return identity
    return f"#{blake2b(identity.encode(), digest_size=16).hexdigest()}"
