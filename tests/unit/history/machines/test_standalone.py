"""A stand-alone activity (AC-28) is a run without workflow tasks, which ends with its activity in the same commit."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from stepwell.api.commands import ScheduleActivityTask
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import ActivityAlreadyStarted, InvalidArgument
from stepwell.api.payloads import Payload
from stepwell.api.requests import StartWorkflowRequest

from stepwell_server.common.spaces import of_activities
from stepwell_server.history import activity_attempts
from stepwell_server.history.activity_item import ActivityItem, new_item
from stepwell_server.history.requests import (
    FinishedActivity,
    FireDeadline,
    RecordFinishedActivities,
    RequestCancel,
    Start,
    StartActivity,
    Terminate,
)
from stepwell_server.history.state import ExecutionState
from stepwell_server.history.step import step
from stepwell_server.history.tasks import CancelActivity, DispatchActivityTask, RecordVisibility
from stepwell_server.history.transition import Transition

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
RESULT = (Payload(data=b"2"),)


def request(run_id: str = "run-1", **options: object) -> StartActivity:
    command = {"activity_id": "a", "activity_type": "t", "task_queue": "q"}
    timeouts = {"start_to_close_timeout": SECOND} | {
        name: options.pop(name) for name in list(options) if name.endswith("timeout")
    }
    start = StartWorkflowRequest(
        namespace=of_activities("default"), workflow_id="a", workflow_type="t", task_queue="q", **options
    )
    return StartActivity(start=Start(run_id=run_id, start=start), command=ScheduleActivityTask(**command, **timeouts))


def started(**options: object) -> ExecutionState:
    return step(None, request(**options), NOW).state


def names(transition: Transition) -> list[str]:
    return [event.event_type for event in transition.events]


def item_of(state: ExecutionState) -> ActivityItem:
    (pending,) = state.activities.values()
    return activity_attempts.start(state, pending, None, attempt=1, identity="w", worker_key="", holder=None, now=NOW)


def finished(state: ExecutionState, item: ActivityItem) -> Transition:
    asked = RecordFinishedActivities(run_id=state.run_id, finished=(FinishedActivity(item),))
    return step(state, asked, NOW + SECOND)


def test_a_start_schedules_its_activity_and_no_workflow_task() -> None:
    begun = step(None, request(), NOW)
    assert names(begun) == ["WorkflowExecutionStarted", "ActivityTaskScheduled"]
    assert begun.state.workflow_task is None and begun.deadline is not None
    assert {type(task) for task in begun.tasks} == {DispatchActivityTask, RecordVisibility}


def test_its_result_closes_the_run_in_the_same_commit() -> None:
    state = started()
    over = finished(state, activity_attempts.complete(item_of(state), 1, RESULT, NOW))
    assert names(over) == ["ActivityTaskStarted", "ActivityTaskCompleted", "WorkflowExecutionCompleted"]
    assert over.state.status is Status.COMPLETED and over.events[-1].attributes.result == RESULT
    assert not finished(over.state, item_of(state)).changed


def test_a_timeout_that_its_deadline_finds_closes_it() -> None:
    state = started(schedule_to_close_timeout=SECOND)
    (pending,) = state.activities.values()
    late = NOW + 2 * SECOND
    item = activity_attempts.time_out(new_item(state, pending), late)
    over = step(state, FireDeadline(fire_at=late, items=(item,)), late)
    assert names(over)[-2:] == ["ActivityTaskTimedOut", "WorkflowExecutionTimedOut"]
    assert over.state.status is Status.TIMED_OUT


def test_a_cancel_is_for_its_activity_and_asks_once() -> None:
    asked = step(started(), RequestCancel(run_id="", reason="why", request_id="c"), NOW)
    assert names(asked) == ["WorkflowExecutionCancelRequested", "ActivityTaskCancelRequested"]
    assert [type(task) for task in asked.tasks] == [CancelActivity] and asked.state.workflow_task is None
    assert not step(asked.state, RequestCancel(run_id="", request_id="d"), NOW).changed
    cancelled = activity_attempts.cancel(
        msgspec.structs.replace(item_of(asked.state), cancel_requested=True), 1, (), NOW
    )
    over = finished(asked.state, cancelled)
    assert names(over)[-2:] == ["ActivityTaskCanceled", "WorkflowExecutionCanceled"]


def test_a_repeated_start_is_the_same_run_and_policies_decide_about_others() -> None:
    state = started(request_id="one")
    again = step(state, request("run-2", request_id="one"), NOW)
    assert not again.changed and again.reply.run_id == "run-1"
    with pytest.raises(ActivityAlreadyStarted, match="is running as run run-1"):
        step(state, request("run-2"), NOW)
    same = step(state, request("run-2", workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING), NOW)
    assert not same.changed and (same.reply.run_id, same.reply.started) == ("run-1", False)
    closed = step(state, Terminate(run_id=""), NOW).state
    after_failure = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
    assert step(closed, request("run-2", workflow_id_reuse_policy=after_failure), NOW).state.run_id == "run-2"
    with pytest.raises(ActivityAlreadyStarted, match="REJECT_DUPLICATE excludes"):
        step(closed, request("run-2", workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE), NOW)


def test_options_that_no_activity_may_have_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="neither start_to_close_timeout nor schedule_to_close_timeout"):
        started(start_to_close_timeout=None)
