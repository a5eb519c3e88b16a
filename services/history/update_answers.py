"""What senders of updates are told: how far an update has come, or why it gets no further. Pure."""

from stepwell.api.enums import WorkflowExecutionStatus, WorkflowUpdateStage
from stepwell.api.errors import ApiError, FailedPrecondition, NotFound, WorkflowExecutionClosed
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.requests import UpdateWorkflowResponse
from stepwell.api.updates import UpdateOutcome

from .commit import Commit
from .machines import update, workflow_task
from .state import ExecutionState


def is_stuck(state: ExecutionState) -> bool:
    """Whether workflow code has failed so often in a row that it is likely to go on failing until it is mended."""
    task = state.workflow_task
    return task is not None and task.attempt > workflow_task.PROMPT_ATTEMPTS


def held_up(state: ExecutionState, update_id: str) -> FailedPrecondition:
    task = state.workflow_task
    cause = task.last_cause.value if task is not None and task.last_cause is not None else "unknown"
    failure = task.last_failure if task is not None else None
    return FailedPrecondition(
        f"the workflow task of {state.workflow_id!r} keeps failing (attempt {task.attempt if task else 0}, {cause}: "
        f"{failure.message if failure is not None else 'no message'}), so update {update_id!r} does not get on; it is "
        "recorded, and goes on when workflow code that gets past it is deployed. Then ask for it by its id.",
        cause=cause,
    )


def state_with(commit: Commit, run_id: str, update_id: str) -> ExecutionState:
    """Of the run in which the update is behind this commit: the one it was in, or the next. That of a reset may have
    it from a run before, with its end."""
    state = commit.state_of(run_id)
    if state is None:
        return commit.state
    passed_on = update_id in commit.state.updates or update.ended(commit.state, update_id) is not None
    return commit.state if commit.closed is not None and passed_on else state


def answer_of(
    state: ExecutionState, update_id: str, stage: WorkflowUpdateStage, outcome: UpdateOutcome | None = None
) -> UpdateWorkflowResponse:
    return UpdateWorkflowResponse(run_id=state.run_id, update_id=update_id, stage=stage, outcome=outcome)


_ENDS = {
    WorkflowExecutionStatus.COMPLETED: "has completed",
    WorkflowExecutionStatus.FAILED: "has failed",
    WorkflowExecutionStatus.CANCELED: "was cancelled",
    WorkflowExecutionStatus.TERMINATED: "was terminated",
    WorkflowExecutionStatus.CONTINUED_AS_NEW: "has continued as new",
    WorkflowExecutionStatus.TIMED_OUT: "has timed out",
}


def cut_off(state: ExecutionState) -> Failure:
    """The outcome of an accepted update whose run has ended before it (MS-30)."""
    return Failure(
        message=f"the workflow {_ENDS.get(state.status, 'is over')} before the update had ended; what its handler had "
        "done until then stands",
        info=ApplicationFailureInfo(failure_type="AcceptedUpdateCompletedWorkflow", non_retryable=True),
    )


def not_taken(state: ExecutionState, update_id: str) -> ApiError:
    if state.close_time is None:
        return NotFound(
            f"run {state.run_id} of workflow {state.workflow_id!r} no longer knows update {update_id!r}; send it again "
            "with the same id to have it decided"
        )
    return WorkflowExecutionClosed(
        f"run {state.run_id} of workflow {state.workflow_id!r} {_ENDS.get(state.status, 'is over')} and did not take "
        f"update {update_id!r}: nothing of it was done. Start a new run if there is still work.",
        status=state.status.value,
    )
