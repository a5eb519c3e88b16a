"""What a run did when, as bars: built from its history event by event, and from what describe knows of open ones.

A history says of an activity when it was scheduled, when its last attempt began and when it ended; earlier attempts
are part of the time before the last one.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from ..api import events as e
from ..api.common import WorkflowExecution
from ..api.failures import Failure
from ..api.requests import DescribeWorkflowResponse
from ..replay.machines.local_activity import recorded_end
from .text import failure_text, payload_text


class Kind(StrEnum):
    WORKFLOW = "workflow"
    ACTIVITY = "activity"
    LOCAL = "local"
    TIMER = "timer"
    CHILD = "child"
    SIGNAL = "signal"
    UPDATE = "update"
    SENT = "send"
    PAUSE = "paused"
    CANCEL = "cancel"
    TASK = "task"


class Status(StrEnum):
    OPEN = "open"
    DONE = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    CANCELED = "canceled"
    TERMINATED = "terminated"
    CONTINUED = "continued as new"

    @property
    def bad(self) -> bool:
        return self in (Status.FAILED, Status.TIMED_OUT, Status.TERMINATED)


@dataclass(slots=True)
class Bar:
    """Something that took time, from ``start`` to ``end``; or, with ``marks``, moments of one kind."""

    kind: Kind
    name: str
    start: datetime
    end: datetime | None = None
    status: Status = Status.OPEN
    attempt: int = 1
    attempt_start: datetime | None = None
    """When the last attempt began; None: not yet, or nobody knows."""

    note: str = ""
    marks: list[datetime] = field(default_factory=list)
    child: WorkflowExecution | None = None
    """Its run, when it is one of the same namespace."""


_NEVER = datetime.max.replace(tzinfo=UTC)


class RunBars:
    """The bars of one run. ``feed`` its events in order; ``pending`` tells what is open."""

    def __init__(self) -> None:
        self.run = Bar(Kind.WORKFLOW, "", _NEVER)
        self.bars: list[Bar] = []
        self.next_run_id = ""
        self.children: list[WorkflowExecution] = []
        """Those that have started, in the same namespace; whoever looks into them takes them away."""

        self._by_event: dict[int, Bar] = {}
        self._moments: dict[tuple[Kind, str], Bar] = {}

    @property
    def closed(self) -> bool:
        return self.run.end is not None

    def feed(self, event: e.HistoryEvent) -> None:
        for subject in (_of_the_run, _of_activities, _of_timers, _of_children, _of_messages):
            subject(self, event)

    def pending(self, described: DescribeWorkflowResponse) -> None:
        """Attempts of activities that have no end yet stand in no event."""
        for activity in described.pending_activities:
            bar = self._by_event.get(activity.scheduled_event_id)
            if bar is None or bar.end is not None:
                continue
            waits = activity.next_attempt_schedule_time
            begun = activity.last_started_time
            bar.attempt = activity.attempt
            bar.attempt_start = begun if begun is not None and (waits is None or waits <= begun) else None
            paused = "paused; " if activity.paused_time is not None else ""
            failed = activity.last_failure
            bar.note = paused + (_brief(failed) if failed is not None else "")

    def shown(self, limit: int) -> tuple[list[Bar], int]:
        """At most ``limit`` bars, in the order in which they began, and how many more there are: what is open or has
        failed goes first, then what is newest."""
        if len(self.bars) <= limit:
            return self.bars, 0
        matters = sorted(range(len(self.bars)), key=lambda at: (_matter(self.bars[at]), at))
        return [self.bars[at] for at in sorted(matters[-limit:])], len(self.bars) - limit

    def open_bar(self, event: e.HistoryEvent, kind: Kind, name: str) -> Bar:
        bar = Bar(kind, name, event.event_time)
        self.bars.append(bar)
        self._by_event[event.event_id] = bar
        return bar

    def of(self, event_id: int) -> Bar | None:
        return self._by_event.get(event_id)

    def close(self, event_id: int, at: datetime, status: Status, note: str = "") -> None:
        bar = self._by_event.pop(event_id, None)
        if bar is not None:
            bar.end, bar.status, bar.note = at, status, note

    def unpaused(self, at: datetime) -> None:
        for bar in self.bars:
            if bar.kind is Kind.PAUSE and bar.end is None:
                bar.end, bar.status = at, Status.DONE

    def moment(self, kind: Kind, name: str, at: datetime, status: Status = Status.DONE, note: str = "") -> None:
        bar = self._moments.get((kind, name))
        if bar is None:
            bar = self._moments[kind, name] = Bar(kind, name, at, at, status)
            self.bars.append(bar)
        bar.marks.append(at)
        bar.end = at
        if status.bad:
            bar.status, bar.note = status, note


def _matter(bar: Bar) -> int:
    return 2 if bar.end is None else 1 if bar.status.bad else 0


def _brief(failure: Failure | None) -> str:
    return "" if failure is None else failure_text(failure)


_ENDS: dict[type, Status] = {
    e.WorkflowExecutionCompleted: Status.DONE,
    e.WorkflowExecutionFailed: Status.FAILED,
    e.WorkflowExecutionTimedOut: Status.TIMED_OUT,
    e.WorkflowExecutionCanceled: Status.CANCELED,
    e.WorkflowExecutionTerminated: Status.TERMINATED,
    e.WorkflowExecutionContinuedAsNew: Status.CONTINUED,
}


def _of_the_run(bars: RunBars, event: e.HistoryEvent) -> None:
    at = event.event_time
    match event.attributes:
        case e.WorkflowExecutionStarted() as it:
            bars.run = Bar(Kind.WORKFLOW, it.workflow_type, at, attempt=it.attempt)
            if it.first_workflow_task_backoff is not None:
                bars.run.attempt_start = at + it.first_workflow_task_backoff
        case e.WorkflowTaskFailed(new_run_id="") as it:
            bars.moment(Kind.TASK, "workflow task", at, Status.FAILED, _brief(it.failure) or str(it.cause))
        case e.WorkflowTaskTimedOut():
            bars.moment(Kind.TASK, "workflow task", at, Status.TIMED_OUT)
        case e.WorkflowExecutionPaused() as it:
            bars.open_bar(event, Kind.PAUSE, it.reason or it.identity)
        case e.WorkflowExecutionUnpaused():
            bars.unpaused(at)
        case it if type(it) in _ENDS:
            bars.next_run_id = getattr(it, "new_execution_run_id", "")
            _end(bars, at, _ENDS[type(it)], _brief(getattr(it, "failure", None)) or getattr(it, "reason", ""))


def _end(bars: RunBars, at: datetime, status: Status, note: str) -> None:
    bars.run.end, bars.run.status, bars.run.note = at, status, note
    for bar in bars.bars:
        if bar.end is None:
            bar.end, bar.note = at, bar.note or "no end when the run closed"


def _of_activities(bars: RunBars, event: e.HistoryEvent) -> None:
    at = event.event_time
    match event.attributes:
        case e.ActivityTaskScheduled(activity_type=name):
            bars.open_bar(event, Kind.ACTIVITY, name)
        case e.ActivityTaskStarted() as it:
            bar = bars.of(it.scheduled_event_id)
            if bar is not None:
                bar.attempt, bar.attempt_start = it.attempt, it.started_time
        case e.ActivityTaskCompleted(scheduled_event_id=begun):
            bars.close(begun, at, Status.DONE)
        case e.ActivityTaskFailed(scheduled_event_id=begun, failure=failure):
            bars.close(begun, at, Status.FAILED, _brief(failure))
        case e.ActivityTaskTimedOut(scheduled_event_id=begun, failure=failure):
            bars.close(begun, at, Status.TIMED_OUT, _brief(failure))
        case e.ActivityTaskCanceled(scheduled_event_id=begun):
            bars.close(begun, at, Status.CANCELED)
        case e.MarkerRecorded() as it:
            found = recorded_end(it)
            if found is not None:
                name, ended = found
                status = Status.DONE if ended.failure is None else Status.FAILED
                bars.moment(Kind.LOCAL, name, at, status, _brief(ended.failure))


def _of_timers(bars: RunBars, event: e.HistoryEvent) -> None:
    match event.attributes:
        case e.TimerStarted(timer_id=name):
            said = event.user_metadata.summary if event.user_metadata is not None else None
            bars.open_bar(event, Kind.TIMER, name if said is None else payload_text(said).strip('"'))
        case e.TimerFired(started_event_id=begun):
            bars.close(begun, event.event_time, Status.DONE)
        case e.TimerCanceled(started_event_id=begun):
            bars.close(begun, event.event_time, Status.CANCELED)


_CHILD_ENDS: dict[type, Status] = {
    e.ChildWorkflowExecutionCompleted: Status.DONE,
    e.ChildWorkflowExecutionFailed: Status.FAILED,
    e.ChildWorkflowExecutionCanceled: Status.CANCELED,
    e.ChildWorkflowExecutionTimedOut: Status.TIMED_OUT,
    e.ChildWorkflowExecutionTerminated: Status.TERMINATED,
}


def _of_children(bars: RunBars, event: e.HistoryEvent) -> None:
    at = event.event_time
    match event.attributes:
        case e.StartChildWorkflowExecutionInitiated(workflow_id=name):
            bars.open_bar(event, Kind.CHILD, name)
        case e.StartChildWorkflowExecutionFailed(initiated_event_id=begun, cause=cause):
            bars.close(begun, at, Status.FAILED, str(cause))
        case e.ChildWorkflowExecutionStarted(initiated_event_id=begun, workflow_execution=child) as it:
            bar = bars.of(begun)
            if bar is not None:
                bar.attempt_start, bar.child = at, None if it.namespace else child
                bars.children += [] if it.namespace else [child]
        case it if type(it) in _CHILD_ENDS:
            failure: Failure | None = getattr(it, "failure", None)
            bars.close(getattr(it, "initiated_event_id", 0), at, _CHILD_ENDS[type(it)], _brief(failure))


def _of_messages(bars: RunBars, event: e.HistoryEvent) -> None:
    at = event.event_time
    match event.attributes:
        case e.WorkflowExecutionSignaled(signal_name=name):
            bars.moment(Kind.SIGNAL, name, at)
        case e.WorkflowExecutionCancelRequested(cause=cause):
            bars.moment(Kind.CANCEL, cause or "requested", at)
        case e.WorkflowExecutionUpdateAccepted(accepted_request=asked) as it:
            bars.open_bar(event, Kind.UPDATE, it.protocol_instance_id if asked is None else asked.input.name)
        case e.WorkflowExecutionUpdateCompleted(accepted_event_id=begun, outcome=outcome):
            status = Status.DONE if outcome.failure is None else Status.FAILED
            bars.close(begun, at, status, _brief(outcome.failure))
        case e.SignalExternalWorkflowExecutionInitiated(signal_name=name, workflow_execution=to):
            bars.open_bar(event, Kind.SENT, f"{name} to {to.workflow_id}")
        case e.RequestCancelExternalWorkflowExecutionInitiated(workflow_execution=to):
            bars.open_bar(event, Kind.SENT, f"cancel to {to.workflow_id}")
        case (
            e.ExternalWorkflowExecutionSignaled(initiated_event_id=begun)
            | e.ExternalWorkflowExecutionCancelRequested(initiated_event_id=begun)
        ):
            bars.close(begun, at, Status.DONE)
        case e.SignalExternalWorkflowExecutionFailed(initiated_event_id=begun, cause=failed):
            bars.close(begun, at, Status.FAILED, str(failed))
        case e.RequestCancelExternalWorkflowExecutionFailed(initiated_event_id=begun, cause=unable):
            bars.close(begun, at, Status.FAILED, str(unable))
