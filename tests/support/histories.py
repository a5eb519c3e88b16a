"""Hand-made histories: a small builder that numbers events and keeps the field's order, and a driver that plays the
engine's part.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from stepwell.api import commands as cmd
from stepwell.api import events as ev
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CompletionOutcome, RetryState, WorkflowTaskFailedCause
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests import RespondWorkflowTaskCompletedResponse
from stepwell.api.updates import DeliveredUpdate, UpdateInput, UpdateMeta, UpdateRequest
from stepwell.common import RetryPolicy
from stepwell.converter import DataConverter
from stepwell.replay.activity_ends import ActivityEnd
from stepwell.replay.run import TaskResult, WorkflowRun
from stepwell.workflow.definition import WorkflowDefinition
from stepwell.workflow.interceptors import WorkflowInboundInterceptor

from tests.support.update_events import update_event

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
CONVERTER = DataConverter.default


def payloads(*values: Any) -> Payloads:
    return CONVERTER.payload_converter.to_payloads(values)


def failure(error: BaseException) -> Failure:
    return CONVERTER.to_failure(error)


_runs: list[WorkflowRun] = []


def evict_all() -> None:
    """Evict every run that a driver made, as a worker does; for a fixture."""
    while _runs:
        _runs.pop().evict()


class HistoryBuilder:
    """Appends events; each method is one thing that the engine records."""

    def __init__(self, workflow_type: str, *args: Any, run_id: str = "run-1") -> None:
        self.events: list[HistoryEvent] = []
        self.time = START
        self.run_id = run_id
        self.completed_event_id = 0
        self.started_event_id = 0
        self.update_requests: dict[str, UpdateRequest] = {}
        """What was asked by updates, by id; in the history once they are accepted."""
        self.update_positions: dict[str, int] = {}
        """The events that they came behind."""
        self.add(
            ev.WorkflowExecutionStarted(
                workflow_type=workflow_type,
                task_queue="queue",
                input=payloads(*args),
                workflow_task_timeout=timedelta(seconds=10),
                original_execution_run_id=run_id,
                first_execution_run_id=run_id,
                workflow_id="wf-1",
            )
        )

    def add(self, attributes: EventAttributes) -> int:
        event_id = len(self.events) + 1
        self.events.append(HistoryEvent(event_id=event_id, event_time=self.time, attributes=attributes))
        return event_id

    def pass_time(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def task_scheduled(self) -> int:
        return self.add(ev.WorkflowTaskScheduled(task_queue="queue", start_to_close_timeout=timedelta(seconds=10)))

    def task_started(self) -> int:
        scheduled = self.task_scheduled()
        self.started_event_id = self.add(ev.WorkflowTaskStarted(scheduled_event_id=scheduled))
        return self.started_event_id

    def task_failed(self, new_run_id: str = "") -> None:
        """With ``new_run_id``, by a reset."""
        causes = WorkflowTaskFailedCause
        self.add(
            ev.WorkflowTaskFailed(
                scheduled_event_id=self.started_event_id - 1,
                started_event_id=self.started_event_id,
                cause=causes.RESET_WORKFLOW if new_run_id else causes.WORKFLOW_WORKER_UNHANDLED_FAILURE,
                base_run_id=self.run_id if new_run_id else "",
                new_run_id=new_run_id,
            )
        )

    def task_completed(self, result: TaskResult) -> None:
        """The completion of the started task, with the events of its commands."""
        started = self.started_event_id
        self.completed_event_id = self.add(
            ev.WorkflowTaskCompleted(
                scheduled_event_id=started - 1, started_event_id=started, sdk_metadata=result.sdk_metadata
            )
        )
        for command in result.commands:
            attributes = self._event_of(command)
            if attributes is not None:
                self.add(attributes)

    def _event_of(self, command: cmd.Command) -> EventAttributes | None:  # noqa: C901, PLR0912 - a table
        done = self.completed_event_id
        match command:
            case cmd.ScheduleActivityTask():
                return ev.ActivityTaskScheduled(
                    activity_id=command.activity_id,
                    activity_type=command.activity_type,
                    task_queue=command.task_queue,
                    input=command.input,
                    start_to_close_timeout=command.start_to_close_timeout,
                    workflow_task_completed_event_id=done,
                    retry_policy=RetryPolicy().to_record(),
                )
            case cmd.RequestCancelActivityTask():
                return ev.ActivityTaskCancelRequested(
                    scheduled_event_id=command.scheduled_event_id, workflow_task_completed_event_id=done
                )
            case cmd.StartTimer():
                return ev.TimerStarted(
                    timer_id=command.timer_id,
                    start_to_fire_timeout=command.start_to_fire_timeout,
                    workflow_task_completed_event_id=done,
                )
            case cmd.CancelTimer():
                return ev.TimerCanceled(
                    timer_id=command.timer_id,
                    started_event_id=self.find_timer(command.timer_id),
                    workflow_task_completed_event_id=done,
                )
            case cmd.RecordMarker():
                return ev.MarkerRecorded(
                    marker_name=command.marker_name,
                    details=command.details,
                    failure=command.failure,
                    workflow_task_completed_event_id=done,
                )
            case cmd.CompleteWorkflowExecution():
                return ev.WorkflowExecutionCompleted(result=command.result, workflow_task_completed_event_id=done)
            case cmd.FailWorkflowExecution():
                return ev.WorkflowExecutionFailed(failure=command.failure, workflow_task_completed_event_id=done)
            case cmd.CancelWorkflowExecution():
                return ev.WorkflowExecutionCanceled(workflow_task_completed_event_id=done)
            case cmd.ContinueAsNewWorkflowExecution():
                return ev.WorkflowExecutionContinuedAsNew(
                    new_execution_run_id=f"{self.run_id}-next",
                    workflow_type=command.workflow_type,
                    task_queue=command.task_queue,
                    input=command.input,
                    workflow_task_completed_event_id=done,
                )
            case cmd.StartChildWorkflowExecution():
                return ev.StartChildWorkflowExecutionInitiated(
                    workflow_id=command.workflow_id,
                    workflow_type=command.workflow_type,
                    task_queue=command.task_queue,
                    input=command.input,
                    parent_close_policy=command.parent_close_policy,
                    workflow_task_completed_event_id=done,
                )
            case cmd.SignalExternalWorkflowExecution():
                return ev.SignalExternalWorkflowExecutionInitiated(
                    workflow_execution=command.execution,
                    signal_name=command.signal_name,
                    input=command.input,
                    child_workflow_only=command.child_workflow_only,
                    workflow_task_completed_event_id=done,
                )
            case cmd.RequestCancelExternalWorkflowExecution():
                return ev.RequestCancelExternalWorkflowExecutionInitiated(
                    workflow_execution=WorkflowExecution(workflow_id=command.workflow_id, run_id=command.run_id),
                    child_workflow_only=command.child_workflow_only,
                    reason=command.reason,
                    workflow_task_completed_event_id=done,
                )
            case cmd.UpsertWorkflowSearchAttributes():
                return ev.UpsertWorkflowSearchAttributes(
                    search_attributes=command.search_attributes, workflow_task_completed_event_id=done
                )
            case cmd.ModifyWorkflowProperties():
                return ev.WorkflowPropertiesModified(
                    upserted_memo=command.upserted_memo, workflow_task_completed_event_id=done
                )
            case cmd.AcceptUpdate() | cmd.RejectUpdate() | cmd.CompleteUpdate():
                return update_event(self.events, command, self.update_requests, self.update_positions)

    # --- what comes in between -------------------------------------------------------------------------------------

    def signal(self, name: str, *args: Any) -> None:
        self.add(ev.WorkflowExecutionSignaled(signal_name=name, input=payloads(*args)))

    def signal_raw(self, name: str, input: Payloads) -> None:
        self.add(ev.WorkflowExecutionSignaled(signal_name=name, input=input))

    def cancel_requested(self, reason: str = "") -> None:
        self.add(ev.WorkflowExecutionCancelRequested(cause=reason))

    def find_timer(self, timer_id: str) -> int:
        for event in reversed(self.events):
            if isinstance(event.attributes, ev.TimerStarted) and event.attributes.timer_id == timer_id:
                return event.event_id
        raise AssertionError(f"no timer {timer_id}")

    def find_activity(self, activity: str | int) -> int:
        """Scheduled event id by activity id, or by type (the newest)."""
        for event in reversed(self.events):
            a = event.attributes
            if isinstance(a, ev.ActivityTaskScheduled) and activity in (a.activity_id, a.activity_type):
                return event.event_id
        raise AssertionError(f"no activity {activity}")

    def find_child(self, workflow_id: str) -> tuple[int, ev.StartChildWorkflowExecutionInitiated]:
        """Initiated event, by the child's workflow id (the newest)."""
        for event in reversed(self.events):
            a = event.attributes
            if isinstance(a, ev.StartChildWorkflowExecutionInitiated) and a.workflow_id == workflow_id:
                return event.event_id, a
        raise AssertionError(f"no child {workflow_id}")

    def child_started(self, workflow_id: str) -> int:
        initiated, child = self.find_child(workflow_id)
        return self.add(
            ev.ChildWorkflowExecutionStarted(
                initiated_event_id=initiated,
                workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=f"{workflow_id}-run"),
                workflow_type=child.workflow_type,
            )
        )

    def child_completed(self, workflow_id: str, *result: Any) -> int:
        initiated, child = self.find_child(workflow_id)
        started = next(
            event.event_id
            for event in self.events
            if isinstance(event.attributes, ev.ChildWorkflowExecutionStarted)
            and event.attributes.initiated_event_id == initiated
        )
        return self.add(
            ev.ChildWorkflowExecutionCompleted(
                result=payloads(*result),
                workflow_execution=WorkflowExecution(workflow_id=workflow_id, run_id=f"{workflow_id}-run"),
                workflow_type=child.workflow_type,
                initiated_event_id=initiated,
                started_event_id=started,
            )
        )

    def timer_fired(self, timer_id: str = "1") -> None:
        self.add(ev.TimerFired(timer_id=timer_id, started_event_id=self.find_timer(timer_id)))

    def activity_completed(self, activity: str, *result: Any) -> None:
        scheduled = self.find_activity(activity)
        started = self.add(ev.ActivityTaskStarted(scheduled_event_id=scheduled))
        self.add(
            ev.ActivityTaskCompleted(result=payloads(*result), scheduled_event_id=scheduled, started_event_id=started)
        )

    def activity_failed(self, activity: str, error: BaseException) -> None:
        scheduled = self.find_activity(activity)
        started = self.add(ev.ActivityTaskStarted(scheduled_event_id=scheduled))
        self.add(
            ev.ActivityTaskFailed(
                failure=failure(error),
                scheduled_event_id=scheduled,
                started_event_id=started,
                retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
            )
        )

    def activity_canceled(self, activity: str) -> None:
        scheduled = self.find_activity(activity)
        self.add(ev.ActivityTaskCanceled(latest_cancel_requested_event_id=0, scheduled_event_id=scheduled))


