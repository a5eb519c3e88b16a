"""Faults planted into schedules, one at a time, to show that the simulation finds them."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from unittest import mock

import msgspec
from stepwell.api.enums import ScheduleOverlapPolicy

from stepwell_server.common.control import ControlRecord, wake_up_id
from stepwell_server.history.answers import Answer
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.outside_waiters import OutsideWaiters
from stepwell_server.history.requests import Start
from stepwell_server.scheduler import action, overlap, scheduler
from stepwell_server.scheduler.requests import Step
from stepwell_server.scheduler.state import Run, ScheduleRecord
from tests.simulation.ports import FaultyControl

_replace = msgspec.structs.replace
_write = scheduler.Scheduler._write
_start_of = action.start_of


def started_before_the_write() -> Any:
    """What was started is not in the record when the write does not land, and by then something else may be decided."""

    async def write(
        self: scheduler.Scheduler, stored: ControlRecord, before: ScheduleRecord, decided: Step, *more: Any
    ) -> bool:
        if decided.starts:
            fresh = frozenset(run.run_id for run in decided.starts)
            await self._carry_out(scheduler._Decided(_replace(decided, stops=()), fresh))
        return await _write(self, stored, before, decided, *more)

    return mock.patch.object(scheduler.Scheduler, "_write", write)


def ids_of_each_attempt() -> Any:
    """A start that is made again is another one."""

    def start_of(record: ScheduleRecord, run: Run) -> Start:
        start = _start_of(record, run)
        fresh = str(uuid.uuid4())
        return _replace(start, run_id=fresh, start=_replace(start.start, request_id=fresh))

    return mock.patch.object(action, "start_of", start_of)


def armed_behind_the_write() -> Any:
    """A crash in between leaves a schedule that nobody wakes, if it was an order: wake-ups come again."""

    async def put(self: FaultyControl, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        stored = await self._write(self._disk.put_control(self._control, record, None))
        if arm is not None:
            await self._faults.crash("crash_after_arm")
            await self._disk.do(self._disk.arm(ExecutionKey(record.namespace, wake_up_id(record.kind, record.id)), arm))
        return stored

    return mock.patch.object(FaultyControl, "put", put)


def news_never_come() -> Any:
    """Of any end. What is looked at by the next wake-up is found all the same; what waits while it is paused is not."""

    async def tell(self: OutsideWaiters, waiter: ExecutionKey, answers: Sequence[Answer]) -> None:
        return

    return mock.patch.object(OutsideWaiters, "tell", tell)


def begun_side_by_side() -> Any:
    """Whatever the overlap policy is."""
    return mock.patch.object(overlap, "overlap_of", return_value=ScheduleOverlapPolicy.ALLOW_ALL)
