"""Activities without a workflow (AC-28): a run whose one activity is all that happens in it.

Such a run never has a workflow task. Its activity is scheduled with its start and goes its usual way, by its item, its
timeouts and its deadline; with the end that counts the run is closed, in the same commit. So all that holds for runs
(ids, deletion, retention, lists) and for activities (attempts, heartbeats, pauses) holds here as it is.
"""

from datetime import datetime

from msgspec.structs import replace
from stepwell.api.commands import ScheduleActivityTask
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import ActivityAlreadyStarted, InvalidArgument
from stepwell.api.events import (
    ActivityTaskCanceled,
    ActivityTaskCancelRequested,
    ActivityTaskCompleted,
    ActivityTaskFailed,
    ActivityTaskTimedOut,
    EventAttributes,
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTimedOut,
)

from ...common.spaces import has_activities
from .. import search_attributes
from ..builder import TransitionBuilder, unchanged
from ..requests import Start, StartActivity, Worker
from ..state import ExecutionState
from ..tasks import DispatchActivityTask
from ..transition import StartReply, Transition
from . import closing, command_activity, inbox
from . import start as starting
from .activity import told_of_cancel
from .bad_command import BadCommand
from .run_checks import is_deleted

NO_TASK = 0
"""The workflow task that asked for it: there was none."""


def is_one(state: ExecutionState) -> bool:
    """Whether the run is an activity's own."""
    return has_activities(state.namespace)


def start(head: ExecutionState | None, request: StartActivity, now: datetime) -> Transition:
    """Raises ActivityAlreadyStarted, InvalidArgument."""
    asked = request.start
    problem = search_attributes.problem_of(asked.start.search_attributes)
    if problem:
        raise InvalidArgument(f"search_attributes of the activity: {problem}.", field="search_attributes")
    if head is not None:
        known = starting.before(head, asked)
        if known is not None:
            return unchanged(head, known)
        if head.close_time is None:
            return _beside_open(head, asked)
        _check_reuse(head, asked)
    draft = starting.opening(head, asked, now)
    _schedule(draft, request.command)
    if request.start_delay is not None:
        _hold_back(draft, draft.now + request.start_delay)
    draft.tasks.append(closing.visibility(draft.state))
    return draft.finish(StartReply(run_id=asked.run_id, first_run_id=asked.run_id, started=True))


def _beside_open(head: ExecutionState, asked: Start) -> Transition:
    if asked.start.workflow_id_conflict_policy is WorkflowIDConflictPolicy.USE_EXISTING:
        return unchanged(head, StartReply(run_id=head.run_id, first_run_id=head.first_run_id, started=False))
    raise ActivityAlreadyStarted(
        f"activity {head.workflow_id!r} is running as run {head.run_id}. Use another activity_id, or "
        "id_conflict_policy USE_EXISTING.",
        run_id=head.run_id,
    )


def _check_reuse(head: ExecutionState, asked: Start) -> None:
    policy = asked.start.workflow_id_reuse_policy
    if policy is WorkflowIDReusePolicy.ALLOW_DUPLICATE or is_deleted(head, head.run_id):
        return
    if (
        policy is WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
        and head.status is not WorkflowExecutionStatus.COMPLETED
    ):
        return
    raise ActivityAlreadyStarted(
        f"activity {head.workflow_id!r} has been run before (run {head.run_id}, {head.status.value}), which "
        f"id_reuse_policy {policy.value} excludes. Use another activity_id or policy.",
        run_id=head.run_id,
    )


def _schedule(draft: TransitionBuilder, command: ScheduleActivityTask) -> None:
    nobody = command_activity.Leasing(None, Worker(identity=""), draft)
    try:
        command_activity.schedule(draft, command, NO_TASK, nobody)
    except BadCommand as bad:
        raise InvalidArgument(bad.message) from None


def _hold_back(draft: TransitionBuilder, time: datetime) -> None:
    """Until then nothing of it begins, nor do its timeouts."""
    for pending in list(draft.state.activities.values()):
        draft.put_activity(
            replace(pending, scheduled_time=time, next_attempt_time=time, next_dispatch=time, dispatches=0)
        )
    draft.tasks[:] = [
        replace(task, not_before=time) if isinstance(task, DispatchActivityTask) else task for task in draft.tasks
    ]


def ask_to_cancel(draft: TransitionBuilder) -> None:
    """The run was asked to cancel, and so is its activity."""
    for pending in list(draft.state.activities.values()):
        if not pending.cancel_requested_event_id:
            draft.record(
                ActivityTaskCancelRequested(
                    scheduled_event_id=pending.scheduled_event_id, workflow_task_completed_event_id=NO_TASK
                )
            )
            draft.tasks.append(told_of_cancel(draft, pending))


def settle(draft: TransitionBuilder) -> None:
    """As ``inbox.settle``, of any run: with the end of its activity a stand-alone one is closed."""
    if not is_one(draft.state):
        inbox.settle(draft)
        return
    if draft.state.close_time is None and not draft.state.activities:
        closing.close(draft, _end(draft.events[-1].attributes))


def _end(of_activity: EventAttributes) -> EventAttributes:
    match of_activity:
        case ActivityTaskCompleted():
            return WorkflowExecutionCompleted(result=of_activity.result, workflow_task_completed_event_id=NO_TASK)
        case ActivityTaskFailed():
            return WorkflowExecutionFailed(
                failure=of_activity.failure,
                retry_state=of_activity.retry_state,
                workflow_task_completed_event_id=NO_TASK,
            )
        case ActivityTaskTimedOut():
            return WorkflowExecutionTimedOut(retry_state=of_activity.retry_state)
        case ActivityTaskCanceled():
            return WorkflowExecutionCanceled(details=of_activity.details, workflow_task_completed_event_id=NO_TASK)
    raise TypeError(f"{type(of_activity).__name__} is no end of an activity")