class Driver:
    """Runs a workflow against a history that it extends with what the workflow asks for."""

    def __init__(
        self,
        workflow: Any,
        *args: Any,
        cache: bool = True,
        failure_types: Sequence[type[BaseException]] = (),
        interceptors: Sequence[type[WorkflowInboundInterceptor]] = (),
    ) -> None:
        self.definition = WorkflowDefinition.must_of(workflow)
        self.history = HistoryBuilder(self.definition.name, *args)
        self.cache = cache
        self.failure_types = failure_types
        self.interceptors = interceptors
        self.run = self.new_run()
        self.result = TaskResult(())
        self.shown: list[DeliveredUpdate] = []

    def new_run(self, workflow: Any = None) -> WorkflowRun:
        definition = self.definition if workflow is None else WorkflowDefinition.must_of(workflow)
        run = WorkflowRun(
            definition,
            namespace="default",
            workflow_id="wf-1",
            run_id=self.history.run_id,
            task_queue="queue",
            failure_types=self.failure_types,
            interceptors=self.interceptors,
        )
        _runs.append(run)
        return run

    def update(self, update_id: str, name: str, *args: Any) -> None:
        """An update that the next task shows, behind what was added to the history before."""
        request = UpdateRequest(
            meta=UpdateMeta(update_id=update_id), input=UpdateInput(name=name, args=payloads(*args))
        )
        self.history.update_requests[update_id] = request
        self.shown.append(DeliveredUpdate(request=request, sequencing_event_id=len(self.history.events)))

    def task(self) -> TaskResult:
        """One workflow task over what was added to the history, completed and recorded."""
        self.history.update_positions = {each.request.meta.update_id: each.sequencing_event_id for each in self.shown}
        if not self.cache:
            self.run.evict()
            self.run = self.new_run()
        started = self.history.task_started()
        self.result = self.run.run_task(self.history.events, self.shown)
        self.shown = []
        self.history.task_completed(self.result)
        self._accept(started, fusible=True)
        return self.result

    def dropped_task(self) -> TaskResult:
        """As :meth:`task`, of one that is there for updates alone, and rejects them: it is in no history."""
        events = len(self.history.events)
        self.history.task_started()
        result = self.run.run_task(self.history.events, self.shown)
        self.shown = []
        del self.history.events[events:]
        self.run.dropped()
        return result

    def step(self, activity: str, *result: Any, seconds: float = 0.01) -> TaskResult:
        """A fused step: the activity's result reaches the run before it is recorded."""
        scheduled = self.history.find_activity(activity)
        self.history.pass_time(seconds)
        end = ActivityEnd(scheduled, payloads(*result))
        self.result = self.run.run_step([end], self.history.time)
        self.history.activity_completed(activity, *result)
        started = self.history.task_started()
        self.history.task_completed(self.result)
        self._accept(started, fusible=True)
        return self.result

    def _accept(self, started: int, *, fusible: bool) -> None:
        self.run.accepted(
            RespondWorkflowTaskCompletedResponse(
                outcome=CompletionOutcome.ACCEPTED,
                started_event_id=started,
                next_event_id=len(self.history.events) + 1,
                fusible=fusible,
            )
        )

    def replay(self, workflow: Any = None) -> WorkflowRun:
        """A new run over the whole history. Raises ``WorkflowTaskError`` on a mismatch."""
        run = self.new_run(workflow)
        run.run_task(self.history.events)
        return run

    def value(self) -> Any:
        """The result of a completed workflow."""
        command = self.result.commands[-1]
        assert isinstance(command, cmd.CompleteWorkflowExecution), command
        return self.definition.signature.decode_result(CONVERTER.payload_converter, command.result)

    def kinds(self) -> list[str]:
        """Kinds of the last task's commands."""
        return [type(command).__name__ for command in self.result.commands]
