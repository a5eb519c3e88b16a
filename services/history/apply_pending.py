"""The fold of what is pending besides activities and timers: children, signals and cancels to others, updates."""

from datetime import timedelta
from typing import TypeVar

import msgspec
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.events import (
    ChildWorkflowExecutionStarted,
    HistoryEvent,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionInitiated,
    StartChildWorkflowExecutionInitiated,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateAdmitted,
    WorkflowExecutionUpdateCompleted,
)

from .state import (
    REMEMBERED_UPDATES,
    EndedUpdate,
    ExecutionState,
    PendingChild,
    PendingExternalCancel,
    PendingExternalSignal,
    PendingUpdate,
)

P = TypeVar("P", PendingChild, PendingExternalSignal, PendingExternalCancel)

FIRST_REDISPATCH = timedelta(seconds=30)
"""What was dispatched and not taken is dispatched again after this, then doubling (design section 7)."""

FIRST_LOOK_AT_CHILD = timedelta(days=1)
"""A started child tells its parent how it ended; the parent looks itself after this, then doubling."""

_replace = msgspec.structs.replace


def initiate_child(
    state: ExecutionState, event: HistoryEvent, attributes: StartChildWorkflowExecutionInitiated
) -> None:
    state.children[event.event_id] = PendingChild(
        initiated_event_id=event.event_id,
        namespace=attributes.namespace,
        workflow_id=attributes.workflow_id,
        workflow_type=attributes.workflow_type,
        parent_close_policy=attributes.parent_close_policy,
        attached=attributes.watch_only
        or attributes.workflow_id_conflict_policy is WorkflowIDConflictPolicy.USE_EXISTING,
        initiated_seq=state.seq,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
        dispatches=1,
    )


def child_started(state: ExecutionState, event: HistoryEvent, attributes: ChildWorkflowExecutionStarted) -> None:
    state.children[attributes.initiated_event_id] = _replace(
        state.children[attributes.initiated_event_id],
        started_event_id=event.event_id,
        run_id=attributes.workflow_execution.run_id,
        next_dispatch=event.event_time + FIRST_LOOK_AT_CHILD,
        dispatches=1,
    )


def initiate_signal(
    state: ExecutionState, event: HistoryEvent, attributes: SignalExternalWorkflowExecutionInitiated
) -> None:
    state.external_signals[event.event_id] = PendingExternalSignal(
        initiated_event_id=event.event_id,
        namespace=attributes.namespace,
        workflow_id=attributes.workflow_execution.workflow_id,
        run_id=attributes.workflow_execution.run_id,
        child_workflow_only=attributes.child_workflow_only,
        initiated_seq=state.seq,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
        dispatches=1,
    )


def initiate_cancel(
    state: ExecutionState, event: HistoryEvent, attributes: RequestCancelExternalWorkflowExecutionInitiated
) -> None:
    state.external_cancels[event.event_id] = PendingExternalCancel(
        initiated_event_id=event.event_id,
        namespace=attributes.namespace,
        workflow_id=attributes.workflow_execution.workflow_id,
        run_id=attributes.workflow_execution.run_id,
        child_workflow_only=attributes.child_workflow_only,
        initiated_seq=state.seq,
        next_dispatch=event.event_time + FIRST_REDISPATCH,
        dispatches=1,
    )


_TAKEN_OVER = -(10**9)
"""Indexes of updates that were taken over: in the order of their events, before all that comes in by itself."""


def admit_update(state: ExecutionState, event: HistoryEvent, attributes: WorkflowExecutionUpdateAdmitted) -> None:
    update_id = attributes.request.meta.update_id
    state.updates[update_id] = PendingUpdate(
        update_id=update_id,
        admitted_event_id=event.event_id,
        index=_TAKEN_OVER + event.event_id,
        request=attributes.request,
        admitted_time=event.event_time,
    )


def accept_update(state: ExecutionState, event: HistoryEvent, attributes: WorkflowExecutionUpdateAccepted) -> None:
    """Its request is in the history from now on."""
    update_id = attributes.protocol_instance_id
    admitted = state.updates.get(update_id)
    request = attributes.accepted_request or (None if admitted is None else admitted.request)
    state.updates[update_id] = PendingUpdate(
        update_id=update_id,
        admitted_event_id=admitted.admitted_event_id if admitted is not None else 0,
        accepted_event_id=event.event_id,
        identity="" if request is None else request.meta.identity,
    )
    state.update_count += 1


def complete_update(state: ExecutionState, event: HistoryEvent, attributes: WorkflowExecutionUpdateCompleted) -> None:
    update_id = attributes.meta.update_id
    del state.updates[update_id]
    ended = EndedUpdate(update_id=update_id, completed_event_id=event.event_id, seq=state.seq)
    state.ended_updates = (*state.ended_updates, ended)[-REMEMBERED_UPDATES:]


def end_updates(state: ExecutionState) -> None:
    """The run ends before the handlers of these do: whoever asks for an accepted one is told so (MS-30). They end in
    the order of their acceptance, which the history knows; that of admission it does not."""
    if not state.updates:
        return
    accepted = [update for update in state.updates.values() if update.accepted_event_id]
    accepted.sort(key=lambda update: update.accepted_event_id)
    cut = [EndedUpdate(update_id=update.update_id, completed_event_id=0, seq=state.seq) for update in accepted]
    state.ended_updates = (*state.ended_updates, *cut)[-REMEMBERED_UPDATES:]
    state.updates = {}


def ask_again(state: ExecutionState, base_run_id: str) -> None:
    """What was asked of others is asked by the run that a reset made from here on, but in the name of the run that
    asked first: it may have been delivered already."""
    for asked in list(state.external_signals.values()):
        state.external_signals[asked.initiated_event_id] = _replace(asked, asked_by=asked.asked_by or base_run_id)
    for cancel in list(state.external_cancels.values()):
        state.external_cancels[cancel.initiated_event_id] = _replace(cancel, asked_by=cancel.asked_by or base_run_id)


def durable(pending: dict[int, P]) -> dict[int, P]:
    """Less what the history cannot tell."""
    return {key: _replace(one, initiated_seq=0, next_dispatch=None, dispatches=0) for key, one in pending.items()}


def durable_updates(updates: dict[str, PendingUpdate]) -> dict[str, PendingUpdate]:
    """Those that the history knows, less what it cannot tell."""
    return {
        update_id: PendingUpdate(
            update_id=update_id,
            admitted_event_id=update.admitted_event_id,
            accepted_event_id=update.accepted_event_id,
            identity=update.identity,
        )
        for update_id, update in updates.items()
        if update.admitted_event_id or update.accepted_event_id
    }
