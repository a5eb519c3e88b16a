"""Who polls which task queue, as items of the control table that end with their worker's silence.

All notes of a namespace are one partition, in the order of kinds and queues: those of a queue are read alone, and those
of all queues together. A worker notes once a minute, so a partition takes those of some ten thousand.
``t`` is the time of the last note in milliseconds; ``x`` lets the table forget it.
"""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

from stepwell.api.enums import TaskQueueKind
from stepwell.api.limits import POLLER_SEEN
from stepwell.api.requests import PollerInfo

from ...common.clock import Clock
from ...matching.queue_name import QueueName
from ...timer_sweeper.buckets import EPOCH
from .attributes import Value, from_attributes, to_attributes
from .client import ServiceClient
from .commit_items import seconds

_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_IDENTITY = 900
"""Of a sort key, whose bytes are 1,024 at most."""

_MOST_PAGES = 20
"""Of 1 MB. The table forgets notes late, and a namespace whose workers come and go leaves many."""

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
            "pk": _partition(name.namespace),
            "sk": _of_queue(name) + _part(identity),
            "i": identity,
            "q": name.task_queue,
            "k": name.kind.value,
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
        condition = "pk = :pk AND begins_with(sk, :queue)"
        keys: dict[str, Value] = {":pk": _partition(name.namespace), ":queue": _of_queue(name)}
        return [_info(item) async for page in self._pages(condition, keys) for item in page]

    async def in_namespace(self, namespace: str, most: int) -> list[tuple[QueueName, PollerInfo]] | None:
        found: list[tuple[QueueName, PollerInfo]] = []
        pages = 0
        async for page in self._pages("pk = :pk", {":pk": _partition(namespace)}):
            pages += 1
            found += [(QueueName(namespace, item["q"], TaskQueueKind(item["k"])), _info(item)) for item in page]
            if len(found) > most or pages > _MOST_PAGES:
                return None
        return found

    async def _pages(self, condition: str, keys: dict[str, Value]) -> AsyncIterator[list[dict[str, Any]]]:
        """Of notes that count: an answer of the table each, which may have none."""
        since = (self._clock.now() - POLLER_SEEN - EPOCH) // _MILLISECOND
        more: dict[str, Any] = {}
        while True:
            answer = await self._dynamodb.call(
                "query",
                TableName=self._table,
                KeyConditionExpression=condition,
                FilterExpression="t >= :since",
                ExpressionAttributeValues=to_attributes({**keys, ":since": since}),
                **more,
            )
            yield [from_attributes(item) for item in answer.get("Items", ())]
            if "LastEvaluatedKey" not in answer:
                return
            more = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _called(name: QueueName) -> dict[str, Value]:
    return {"pk": f"CALLED#{name.kind.value}#{name.namespace}#{name.task_queue}", "sk": "-"}


def _partition(namespace: str) -> str:
    return f"POLLERS#{namespace}"


def _of_queue(name: QueueName) -> str:
    """With which the sort keys of its notes begin. Names of queues may be long, and may be the beginnings of others."""
    return f"{name.kind.value}#{_hash(name.task_queue)}#"


def _part(identity: str) -> str:
    return identity if len(identity.encode()) <= _LONGEST_IDENTITY else f"#{_hash(identity)}"


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _info(item: dict[str, Any]) -> PollerInfo:
    return PollerInfo(identity=item["i"], last_access_time=EPOCH + item["t"] * _MILLISECOND)
