"""The chain of runs of one workflow: how a run goes on as the next one (LC-21, ER-12, LC-24).

Every next run of a chain begins here: what the workflow asks for (continue-as-new), and what its retry policy and its
cron schedule make of an end. The chain has one first run, one expiration time, one parent and one set of request ids.
A run that was asked to cancel is its chain's last, unless it continues as new itself.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ContinueAsNewInitiator, RetryState, TimeoutType
from stepwell.api.events import (
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
    WorkflowExecutionFailed,
    WorkflowExecutionStarted,
    WorkflowExecutionTimedOut,
)
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload

from ...visibility.attributes import CHANGE_VERSION
from .. import cron, retry
from ..builder import TransitionBuilder
from ..requests import NextRun
from ..state import BufferedEvent, ExecutionState
from . import cancellation, closing, inbox, succession

_replace = msgspec.structs.replace
_ZERO = timedelta(0)

End = WorkflowExecutionCompleted | WorkflowExecutionFailed | WorkflowExecutionTimedOut
"""Ends behind which a chain may go on."""


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
    succession.succeed(draft, closed, started, next_run.run_id, carried(state), next_run.user_metadata)
    succession.begin(draft)


def end(draft: TransitionBuilder, event: End, next_run: NextRun) -> None:
    """Closes the run with ``event``, which is completed here; the next run begins where the policy or cron says so."""
    state = draft.state
    following = _following(state, event, draft.now, next_run)
    if following.started is None:
        inbox.flush(draft)
        closing.close(draft, _with_retry_state(event, following.retry_state))
        return
    closed = _with_retry_state(_replace(event, new_execution_run_id=next_run.run_id), following.retry_state)
    passing = carried(state)
    state.buffered = tuple([entry for entry in state.buffered if not succession.passes_on(entry)])
    inbox.flush(draft)
    state.buffered = tuple(passing)
    succession.succeed(draft, closed, following.started, next_run.run_id, passing, next_run.user_metadata)
    succession.begin(draft)


def time_out(draft: TransitionBuilder, next_run: NextRun) -> None:
    end(draft, WorkflowExecutionTimedOut(), next_run)


class _Following(msgspec.Struct, frozen=True, gc=False):
    """How a run that ended is followed; ``started`` None: not at all."""

    started: WorkflowExecutionStarted | None
    retry_state: RetryState


def _following(state: ExecutionState, event: End, now: datetime, next_run: NextRun) -> _Following:
    before = next_run.started
    failure = _failure(event)
    retry_state = (
        RetryState.TIMEOUT if isinstance(event, WorkflowExecutionTimedOut) else RetryState.RETRY_POLICY_NOT_SET
    )
    if before is None:
        return _Following(None, retry_state)
    canceled = cancellation.is_requested(state)
    expires = state.execution_expires
    if failure is not None and state.retry_policy is not None:
        decision = retry.decide(
            state.retry_policy, state.attempt, failure, now=now, expires=expires, cancel_requested=canceled
        )
        if isinstance(decision, retry.Retry):
            started = _repeated(state, before, ContinueAsNewInitiator.RETRY, decision.time, now, event)
            return _Following(_replace(started, attempt=state.attempt + 1), RetryState.IN_PROGRESS)
        retry_state = decision
    if not state.cron_schedule or canceled:
        return _Following(None, retry_state)
    scheduled = state.start_time + (before.first_workflow_task_backoff or _ZERO)
    time = cron.next_time(state.cron_schedule, scheduled, now)
    if time is None or (expires is not None and time >= expires):
        return _Following(None, retry_state)
    return _Following(_repeated(state, before, ContinueAsNewInitiator.CRON_SCHEDULE, time, now, event), retry_state)


def _repeated(
    state: ExecutionState,
    before: WorkflowExecutionStarted,
    initiator: ContinueAsNewInitiator,
    time: datetime | None,
    now: datetime,
    event: End,
) -> WorkflowExecutionStarted:
    """The run begins again as it began."""
    return _replace(
        before,
        first_execution_run_id=state.first_run_id,
        priority=state.priority,
        attempt=1,
        request_id="",
        continued_execution_run_id=state.run_id,
        initiator=initiator,
        continued_failure=_failure(event),
        last_completion_result=event.result
        if isinstance(event, WorkflowExecutionCompleted)
        else before.last_completion_result,
        first_workflow_task_backoff=time - now if time is not None and time > now else None,
        eager_execution_accepted=False,
    )


def _failure(event: End) -> Failure | None:
    match event:
        case WorkflowExecutionFailed():
            return event.failure
        case WorkflowExecutionTimedOut():
            return retry.timeout_failure(TimeoutType.START_TO_CLOSE, "workflow timeout: the run took too long", None)
        case WorkflowExecutionCompleted():
            return None


def _with_retry_state(event: End, retry_state: RetryState) -> End:
    return event if isinstance(event, WorkflowExecutionCompleted) else _replace(event, retry_state=retry_state)


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
        search_attributes=_said(state) if command.search_attributes is None else command.search_attributes,
        headers=command.headers,
        workflow_id=state.workflow_id,
        continued_execution_run_id=state.run_id,
        initiator=ContinueAsNewInitiator.WORKFLOW,
        last_completion_result=before.last_completion_result if before is not None else (),
        cron_schedule=state.cron_schedule,
        priority=state.priority,
        first_workflow_task_backoff=command.backoff_start_interval or None,
    )
    return _with_lineage(started, state)


def _said(state: ExecutionState) -> dict[str, Payload]:
    """The search attributes without the versions of changed code: which of them the next run has, its own code says."""
    return {name: value for name, value in state.search_attributes.items() if name != CHANGE_VERSION}


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
