"""Starts: idempotent by request id, and the policies about a run that is there already (LC-01 to LC-03)."""

from datetime import datetime, timedelta
from typing import Any

from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    ContinueAsNewInitiator,
    WorkflowExecutionStatus,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from stepwell.api.errors import InvalidArgument, WorkflowExecutionAlreadyStarted
from stepwell.api.events import WorkflowExecutionStarted, WorkflowExecutionTerminated
from stepwell.api.requests import StartWorkflowRequest

from .. import cron, priorities, request_ids, retry, search_attributes
from ..builder import TransitionBuilder, unchanged
from ..requests import Start
from ..state import ExecutionState, ParentLink
from ..transition import StartReply, Transition
from . import inbox, options, pace, succession, watching
from .run_checks import is_deleted

_ZERO = timedelta(0)
_UNSUCCESSFUL = frozenset(
    {
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.TIMED_OUT,
        WorkflowExecutionStatus.TERMINATED,
        WorkflowExecutionStatus.CANCELED,
    }
)


def start(head: ExecutionState | None, request: Start, now: datetime) -> Transition:
    """Opens a run, or answers with the one that is there.

    With TERMINATE_EXISTING and an open run, the one transition closes that run and opens the new one.
    Raises WorkflowExecutionAlreadyStarted, InvalidArgument.
    """
    asked = request.start
    check(asked)
    if head is not None:
        known = before(head, request)
        if known is not None:
            return unchanged(head, known)
        if head.close_time is None:
            return _beside_open(head, request, now)
        check_reuse(head, request)
    return _open(head, request, now)


def before(head: ExecutionState, request: Start) -> StartReply | None:
    """The answer to an earlier start with the same request id."""
    earlier = request.earlier or request_ids.started(head, request.start.request_id)
    if earlier is None:
        return None
    return StartReply(run_id=earlier.run_id, first_run_id=earlier.first_run_id, started=earlier.started)


def _beside_open(head: ExecutionState, request: Start, now: datetime) -> Transition:
    asked = request.start
    existing = StartReply(run_id=head.run_id, first_run_id=head.first_run_id, started=False)
    match asked.workflow_id_conflict_policy:
        case WorkflowIDConflictPolicy.USE_EXISTING:
            if request.parent is not None:
                return watching.add(head, request.parent, now)
            if not options.attaches(request):
                return unchanged(head, existing)
            draft = TransitionBuilder(head, now)
            options.attach(draft, request)
            inbox.settle(draft)
            return draft.finish(existing)
        case WorkflowIDConflictPolicy.TERMINATE_EXISTING:
            if asked.workflow_id_reuse_policy is WorkflowIDReusePolicy.REJECT_DUPLICATE:
                raise InvalidArgument(
                    "workflow_id_conflict_policy TERMINATE_EXISTING cannot go with workflow_id_reuse_policy "
                    "REJECT_DUPLICATE: the terminated run would reject the new one. Choose another of either.",
                    field="workflow_id_conflict_policy",
                )
            return _replace_open(head, request, now)
        case WorkflowIDConflictPolicy.FAIL:
            raise WorkflowExecutionAlreadyStarted(
                f"workflow {asked.workflow_id!r} is running as run {head.run_id}. Use another workflow_id, or "
                "workflow_id_conflict_policy USE_EXISTING or TERMINATE_EXISTING.",
                run_id=head.run_id,
            )


def _replace_open(head: ExecutionState, request: Start, now: datetime) -> Transition:
    return _begin(replacing(head, request, now), request)


def replacing(head: ExecutionState, request: Start, now: datetime) -> TransitionBuilder:
    """A draft that ends the open run and has begun the next one, whose first workflow task is still to come
    (``succession.begin``)."""
    paid_until = pace.admit(head, request.pace, now)
    draft = TransitionBuilder(head, now)
    inbox.flush(draft)
    terminated = WorkflowExecutionTerminated(
        reason=f"terminated by the start of run {request.run_id} (TERMINATE_EXISTING)",
        identity=request.start.identity,
        principal=request.principal,
    )
    succession.succeed(
        draft, terminated, _attributes(request, now), request.run_id, user_metadata=request.start.user_metadata
    )
    _know(draft.state, request, paid_until)
    return draft


def _know(state: ExecutionState, request: Start, paid_until: datetime | None) -> None:
    state.starts_paid_until = paid_until
    request_ids.remember_start(state, request.start.request_id, request.run_id)
    if request.waiter is not None:
        state.waiters = (request.waiter,)


def check_reuse(head: ExecutionState, request: Start) -> None:
    """A run that is deleted excludes nothing."""
    asked = request.start
    if is_deleted(head, head.run_id):
        return
    match asked.workflow_id_reuse_policy:
        case WorkflowIDReusePolicy.ALLOW_DUPLICATE:
            return
        case WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY if head.status in _UNSUCCESSFUL:
            return
        case policy:
            raise WorkflowExecutionAlreadyStarted(
                f"workflow {asked.workflow_id!r} has been run before (run {head.run_id}, {head.status.value}), which "
                f"workflow_id_reuse_policy {policy.value} excludes. Use another workflow_id or policy.",
                run_id=head.run_id,
            )


