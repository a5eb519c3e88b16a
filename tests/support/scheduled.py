"""Schedules on an embedded engine whose clock is the test's: no sweeper runs, wake-ups are fired when they are due."""

import dataclasses
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution, FailWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ScheduleOverlapPolicy
from stepwell.api.errors import Unavailable
from stepwell.api.schedules import (
    NewWorkflowExecutionInfo,
    Schedule,
    ScheduleAction,
    ScheduleIntervalSpec,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.control import ControlRecord, ControlStore, is_wake_up
from stepwell_server.common.metrics import NO_METRICS, Metrics
from stepwell_server.common.settings import EngineSettings
from stepwell_server.entrypoints.making import make_engine
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import QUEUE, Driver, failure, payload

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
_numbers = itertools.count(1)


class HandClock(SystemClock):
    """Wall time stands still until it is set; ``monotonic`` runs along with it."""

    def __init__(self, now: datetime = T0) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - T0).total_seconds()


class FaultyControl:
    """Counts, and dies before or behind the write that ``dies`` names (from 1; odd before, even behind). Before each
    write, and before each read, the next of what else happens then happens."""

    def __init__(self, inner: ControlStore) -> None:
        self.inner = inner
        self.reads = self.writes = 0
        self.dies = 0
        self.conflicts: list[Callable[[], Any]] = []
        self.before_reads: list[Callable[[], Any]] = []

    def _step(self) -> None:
        if self.dies:
            self.dies -= 1
            if not self.dies:
                raise StoreUnavailable("the process died")

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        self.reads += 1
        if self.before_reads:
            await self.before_reads.pop(0)()
        return await self.inner.get(kind, namespace, id)

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        self._step()
        self.writes += 1
        if self.conflicts:
            await self.conflicts.pop(0)()
        stored = await self.inner.put(record, arm=arm)
        self._step()
        return stored

    async def delete(self, record: ControlRecord) -> None:
        self.writes += 1
        if self.conflicts:
            await self.conflicts.pop(0)()
        await self.inner.delete(record)

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        self.reads += 1
        return await self.inner.list(kind, namespace, after=after, limit=limit)


class Scheduled:
    """One namespace with schedules. ``driver`` is the client and worker of what they start."""

    def __init__(self, path: str | Path = ":memory:", metrics: Metrics = NO_METRICS, **more: Any) -> None:
        self.clock = HandClock()
        self.backend = embedded_backend(path, clock=self.clock)
        self.control = FaultyControl(self.backend.control)
        settings = EngineSettings(sweeps=False, **more)
        self.engine = make_engine(dataclasses.replace(self.backend, control=self.control), settings, metrics=metrics)
        self.driver = Driver(self.engine, None)  # type: ignore[arg-type]

    async def call(self, operation: str, request: Any) -> Any:
        return await HANDLERS[operation](self.engine, request)

    async def create(self, schedule_id: str = "s", **more: Any) -> r.CreateScheduleResponse:
        request = r.CreateScheduleRequest(schedule_id=schedule_id, **({"schedule": schedule()} | more))
        return await self.call("CreateSchedule", request)  # type: ignore[no-any-return]

    async def patch(self, schedule_id: str = "s", request_id: str = "", **patch: Any) -> None:
        request = r.PatchScheduleRequest(
            schedule_id=schedule_id,
            patch=r.SchedulePatch(**patch),
            request_id=request_id or f"patch {next(_numbers)}",
        )
        await self.call("PatchSchedule", request)

    async def describe(self, schedule_id: str = "s") -> r.DescribeScheduleResponse:
        request = r.DescribeScheduleRequest(schedule_id=schedule_id)
        return await self.call("DescribeSchedule", request)  # type: ignore[no-any-return]

    async def due(self) -> list[tuple[ExecutionKey, datetime]]:
        rows = await self.backend.timers.due(self.clock.now(), 1_000)
        return [(key, fire_at) for fire_at, key in rows if is_wake_up(key.workflow_id)]

    async def fire(self) -> int:
        """All wake-ups that are due, as a sweeper does, until there are none; how many."""
        count = 0
        for _ in range(1_000):
            rows = await self.due()
            if not rows:
                return count
            for key, fire_at in rows:
                try:
                    assert await self.engine.fire(key, fire_at)
                except Unavailable:
                    continue
                await self.backend.timers.fired([(fire_at, key)])
                count += 1
        raise AssertionError("wake-ups never end")

    async def at(self, time: datetime) -> "Scheduled":
        self.clock.time = time
        await self.fire()
        return self

    async def started(self) -> list[str]:
        """Workflow ids of all runs, in order."""
        listed = await self.engine.list_workflows(r.ListWorkflowsRequest(page_size=1_000))
        return sorted(info.execution.workflow_id for info in listed.executions)

    async def finish(self, *, fails: str = "", text: str = "done") -> str:
        """Ends the run whose first task comes next, and lets the schedule hear of it."""
        task = await self.driver.take()
        if fails:
            await self.driver.complete(task.task_token, FailWorkflowExecution(failure=failure(fails)))
        else:
            await self.driver.complete(task.task_token, CompleteWorkflowExecution(result=payload(text)))
        await self.settle()
        return task.execution.workflow_id

    async def settle(self) -> None:
        assert await self.engine.settle(20)

    async def first_event(self, workflow_id: str) -> Any:
        request = r.GetHistoryRequest(execution=WorkflowExecution(workflow_id=workflow_id))
        return (await self.engine.get_history(request)).events[0].attributes


@asynccontextmanager
async def scheduled(
    path: str | Path = ":memory:", metrics: Metrics = NO_METRICS, **more: Any
) -> AsyncIterator[Scheduled]:
    made = Scheduled(path, metrics, **more)
    await made.engine.start()
    try:
        yield made
    finally:
        await made.engine.stop()
        await made.backend.close()


def schedule(
    every: timedelta = HOUR, policy: ScheduleOverlapPolicy = ScheduleOverlapPolicy.SKIP, **policies: Any
) -> Schedule:
    state = policies.pop("state", ScheduleState())
    action = policies.pop("action", {})
    return Schedule(
        spec=ScheduleSpec(intervals=(ScheduleIntervalSpec(every=every),)),
        action=ScheduleAction(
            start_workflow=NewWorkflowExecutionInfo(
                **({"workflow_id": "report", "workflow_type": "report", "task_queue": QUEUE} | action)
            )
        ),
        policies=SchedulePolicies(overlap_policy=policy, **policies),
        state=state,
    )
