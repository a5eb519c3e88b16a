"""What a reset takes over of that which came in behind its point (LC-16).

Messages (signals, updates, requests to cancel) are for the workflow and come in again, unless they are excluded: those
of the base run and of all later runs of its chain. So do changes of options, which nothing excludes. Answers of other
executions are for the base run alone: they count again where what was asked is in the prefix, so that it is not asked
twice. All else follows from workflow code, or, as ends of activities and timers do, comes again by itself.

What came with a reset (LC-18) stands among what that reset took over, and is told from it by the run that it names.
"""

from collections.abc import Collection, Sequence

import msgspec
from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import (
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionStarted,
    ChildWorkflowExecutionTerminated,
    ChildWorkflowExecutionTimedOut,
    EventAttributes,
    ExternalWorkflowExecutionCancelRequested,
    ExternalWorkflowExecutionSignaled,
    RequestCancelExternalWorkflowExecutionFailed,
    SignalExternalWorkflowExecutionFailed,
    StartChildWorkflowExecutionFailed,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionOptionsUpdated,
    WorkflowExecutionSignaled,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateAdmitted,
)
from stepwell.api.requests import PostResetOperation, PostResetOptions, PostResetSignal
from stepwell.api.updates import UpdateRequest

from ..requests import OptionsChange
from ..state import ExecutionState
from . import options

Excluded = Collection[ResetReapplyExcludeType]

_MESSAGES = (
    WorkflowExecutionSignaled,
    WorkflowExecutionCancelRequested,
    WorkflowExecutionUpdateAdmitted,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionOptionsUpdated,
)
_CHILD_ENDS = (
    ChildWorkflowExecutionCompleted,
    ChildWorkflowExecutionFailed,
    ChildWorkflowExecutionCanceled,
    ChildWorkflowExecutionTimedOut,
    ChildWorkflowExecutionTerminated,
)
_ANSWERS = (
    *_CHILD_ENDS,
    ChildWorkflowExecutionStarted,
    StartChildWorkflowExecutionFailed,
    ExternalWorkflowExecutionSignaled,
    SignalExternalWorkflowExecutionFailed,
    ExternalWorkflowExecutionCancelRequested,
    RequestCancelExternalWorkflowExecutionFailed,
)


def may_count_again(attributes: EventAttributes, *, of_base: bool) -> bool:
    """Whether this is something that a reset takes over, of the base run or of a later one of its chain."""
    return isinstance(attributes, _MESSAGES) or (of_base and isinstance(attributes, _ANSWERS))


def post_reset(
    run_id: str, operations: Sequence[PostResetOperation], identity: str, *, principal: str = ""
) -> tuple[EventAttributes | OptionsChange, ...]:
    """What the operations of the reset that makes the run ``run_id`` become in it (LC-18). Raises InvalidArgument."""
    asked: list[EventAttributes | OptionsChange] = []
    for index, operation in enumerate(operations):
        where = f"post_reset_operations[{index}]"
        match operation.signal_workflow, operation.update_workflow_options:
            case PostResetSignal() as signal, None:
                asked.append(
                    WorkflowExecutionSignaled(
                        signal_name=signal.signal_name,
                        input=signal.input,
                        headers=signal.headers,
                        identity=identity,
                        request_id=f"{_mark(run_id)}{index}",
                        principal=principal,
                    )
                )
            case None, PostResetOptions() as change:
                asked.append(options.change_asked(change, identity, where, principal=principal))
            case signal, _:
                given = "names no operation" if signal is None else "names two operations"
                raise InvalidArgument(
                    f"{where} {given}; give each exactly one, signal_workflow or update_workflow_options. A repeat "
                    "does not help.",
                    field="post_reset_operations",
                )
    return tuple(asked)


def came_with_reset(run_id: str, attributes: EventAttributes) -> bool:
    """Whether it was an operation of the reset that made the run ``run_id``. What it took over says another run."""
    match attributes:
        case WorkflowExecutionSignaled():
            return attributes.request_id.startswith(_mark(run_id))
        case WorkflowExecutionOptionsUpdated():
            return attributes.reset_run_id == run_id
    return False


def _mark(run_id: str) -> str:
    return f"post-reset:{run_id}:"


def reapplied(state: ExecutionState, attributes: EventAttributes, excluded: Excluded) -> EventAttributes | None:
    """The event that it becomes in the new run, whose state so far is ``state``; None when it does not count there."""
    match attributes:
        case WorkflowExecutionSignaled():
            return None if ResetReapplyExcludeType.SIGNAL in excluded else attributes
        case WorkflowExecutionCancelRequested():
            again = not state.cancel_requested and ResetReapplyExcludeType.CANCEL_REQUEST not in excluded
            return attributes if again else None
        case WorkflowExecutionOptionsUpdated():
            return attributes
        case WorkflowExecutionUpdateAdmitted(request=request):
            return _admitted(state, request, excluded)
        case WorkflowExecutionUpdateAccepted(accepted_request=UpdateRequest() as request):
            return _admitted(state, request, excluded)
        case WorkflowExecutionUpdateAccepted():
            return None  # its admission is an event of its own, and was taken over
        case _ if isinstance(attributes, _ANSWERS):
            return _answer(state, attributes)
        case _:
            return None


def _admitted(
    state: ExecutionState, request: UpdateRequest, excluded: Excluded
) -> WorkflowExecutionUpdateAdmitted | None:
    """An update that was accepted is admitted again: its validator and handler have not run in the new run."""
    if knows_update(state, request.meta.update_id) or ResetReapplyExcludeType.UPDATE in excluded:
        return None
    return WorkflowExecutionUpdateAdmitted(request=request)


def knows_update(state: ExecutionState, update_id: str) -> bool:
    """Another run of the chain may have been asked for an update of the same id."""
    return update_id in state.updates or any(ended.update_id == update_id for ended in state.ended_updates)


def _answer(state: ExecutionState, attributes: EventAttributes) -> EventAttributes | None:
    asked: int = attributes.initiated_event_id  # type: ignore[union-attr]
    if isinstance(attributes, ChildWorkflowExecutionStarted | StartChildWorkflowExecutionFailed):
        pending = state.children.get(asked)
        return attributes if pending is not None and not pending.started_event_id else None
    if isinstance(attributes, _CHILD_ENDS):
        child = state.children.get(asked)
        if child is None:
            return None
        return msgspec.structs.replace(attributes, started_event_id=child.started_event_id)
    return attributes if asked in state.external_signals or asked in state.external_cancels else None
