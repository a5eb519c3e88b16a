"""Whether a request means this run, and whether the run is open."""

from stepwell.api.errors import NotFound, WorkflowExecutionClosed

from ..state import ExecutionState, OwedDeletion


def is_deleted(state: ExecutionState, run_id: str) -> bool:
    """Whether that run, the newest or an earlier one, counts as deleted, though some of it may be left."""
    if state.deleted and run_id == state.run_id:
        return True
    return any(isinstance(entry, OwedDeletion) and entry.run_id == run_id for entry in state.owed)


def no_such_run(state: ExecutionState, run_id: str) -> NotFound:
    return NotFound(
        f"workflow {state.workflow_id!r} in namespace {state.namespace!r} has no run {run_id!r} (any more); "
        "check the ids, or start it anew"
    )


def check_run(state: ExecutionState, run_id: str, first_run_id: str = "") -> None:
    """The newest run is meant. An older one is closed, or there is none; only who can read the log can tell."""
    if is_deleted(state, state.run_id):
        raise no_such_run(state, state.run_id)
    if run_id and run_id != state.run_id:
        raise NotFound(
            f"run {run_id} of workflow {state.workflow_id!r} is not its newest run, which is {state.run_id}; "
            "leave run_id out to mean the newest",
            run_id=state.run_id,
        )
    if first_run_id and first_run_id != state.first_run_id:
        raise NotFound(
            f"workflow execution not found: workflow {state.workflow_id!r} is now in a chain that began with run "
            f"{state.first_run_id}, not {first_run_id}",
            run_id=state.run_id,
        )


def check_open(state: ExecutionState) -> None:
    if state.close_time is not None:
        raise WorkflowExecutionClosed(
            f"run {state.run_id} of workflow {state.workflow_id!r} is closed ({state.status.value}); "
            "start a new run if there is still work",
            status=state.status.value,
        )
