"""Layouts of the timer table in the control table: one item, pk ``LAYOUTS#timer``, with all there ever were (``l``:
version, partitions, from when on, in milliseconds; ``n`` how many). Absent as long as there is only the first.
"""

import logging
from typing import Any

from ...common.clock import Clock
from ...history.ports import StoreUnavailable
from ...timer_sweeper.buckets import Layout, from_ms, to_ms
from ...timer_sweeper.layouts import FRESH_MS, Layouts, grown
from .client import ServiceClient
from .faults import ConditionFailed

log = logging.getLogger(__name__)

_KEY = {"pk": {"S": "LAYOUTS#timer"}, "sk": {"S": "layouts"}}
_TRIES = 5


class TimerLayouts(Layouts):
    """As the control table says, ``FRESH_MS`` ago at most for those who ``refresh``."""

    def __init__(self, dynamodb: ServiceClient, table: str, clock: Clock) -> None:
        super().__init__()
        self._dynamodb = dynamodb
        self._table = table
        self._clock = clock
        self._read_ms: int | None = None

    async def open(self, partitions: int) -> None:
        """Reads what there is, and notes a new layout where ``partitions`` are more. Raises StoreUnavailable."""
        for _ in range(_TRIES):
            await self._read()
            wanted = grown(self.known, partitions, to_ms(self._clock.now()))
            if wanted is None:
                break
            if await self._note(wanted):
                self.known = wanted
                log.warning("From %s on the timer table has %d partitions", from_ms(wanted[-1].from_ms), partitions)
                return
        else:
            raise StoreUnavailable("the layouts of the timer table are changed by many at a time; retry later")
        if partitions < self.known[-1].partitions:
            log.warning(
                "STEPWELL_TIMER_PARTITIONS is %d, and the timer table has %d partitions, which stay: their number can "
                "grow and not fall. Set it to %d",
                partitions,
                self.known[-1].partitions,
                self.known[-1].partitions,
            )

    async def refresh(self) -> None:
        age = None if self._read_ms is None else to_ms(self._clock.now()) - self._read_ms
        if age is None or not 0 <= age < FRESH_MS:
            await self._read()

    async def _read(self) -> None:
        now_ms = to_ms(self._clock.now())
        answer = await self._dynamodb.call("get_item", TableName=self._table, Key=_KEY, ConsistentRead=True)
        if "Item" in answer:
            self.known = tuple(_layout(each["L"]) for each in answer["Item"]["l"]["L"])
        self._read_ms = now_ms

    async def _note(self, wanted: tuple[Layout, ...]) -> bool:
        """False: somebody else has noted one meanwhile, or an earlier try of this call has, without an answer."""
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if len(wanted) > 2:
            condition = {
                "ConditionExpression": "n = :n",
                "ExpressionAttributeValues": {":n": {"N": str(len(wanted) - 1)}},
            }
        layouts = [{"L": [{"N": str(number)} for number in layout]} for layout in wanted]
        item = {**_KEY, "n": {"N": str(len(wanted))}, "l": {"L": layouts}}
        try:
            await self._dynamodb.call("put_item", TableName=self._table, Item=item, **condition)
        except ConditionFailed:
            return False
        return True


def _layout(numbers: list[dict[str, str]]) -> Layout:
    return Layout(*(int(each["N"]) for each in numbers))
