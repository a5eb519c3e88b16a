"""A schedule as its step has it, whose starts succeed at once."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.schedules import (
    NewWorkflowExecutionInfo,
    Schedule,
    ScheduleAction,
    ScheduleIntervalSpec,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler.requests import Attempted, Creation, Look, Outcome, Patch, Request, RunEnd, Step
from stepwell_server.scheduler.state import Run, ScheduleRecord, decode, encode
from stepwell_server.scheduler.step import create, step

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOURLY = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=HOUR),))


def schedule(spec: ScheduleSpec = HOURLY, state: ScheduleState | None = None, **policies: Any) -> Schedule:
    return Schedule(
        spec=spec,
        action=ScheduleAction(
            start_workflow=NewWorkflowExecutionInfo(workflow_id="report", workflow_type="report", task_queue="q")
        ),
        policies=SchedulePolicies(**policies),
        state=state or ScheduleState(),
    )


@dataclass
class Machine:
    """A schedule whose starts succeed at once."""

    now: datetime
    last: Step
    started: list[Run] = field(default_factory=list)
    allowance: int = 1_000

    @classmethod
    def of(cls, definition: Schedule, patch: r.SchedulePatch | None = None, now: datetime = T0) -> "Machine":
        creation = Creation(
            namespace="default", schedule_id="s", incarnation="i", schedule=definition, initial_patch=patch
        )
        machine = cls(now, create(creation, now, 1_000))
        machine.carry_out()
        return machine

    @property
    def record(self) -> ScheduleRecord:
        return self.last.record

    def tell(self, request: Request) -> None:
        before = encode(self.record)
        self.last = step(decode(before), request, self.now, self.allowance)
        assert encode(step(decode(before), request, self.now, self.allowance).record) == encode(self.record)
        self.carry_out()

    def carry_out(self) -> None:
        while self.last.starts:
            self.started += self.last.starts
            outcomes = tuple([(run.run_id, Outcome.STARTED) for run in self.last.starts])
            self.last = step(self.record, Attempted(starts=outcomes), self.now, self.allowance)

    def at(self, time: datetime) -> "Machine":
        self.now = time
        self.tell(Look())
        return self

    def end(self, run: Run, status: Status = Status.COMPLETED, **more: Any) -> None:
        self.tell(Look(ends=(RunEnd(run_id=run.run_id, status=status, **more),)))

    def patch(self, request_id: str = "", **patch: Any) -> None:
        self.tell(Patch(patch=r.SchedulePatch(**patch), request_id=request_id))

    @property
    def nominal(self) -> list[datetime]:
        return [run.waiting.nominal for run in self.started]


def hours(*numbers: int) -> list[datetime]:
    return [T0 + number * HOUR for number in numbers]


def backfill(start: datetime, end: datetime, policy: Overlap | None = None) -> r.BackfillRequest:
    return r.BackfillRequest(start_time=start, end_time=end, overlap_policy=policy)
