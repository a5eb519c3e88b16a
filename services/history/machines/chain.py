"""The chain of runs of one workflow: how a run goes on as the next one (LC-21, ER-12, LC-24).

Every next run of a chain begins here: what the workflow asks for (continue-as-new), and what its retry policy and its
cron schedule make of an end. The chain has one first run, one expiration time, one parent and one set of request ids.
"""

from collections.abc import Sequence
from datetime import timedelta

import msgspec
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ContinueAsNewInitiator
from stepwell.api.events import WorkflowExecutionContinuedAsNew, WorkflowExecutionStarted

from ..builder import TransitionBuilder
from ..requests import NextRun
from ..state import BufferedEvent, ExecutionState
from . import succession

_replace = msgspec.structs.replace


def continue_as_new(
    draft: TransitionBuilder,
    command: ContinueAsNewWorkflowExecution,
    completed_event_id: int,
    identity: str,
    next_run: NextRun,
) -> None:
    """Closes the run and begins the next, in one commit. Messages that the run has not seen come first in the next."""
    state = draft.state
    started = _continued(state, command, identity, next_run)
    closed = WorkflowExecutionContinuedAsNew(
        new_execution_run_id=next_run.run_id,
        workflow_type=started.workflow_type,
        task_queue=started.task_queue,
        input=started.input,
        workflow_run_timeout=started.workflow_run_timeout,
        workflow_task_timeout=started.workflow_task_timeout,
        workflow_task_completed_event_id=completed_event_id,
        backoff_start_interval=started.first_workflow_task_backoff,
        last_completion_result=started.last_completion_result,
        headers=started.headers,
        memo=started.memo,
        search_attributes=started.search_attributes,
    )
    succession.succeed(draft, closed, started, next_run.run_id, carried(state))
    succession.begin(draft)


def carried(state: ExecutionState) -> Sequence[BufferedEvent]:
    """What the run has not seen and the next one of its chain gets."""
    return [entry for entry in state.buffered if succession.passes_on(entry)]


def _continued(
    state: ExecutionState, command: ContinueAsNewWorkflowExecution, identity: str, next_run: NextRun
) -> WorkflowExecutionStarted:
    execution_timeout, run_timeout = asked_timeouts(state)
    if command.workflow_run_timeout is not None:
        run_timeout = command.workflow_run_timeout
    if run_timeout is not None and execution_timeout is not None:
        run_timeout = min(run_timeout, execution_timeout)
    before = next_run.started
    started = WorkflowExecutionStarted(
        workflow_type=command.workflow_type,
        task_queue=command.task_queue,
        input=command.input,
        workflow_execution_timeout=execution_timeout,
        workflow_run_timeout=run_timeout,
        workflow_task_timeout=command.workflow_task_timeout or state.workflow_task_timeout,
        original_execution_run_id=next_run.run_id,
        first_execution_run_id=state.first_run_id,
        identity=identity,
        retry_policy=command.retry_policy or state.retry_policy,
        memo=state.memo if command.memo is None else command.memo,
        search_attributes=state.search_attributes if command.search_attributes is None else command.search_attributes,
        headers=command.headers,
        workflow_id=state.workflow_id,
        continued_execution_run_id=state.run_id,
        initiator=ContinueAsNewInitiator.WORKFLOW,
        last_completion_result=before.last_completion_result if before is not None else (),
        cron_schedule=state.cron_schedule,
        first_workflow_task_backoff=command.backoff_start_interval or None,
    )
    return _with_lineage(started, state)


def _with_lineage(started: WorkflowExecutionStarted, state: ExecutionState) -> WorkflowExecutionStarted:
    """A chain is the child of one parent, whichever of its runs is open."""
    parent = state.parent
    if parent is None:
        return started
    return _replace(
        started,
        parent_workflow_namespace=parent.namespace,
        parent_workflow_execution=WorkflowExecution(workflow_id=parent.workflow_id, run_id=parent.run_id),
        parent_initiated_event_id=parent.initiated_event_id,
        parent_original_execution_run_id=parent.original_run_id,
        root_workflow_execution=state.root,
    )


def asked_timeouts(state: ExecutionState) -> tuple[timedelta | None, timedelta | None]:
    """Execution and run timeout as they were asked for; from their ends, in a run of a release that kept no more."""
    execution, run = state.workflow_execution_timeout, state.workflow_run_timeout
    if execution is None and state.execution_expires is not None:
        execution = state.execution_expires - state.start_time
    if run is None and state.run_expires is not None and state.run_expires != state.execution_expires:
        run = state.run_expires - state.start_time
    return execution, run


def repeats(state: ExecutionState) -> bool:
    """Whether an end may make the run begin again as it began, for which its first event is needed."""
    return state.retry_policy is not None or bool(state.cron_schedule)
