"""Cancellation of a run is a state: the first request is delivered, later ones change nothing (CH-09)."""

from stepwell.api.events import WorkflowExecutionCancelRequested

from .. import request_ids
from ..builder import TransitionBuilder
from ..requests import RequestCancel
from ..state import ExecutionState
from . import inbox
from .signal import refuse_while_closing


def is_requested(state: ExecutionState) -> bool:
    """Whether the run was asked to cancel, in the history or in the buffer."""
    return state.cancel_requested or any(
        isinstance(event.attributes, WorkflowExecutionCancelRequested) for event in state.buffered
    )


def is_repeat(state: ExecutionState, request: RequestCancel) -> bool:
    return request.repeat or request_ids.is_known(state, request_ids.CANCEL, request.request_id)


def request(draft: TransitionBuilder, request: RequestCancel) -> None:
    refuse_while_closing(draft.state)
    request_ids.remember(draft.state, request_ids.CANCEL, request.request_id)
    inbox.receive(
        draft,
        WorkflowExecutionCancelRequested(
            cause=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            external_initiated_event_id=request.sender_event_id,
            external_workflow_execution=request.sender,
            principal=request.principal,
        ),
    )
