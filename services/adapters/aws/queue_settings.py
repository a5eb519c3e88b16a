"""Settings of task queues in the control table, read through a cache: over how many SQS queues one is spread, and for
how long a function has its messages.

Receivers go on with partitions that are sent to no more, since messages may be in them; so the number of those only
grows.
"""

import logging
from typing import Any

from ...common.clock import Clock
from ...history.ports import StoreUnavailable
from ...matching.queue_name import QueueName
from .asked_once import AskedOnce
from .client import ServiceClient
from .faults import ConditionFailed
from .names import MAX_VISIBILITY, MIN_VISIBILITY, Names
from .sqs_queues import Partitions

log = logging.getLogger(__name__)

MAX_PARTITIONS = 64
_FRESH_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 5.0
_MOST = 10_000
_SORT_KEY = "settings"


class QueueSettings:
    """Of the task queues of a cell. Namespaces hold no ``#``, so no two queues share a key."""

    def __init__(self, dynamodb: ServiceClient, names: Names, clock: Clock) -> None:
        self._dynamodb = dynamodb
        self._table = names.ctl_table
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[Partitions, float]] = {}
        self._looking = AskedOnce[tuple[str, str], Partitions]()

    async def partitions(self, queue: QueueName) -> Partitions:
        """Up to a minute old. While they cannot be read, what they were last, or one."""
        place = (queue.namespace, queue.task_queue)
        known = self._known.get(place)
        if known is not None and self._clock.monotonic() < known[1]:
            return known[0]
        # A step of two thousand activities asks two thousand times at once.
        return await self._looking.ask(place, lambda: self._look(queue, known))

    async def _look(self, queue: QueueName, known: tuple[Partitions, float] | None) -> Partitions:
        now = self._clock.monotonic()
        try:
            found, fresh = await self._read(queue), _FRESH_SECONDS
        except StoreUnavailable as error:
            log.warning("The settings of task queue %r cannot be read (%s)", queue.task_queue, error)
            found, fresh = Partitions() if known is None else known[0], _LOOK_AGAIN_SECONDS
        place = (queue.namespace, queue.task_queue)
        self._known.pop(place, None)
        self._known[place] = (found, now + fresh)
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return found

    async def set_partitions(self, queue: QueueName, count: int) -> None:
        """For both kinds of tasks. Seen by others within a minute. Raises ValueError, StoreUnavailable."""
        if not 1 <= count <= MAX_PARTITIONS:
            raise ValueError(f"a task queue has 1 to {MAX_PARTITIONS} partitions, not {count}")
        while not await self._put_partitions(queue, count, max(count, (await self._read(queue, strong=True)).received)):
            pass  # others have raised the number of those that are received from, which only grows
        self._known.pop((queue.namespace, queue.task_queue), None)

    async def _put_partitions(self, queue: QueueName, sent: int, received: int) -> bool:
        """False: more are received from by now."""
        try:
            await self._dynamodb.call(
                "update_item",
                TableName=self._table,
                Key=_key(queue),
                UpdateExpression="SET ps = :sent, pr = :received",
                ConditionExpression="attribute_not_exists(pr) OR pr <= :received",
                ExpressionAttributeValues={":sent": {"N": str(sent)}, ":received": {"N": str(received)}},
            )
        except ConditionFailed:
            return False
        return True

    async def set_visibility(self, queue: QueueName, seconds: int) -> None:
        """For both kinds of tasks, and queues that are made from now on; ``SqsQueues.apply_visibility`` for those that
        are there. Raises ValueError, StoreUnavailable."""
        if not MIN_VISIBILITY <= seconds <= MAX_VISIBILITY:
            raise ValueError(f"messages are held for {MIN_VISIBILITY} to {MAX_VISIBILITY} seconds, not {seconds}")
        await self._dynamodb.call(
            "update_item",
            TableName=self._table,
            Key=_key(queue),
            UpdateExpression="SET vt = :seconds",
            ExpressionAttributeValues={":seconds": {"N": str(seconds)}},
        )
        self._known.pop((queue.namespace, queue.task_queue), None)

    async def _read(self, queue: QueueName, *, strong: bool = False) -> Partitions:
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=_key(queue), ConsistentRead=strong)
        item: dict[str, Any] = answer.get("Item", {})
        sent = int(item.get("ps", {}).get("N", 1))
        received = max(sent, int(item.get("pr", {}).get("N", 1)))
        return Partitions(sent, received, int(item.get("vt", {}).get("N", MIN_VISIBILITY)))


def _key(queue: QueueName) -> dict[str, Any]:
    return {"pk": {"S": f"QUEUE#{queue.namespace}#{queue.task_queue}"}, "sk": {"S": _SORT_KEY}}