def _open(head: ExecutionState | None, request: Start, now: datetime) -> Transition:
    return _begin(opening(head, request, now), request)


def opening(head: ExecutionState | None, request: Start, now: datetime) -> TransitionBuilder:
    """A draft that has begun a run behind ``head`` (closed, or None), whose first workflow task is still to come."""
    paid_until = pace.admit(head, request.pace, now)
    draft = TransitionBuilder.opening(
        head, _attributes(request, now), request.start.namespace, now, request.start.user_metadata
    )
    _know(draft.state, request, paid_until)
    return draft


def _begin(draft: TransitionBuilder, request: Start) -> Transition:
    succession.begin(draft)
    return draft.finish(StartReply(run_id=request.run_id, first_run_id=request.run_id, started=True))


def _attributes(request: Start, now: datetime) -> WorkflowExecutionStarted:
    asked = request.start
    execution_timeout = asked.workflow_execution_timeout
    wait = _wait(asked, now)
    return WorkflowExecutionStarted(
        workflow_type=asked.workflow_type,
        task_queue=asked.task_queue,
        input=asked.input,
        workflow_execution_timeout=execution_timeout,
        workflow_run_timeout=_shorter(asked.workflow_run_timeout, execution_timeout),
        workflow_task_timeout=_task_timeout(asked.workflow_task_timeout),
        original_execution_run_id=request.run_id,
        first_execution_run_id=request.run_id,
        identity=asked.identity,
        principal=request.principal,
        workflow_execution_expiration_time=None
        if execution_timeout is None
        else now + (wait or _ZERO) + execution_timeout,
        retry_policy=asked.retry_policy,
        cron_schedule=asked.cron_schedule,
        priority=asked.priority,
        first_workflow_task_backoff=wait,
        eager_execution_accepted=asked.eager_worker is not None and wait is None,
        initiator=ContinueAsNewInitiator.CRON_SCHEDULE if asked.cron_schedule else None,
        memo=asked.memo,
        search_attributes=asked.search_attributes,
        headers=asked.headers,
        request_id=asked.request_id,
        workflow_id=asked.workflow_id,
        root_workflow_execution=request.root,
        last_completion_result=request.last_completion_result,
        continued_failure=request.continued_failure,
        completion_callbacks=asked.completion_callbacks,
        **_parentage(request.parent),
    )


def _parentage(parent: ParentLink | None) -> dict[str, Any]:
    if parent is None:
        return {}
    return {
        "parent_workflow_namespace": parent.namespace,
        "parent_workflow_execution": WorkflowExecution(workflow_id=parent.workflow_id, run_id=parent.run_id),
        "parent_initiated_event_id": parent.initiated_event_id,
        "parent_original_execution_run_id": parent.original_run_id,
    }


def check(asked: StartWorkflowRequest) -> None:
    """What the outer checks leave to the engine. Raises InvalidArgument."""
    options.check_attach(asked)
    problem = retry.problem_of(asked.retry_policy) if asked.retry_policy is not None else ""
    if problem:
        raise InvalidArgument(f"retry_policy of the workflow: {problem}.", field="retry_policy")
    problem = priorities.problem_of(asked.priority)
    if problem:
        raise InvalidArgument(f"priority of the workflow: {problem}.", field="priority")
    problem = search_attributes.problem_of(asked.search_attributes)
    if problem:
        raise InvalidArgument(f"search_attributes of the workflow: {problem}.", field="search_attributes")
    if not asked.cron_schedule:
        return
    try:
        cron.parse(asked.cron_schedule)
    except cron.BadCron as bad:
        raise InvalidArgument(
            f"cron_schedule {asked.cron_schedule[:100]!r} {bad}. Say it as in '0 12 * * MON', '@daily' or "
            "'@every 90m'.",
            field="cron_schedule",
        ) from None
    if asked.workflow_start_delay:
        raise InvalidArgument(
            "workflow_start_delay cannot go with cron_schedule, which says itself when the first run begins; "
            "leave one of them out.",
            field="workflow_start_delay",
        )


def _wait(asked: StartWorkflowRequest, now: datetime) -> timedelta | None:
    """Time until the first workflow task."""
    if not asked.cron_schedule:
        return asked.workflow_start_delay or None
    time = cron.next_time(asked.cron_schedule, now, now)
    return time - now if time is not None else None


def _shorter(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    if one is None or other is None:
        return one
    return min(one, other)


def _task_timeout(asked: timedelta | None) -> timedelta:
    if asked is None:
        return limits.DEFAULT_WORKFLOW_TASK_TIMEOUT
    return min(asked, limits.MAX_WORKFLOW_TASK_TIMEOUT)
