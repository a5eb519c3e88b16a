"""Signals: recorded before they are acknowledged, once per request id (MS-01, MS-06 to MS-08)."""

from stepwell.api import limits
from stepwell.api.errors import InvalidArgument, WorkflowExecutionClosing
from stepwell.api.events import WorkflowExecutionSignaled

from .. import request_ids
from ..builder import TransitionBuilder
from ..requests import Signal
from ..state import ExecutionState
from . import inbox


def is_repeat(state: ExecutionState, request: Signal) -> bool:
    return request.repeat or request_ids.is_known(state, request_ids.SIGNAL, request.request_id)


def receive(draft: TransitionBuilder, request: Signal) -> None:
    """Raises WorkflowExecutionClosing, or InvalidArgument over the limit of signals."""
    state = draft.state
    refuse_while_closing(state)
    count = state.signal_count
    for event in state.buffered:
        count += isinstance(event.attributes, WorkflowExecutionSignaled)
    if count >= limits.MAX_SIGNALS_PER_RUN:
        raise InvalidArgument(
            f"workflow {state.workflow_id!r} has had {count} signals, the most that one run takes "
            f"({limits.MAX_SIGNALS_PER_RUN}). Start a new run, or collect several messages into one signal.",
            field="signal_name",
        )
    request_ids.remember(state, request_ids.SIGNAL, request.request_id)
    inbox.receive(
        draft,
        WorkflowExecutionSignaled(
            signal_name=request.signal_name,
            input=request.input,
            identity=request.identity,
            headers=request.headers,
            request_id=request.request_id,
            external_workflow_execution=request.sender,
            principal=request.principal,
        ),
    )


def refuse_while_closing(state: ExecutionState) -> None:
    """Messages wait while a refused close is tried again, so that it cannot starve (MS-06)."""
    task = state.workflow_task
    if task is not None and task.closing:
        raise WorkflowExecutionClosing(
            f"workflow {state.workflow_id!r} is about to close and takes no more messages; try again after a moment"
        )
