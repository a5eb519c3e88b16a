"""Commands that close a run: its own end, or the next run of its chain."""

from datetime import timedelta

import msgspec
from stepwell.api import limits
from stepwell.api.commands import (
    CancelWorkflowExecution,
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    FailWorkflowExecution,
)
from stepwell.api.common import Memo
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import WorkflowExecutionCanceled, WorkflowExecutionCompleted, WorkflowExecutionFailed

from .. import retry, search_attributes
from ..builder import TransitionBuilder
from ..timeouts import BadTimeout, check_duration
from . import chain, closing
from .bad_command import BadCommand, check_id, check_payloads, check_size, failure_size, payload_size
from .carrying import Carrying

_BAD = WorkflowTaskFailedCause.BAD_CONTINUE_AS_NEW_ATTRIBUTES
_ZERO = timedelta(0)


def complete(draft: TransitionBuilder, command: CompleteWorkflowExecution, task: Carrying) -> None:
    check_payloads("the result of the workflow", command.result)
    event = WorkflowExecutionCompleted(result=command.result, workflow_task_completed_event_id=task.completed_event_id)
    chain.end(draft, event, task.next_run)


def fail(draft: TransitionBuilder, command: FailWorkflowExecution, task: Carrying) -> None:
    check_size("the failure of the workflow", failure_size(command.failure))
    event = WorkflowExecutionFailed(failure=command.failure, workflow_task_completed_event_id=task.completed_event_id)
    chain.end(draft, event, task.next_run)


def cancel(draft: TransitionBuilder, command: CancelWorkflowExecution, task: Carrying) -> None:
    check_payloads("the details of the cancellation", command.details)
    event = WorkflowExecutionCanceled(details=command.details, workflow_task_completed_event_id=task.completed_event_id)
    closing.close(draft, event)


def continue_as_new(draft: TransitionBuilder, command: ContinueAsNewWorkflowExecution, task: Carrying) -> None:
    if not (command.workflow_type and command.task_queue):
        state = draft.state
        command = msgspec.structs.replace(
            command,
            workflow_type=command.workflow_type or state.workflow_type,
            task_queue=command.task_queue or state.task_queue,
        )
    _check_continue(command)
    chain.continue_as_new(draft, command, task.completed_event_id, task.identity, task.next_run)


def continued_size(command: ContinueAsNewWorkflowExecution) -> int:
    """Bytes of the command's payloads."""
    return sum(map(payload_size, command.input)) + sum(
        _map_size(values) for values in (command.headers, command.memo, command.search_attributes)
    )


def _check_continue(command: ContinueAsNewWorkflowExecution) -> None:
    check_id(_BAD, "workflow_type of ContinueAsNewWorkflowExecution", command.workflow_type)
    check_id(_BAD, "task_queue of ContinueAsNewWorkflowExecution", command.task_queue)
    check_payloads("the input of the run that continues as new", command.input)
    check_size("the headers of the run that continues as new", _map_size(command.headers))
    check_size("the memo of the run that continues as new", _map_size(command.memo))
    check_size("the search attributes of the run that continues as new", _map_size(command.search_attributes))
    try:
        check_duration("workflow_run_timeout", command.workflow_run_timeout)
        check_duration("workflow_task_timeout", command.workflow_task_timeout)
        if command.backoff_start_interval != _ZERO:
            check_duration("backoff_start_interval", command.backoff_start_interval)
    except BadTimeout as bad:
        raise BadCommand(_BAD, f"ContinueAsNewWorkflowExecution: {bad}") from None
    if command.workflow_task_timeout is not None and command.workflow_task_timeout > limits.MAX_WORKFLOW_TASK_TIMEOUT:
        raise BadCommand(
            _BAD,
            f"ContinueAsNewWorkflowExecution: workflow_task_timeout is {command.workflow_task_timeout}; at most "
            f"{limits.MAX_WORKFLOW_TASK_TIMEOUT} is taken. It is the time of one turn of code, not of the run.",
        )
    problem = retry.problem_of(command.retry_policy) if command.retry_policy is not None else ""
    if problem:
        raise BadCommand(_BAD, f"retry_policy of ContinueAsNewWorkflowExecution: {problem}.")
    problem = search_attributes.problem_of(command.search_attributes or {})
    if problem:
        raise BadCommand(_BAD, f"search_attributes of ContinueAsNewWorkflowExecution: {problem}.")


def _map_size(values: Memo | None) -> int:
    return sum(map(payload_size, values.values())) if values else 0
