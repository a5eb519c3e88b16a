"""Children, from their parent's side: asked for, confirmed, ended (CH-01, CH-03, CH-04).

A child is confirmed and ends by answers that ``crossing`` brings; what the parent's own end does to it is in
``parent_close``.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from stepwell.api import limits
from stepwell.api.commands import StartChildWorkflowExecution
from stepwell.api.common import WorkflowExecution, inherited
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowTaskFailedCause
from stepwell.api.events import (
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
    ChildWorkflowExecutionTimedOut,
    EventAttributes,
    StartChildWorkflowExecutionFailed,
    StartChildWorkflowExecutionInitiated,
    WorkflowExecutionCanceled,
    WorkflowExecutionCompleted,
    WorkflowExecutionFailed,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)

from .. import cron, priorities, retry, search_attributes
from ..answers import ChildAnswer, ChildClosed
from ..builder import TransitionBuilder
from ..placement import CHILD_ENDS
from ..run_limits import way_out
from ..state import ExecutionState, PendingChild
from ..tasks import StartChild
from ..timeouts import BadTimeout, check_duration
from . import inbox
from .bad_command import BadCommand, check_id, check_metadata, check_namespace, check_size, payload_size

_BAD = WorkflowTaskFailedCause.BAD_START_CHILD_EXECUTION_ATTRIBUTES


def start_size(command: StartChildWorkflowExecution) -> int:
    return sum(
        map(
            payload_size,
            (
                *command.input,
                *command.headers.values(),
                *command.memo.values(),
                *command.search_attributes.values(),
            ),
        )
    )


def start(draft: TransitionBuilder, command: StartChildWorkflowExecution, completed_event_id: int) -> None:
    """Raises BadCommand for bad attributes, or too many children."""
    state = draft.state
    namespace = "" if command.namespace == state.namespace else command.namespace
    if not (command.task_queue or command.watch_only):
        command = msgspec.structs.replace(command, task_queue=state.task_queue)
    _check(draft, command, namespace)
    event = draft.record(
        StartChildWorkflowExecutionInitiated(
            namespace=namespace,
            workflow_id=command.workflow_id,
            workflow_type=command.workflow_type,
            task_queue=command.task_queue,
            input=command.input,
            workflow_execution_timeout=command.workflow_execution_timeout,
            workflow_run_timeout=command.workflow_run_timeout,
            workflow_task_timeout=command.workflow_task_timeout,
            parent_close_policy=command.parent_close_policy,
            workflow_task_completed_event_id=completed_event_id,
            workflow_id_reuse_policy=command.workflow_id_reuse_policy,
            workflow_id_conflict_policy=command.workflow_id_conflict_policy,
            retry_policy=command.retry_policy,
            cron_schedule=command.cron_schedule,
            headers=command.headers,
            memo=command.memo,
            search_attributes=command.search_attributes,
            watch_only=command.watch_only,
            priority=inherited(state.priority, command.priority),
        ),
        user_metadata=check_metadata(f"child {command.workflow_id!r}", command.user_metadata),
    )
    draft.tasks.append(
        StartChild(
            run_id=state.run_id,
            initiated_event_id=event.event_id,
            namespace=namespace,
            workflow_id=command.workflow_id,
        )
    )


def _check(draft: TransitionBuilder, command: StartChildWorkflowExecution, namespace: str) -> None:
    state, most = draft.state, draft.limits.children
    check_id(_BAD, "workflow_id of the child", command.workflow_id)
    if not command.watch_only:
        check_id(_BAD, "workflow_type of the child", command.workflow_type)
        check_id(_BAD, "task_queue of the child", command.task_queue)
    check_namespace(_BAD, namespace)
    if command.workflow_id_conflict_policy is WorkflowIDConflictPolicy.TERMINATE_EXISTING:
        raise BadCommand(
            _BAD,
            f"workflow_id_conflict_policy of child {command.workflow_id!r} is TERMINATE_EXISTING, which children do "
            "not have; use FAIL or USE_EXISTING.",
        )
    for name in ("workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout"):
        try:
            check_duration(f"{name} of child {command.workflow_id!r}", getattr(command, name))
        except BadTimeout as bad:
            raise BadCommand(_BAD, f"{bad}.") from None
    for field, problem in (
        ("retry_policy", "" if command.retry_policy is None else retry.problem_of(command.retry_policy)),
        ("priority", priorities.problem_of(command.priority)),
        ("search_attributes", search_attributes.problem_of(command.search_attributes)),
    ):
        if problem:
            raise BadCommand(_BAD, f"{field} of child {command.workflow_id!r}: {problem}.")
    if command.cron_schedule:
        try:
            cron.parse(command.cron_schedule)
        except cron.BadCron as bad:
            raise BadCommand(
                _BAD,
                f"cron_schedule {command.cron_schedule[:100]!r} of child {command.workflow_id!r} {bad}. Say it as in "
                "'0 12 * * MON', '@daily' or '@every 90m'.",
            ) from None
    check_size(f"what child {command.workflow_id!r} is started with", start_size(command))
    if len(state.children) >= most:
        raise BadCommand(
            WorkflowTaskFailedCause.PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED,
            f"the run has {len(state.children)} pending children, the most it may have; wait for some to end "
            f"first{way_out(most, limits.MAX_PENDING_CHILDREN)}.",
        )


# --- answers ------------------------------------------------------------------------------------------------------


def is_of(state: ExecutionState, run_id: str, original_run_id: str = "") -> bool:
    """Whether this run is the one that is meant, or goes on for it after a reset (CH-17)."""
    return run_id == state.run_id or (state.original_run_id or state.run_id) == (original_run_id or run_id)


def buffered_of(state: ExecutionState, initiated_event_id: int) -> Sequence[EventAttributes]:
    """What has come in about this child and has no number yet."""
    return [
        event.attributes
        for event in state.buffered
        if getattr(event.attributes, "initiated_event_id", 0) == initiated_event_id
    ]


def answered(draft: TransitionBuilder, answer: ChildAnswer) -> None:
    """Takes in what became of the start, unless that is known. The caller ends with ``inbox.settle``."""
    state = draft.state
    initiated_event_id = answer.initiated_event_id
    pending = state.children.get(initiated_event_id)
    if pending is None or pending.started_event_id or buffered_of(state, initiated_event_id):
        return
    if answer.cause is None:
        inbox.receive(draft, _started(pending, answer.child_run_id, answer.workflow_type))
    else:
        inbox.receive(
            draft,
            StartChildWorkflowExecutionFailed(
                namespace=pending.namespace,
                workflow_id=pending.workflow_id,
                workflow_type=pending.workflow_type,
                cause=answer.cause,
                initiated_event_id=initiated_event_id,
                workflow_task_completed_event_id=answer.asked.workflow_task_completed_event_id,
            ),
        )
    draft.ended.add(initiated_event_id)


def _started(pending: PendingChild, child_run_id: str, workflow_type: str) -> ChildWorkflowExecutionStarted:
    return ChildWorkflowExecutionStarted(
        namespace=pending.namespace,
        initiated_event_id=pending.initiated_event_id,
        workflow_execution=WorkflowExecution(workflow_id=pending.workflow_id, run_id=child_run_id),
        workflow_type=pending.workflow_type or workflow_type,
    )


def closed(draft: TransitionBuilder, ended: ChildClosed) -> None:
    """Takes in how a child ended. One whose start is not confirmed is confirmed by it. A repeat, or one that another
    run of the id waits for, does nothing. The caller ends with ``inbox.settle``."""
    state = draft.state
    waiter = ended.waiter
    pending = state.children.get(waiter.initiated_event_id)
    if (
        state.close_time is not None
        or pending is None
        or pending.workflow_id != ended.workflow_id
        or not is_of(state, waiter.run_id, waiter.original_run_id)
        or pending.run_id not in ("", ended.first_run_id)
    ):
        return
    before = buffered_of(state, waiter.initiated_event_id)
    if any(isinstance(event, CHILD_ENDS) for event in before):
        return
    if pending.started_event_id or before:
        inbox.receive(draft, _end(pending, ended))
    else:
        inbox.receive_child_end(draft, _started(pending, ended.first_run_id, ended.workflow_type), _end(pending, ended))
    draft.ended.add(waiter.initiated_event_id)


def _end(pending: PendingChild, ended: ChildClosed) -> EventAttributes:
    """``started_event_id`` is 0 while the Started event has no number; it is set when the end gets its own."""
    close = ended.close
    execution = WorkflowExecution(workflow_id=ended.workflow_id, run_id=ended.first_run_id)

    def event(kind: Callable[..., EventAttributes], **own: Any) -> EventAttributes:
        return kind(
            namespace=pending.namespace,
            workflow_execution=execution,
            workflow_type=pending.workflow_type or ended.workflow_type,
            initiated_event_id=pending.initiated_event_id,
            started_event_id=pending.started_event_id,
            **own,
        )

    match close:
        case WorkflowExecutionCompleted():
            return event(ChildWorkflowExecutionCompleted, result=close.result)
        case WorkflowExecutionFailed():
            return event(ChildWorkflowExecutionFailed, failure=close.failure, retry_state=close.retry_state)
        case WorkflowExecutionCanceled():
            return event(ChildWorkflowExecutionCanceled, details=close.details)
        case WorkflowExecutionTimedOut():
            return event(ChildWorkflowExecutionTimedOut, retry_state=close.retry_state)
        case WorkflowExecutionTerminated():
            return event(ChildWorkflowExecutionTerminated)
        case _:
            raise ValueError(f"{type(close).__name__} does not end a chain of runs")
