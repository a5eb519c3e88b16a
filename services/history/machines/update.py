"""Updates: admitted durably, shown to workflow code, accepted or rejected there, completed (MS-25 to MS-33).

Admission numbers nothing: the request rests in the state until workflow code takes it. If no workflow task is
outstanding it gets one that has no number yet, and that leaves nothing behind when all it shows is rejected.
"""

import msgspec
from stepwell.api import limits
from stepwell.api.commands import AcceptUpdate, Command, CompleteUpdate, RejectUpdate
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.errors import FailedPrecondition, ResourceExhausted
from stepwell.api.events import WorkflowExecutionUpdateAccepted, WorkflowExecutionUpdateCompleted
from stepwell.api.failures import Failure, ServerFailureInfo
from stepwell.api.updates import UpdateMeta, UpdateOutcome, UpdateRequest

from .. import placement
from ..builder import TransitionBuilder
from ..commit import RejectedUpdate
from ..state import EndedUpdate, ExecutionState, PendingUpdate
from ..task_tokens import PlacedUpdate, WorkflowTaskToken
from . import inbox, workflow_task
from .bad_command import BadCommand, check_payloads, check_size, failure_size, payload_size
from .carrying import Carrying
from .signal import refuse_while_closing

_replace = msgspec.structs.replace

_NOT_PROCESSED = Failure(
    message="the update was not processed: the worker has neither accepted nor rejected it; its release may not know "
    "updates, upgrade it and send the update again",
    info=ServerFailureInfo(non_retryable=True),
)


def ended(state: ExecutionState, update_id: str) -> EndedUpdate | None:
    """If the run remembers that it has ended."""
    for known in reversed(state.ended_updates):
        if known.update_id == update_id:
            return known
    return None


def is_cut_off(ended: EndedUpdate) -> bool:
    """Whether the run ended before the accepted update did."""
    return not ended.completed_event_id


# --- in -----------------------------------------------------------------------------------------------------------


def refuse(state: ExecutionState, request: UpdateRequest) -> None:
    """Raises what the open run says to one more update; nothing if it takes it (MS-29)."""
    refuse_while_closing(state)
    update_id = request.meta.update_id
    if state.pause is not None:
        raise FailedPrecondition(
            f"workflow {state.workflow_id!r} is paused, so nobody would take update {update_id!r}; unpause it first",
            cause="PAUSED",
        )
    if len(state.updates) >= limits.MAX_UPDATES_IN_FLIGHT:
        raise ResourceExhausted(
            f"workflow {state.workflow_id!r} has {len(state.updates)} updates without an end, the most that may be in "
            f"flight ({limits.MAX_UPDATES_IN_FLIGHT}); send update {update_id!r} again when one of them has ended",
            cause="CONCURRENT_UPDATES",
            scope="WORKFLOW",
            field="update_id",
        )
    waiting = placement.admitted(state)
    total = state.update_count + len(waiting)
    if total >= limits.MAX_UPDATES_PER_RUN:
        raise FailedPrecondition(
            f"workflow {state.workflow_id!r} has had {total} updates, the most that one run takes "
            f"({limits.MAX_UPDATES_PER_RUN}); let it continue as new, then send update {update_id!r} again",
            cause="TOTAL_UPDATES",
            field="update_id",
        )
    size = sum(update.size for update in waiting) + _size(request)
    if waiting and size > limits.MAX_UPDATE_BYTES_IN_FLIGHT:
        raise ResourceExhausted(
            f"the updates that workflow {state.workflow_id!r} has not taken yet would have {size} bytes together, "
            f"above the limit of {limits.MAX_UPDATE_BYTES_IN_FLIGHT}; send update {update_id!r} again when it has "
            "taken some",
            cause="UPDATE_BYTES",
            scope="WORKFLOW",
            field="input",
        )


def admit(draft: TransitionBuilder, request: UpdateRequest) -> None:
    """Raises as :func:`refuse` does."""
    refuse(draft.state, request)
    put_new(draft, request)
    settle(draft)


def put_new(draft: TransitionBuilder, request: UpdateRequest) -> None:
    put(draft, PendingUpdate(update_id=request.meta.update_id, request=request, size=_size(request)))


def put(draft: TransitionBuilder, update: PendingUpdate) -> None:
    """Behind all that has come in to the draft's run."""
    state = draft.state
    time = max((draft.now, *(event.time for event in state.buffered[-1:])))
    state.updates[update.update_id] = _replace(update, index=state.next_buffer_index, admitted_time=time)
    state.next_buffer_index += 1


def settle(draft: TransitionBuilder) -> None:
    """Admitted updates that no outstanding workflow task will show get one of their own. Call it behind
    ``inbox.settle``."""
    state = draft.state
    if state.workflow_task is not None or state.close_time is not None:
        return
    waiting = placement.admitted(state)
    if not waiting or inbox.waits_for_first_task(state):
        return
    if state.first_task_at is not None:
        workflow_task.schedule(draft)  # an update ends a start delay, as a signal does
    else:
        workflow_task.schedule_for_updates(draft, waiting[-1].index)


def pass_on(draft: TransitionBuilder, waiting: list[PendingUpdate]) -> None:
    """Admitted updates of the run before this one in its chain, which it has not seen (MS-31)."""
    for update in waiting:
        put(draft, _replace(update, admitted_event_id=0))


def take_over(draft: TransitionBuilder) -> None:
    """Updates that a reset has admitted again, by events: workflow code is shown them like any other."""
    for update in placement.admitted(draft.state):
        assert update.request is not None
        put(draft, _replace(update, size=_size(update.request)))


def _size(request: UpdateRequest) -> int:
    asked = request.input
    return sum(map(payload_size, asked.args)) + sum(map(payload_size, asked.headers.values()))


# --- seen or not --------------------------------------------------------------------------------------------------


def has_unseen(state: ExecutionState, token: WorkflowTaskToken) -> bool:
    """Whether updates have been admitted that the token does not list."""
    waiting = placement.admitted(state)
    if not waiting:
        return False
    seen = {entry.index for entry in token.placed if isinstance(entry, PlacedUpdate)}
    return any(update.index not in seen for update in waiting)


def only_rejects(state: ExecutionState, token: WorkflowTaskToken, commands: tuple[Command, ...]) -> bool:
    """Whether workflow code was shown nothing but updates of which the history knows nothing, and took none."""
    return (
        all(isinstance(entry, PlacedUpdate) for entry in token.placed)
        and all(isinstance(command, RejectUpdate) for command in commands)
        and not any(update.admitted_event_id for update in placement.admitted(state))
    )


def reject_unanswered(draft: TransitionBuilder, commands: tuple[Command, ...]) -> None:
    """What was shown and is in none of the commands would be shown for ever."""
    answered = {command.update_id for command in commands if isinstance(command, AcceptUpdate | RejectUpdate)}
    for update_id in draft.shown_updates.keys() - answered:
        _reject(draft, update_id, _NOT_PROCESSED)


# --- commands -----------------------------------------------------------------------------------------------------


def accept(draft: TransitionBuilder, command: AcceptUpdate, _: Carrying) -> None:
    pending = _shown(draft, command)
    draft.record(
        WorkflowExecutionUpdateAccepted(
            protocol_instance_id=command.update_id,
            accepted_request_sequencing_event_id=draft.shown_updates[command.update_id],
            accepted_request=None if pending.admitted_event_id else pending.request,
        )
    )


def reject(draft: TransitionBuilder, command: RejectUpdate, _: Carrying | None = None) -> None:
    check_size(f"the rejection of update {command.update_id!r}", failure_size(command.failure))
    _shown(draft, command)
    _reject(draft, command.update_id, command.failure)


def complete(draft: TransitionBuilder, command: CompleteUpdate, _: Carrying) -> None:
    pending = draft.state.updates.get(command.update_id)
    if pending is None or not pending.accepted_event_id:
        raise _bad(command, "it is not accepted, or has ended")
    outcome = command.outcome
    if outcome.failure is None:
        check_payloads(f"the result of update {command.update_id!r}", outcome.success)
    else:
        check_size(f"the failure of update {command.update_id!r}", failure_size(outcome.failure))
    draft.record(
        WorkflowExecutionUpdateCompleted(
            meta=UpdateMeta(update_id=command.update_id, identity=pending.identity),
            accepted_event_id=pending.accepted_event_id,
            outcome=outcome,
        )
    )


def outcome_size(command: CompleteUpdate) -> int:
    outcome = command.outcome
    return sum(map(payload_size, outcome.success)) if outcome.failure is None else failure_size(outcome.failure)


def _shown(draft: TransitionBuilder, command: AcceptUpdate | RejectUpdate) -> PendingUpdate:
    pending = draft.state.updates.get(command.update_id)
    if pending is None or pending.accepted_event_id or command.update_id not in draft.shown_updates:
        raise _bad(command, "this workflow task has not shown it, or it is answered already")
    return pending


def _bad(command: AcceptUpdate | RejectUpdate | CompleteUpdate, why: str) -> BadCommand:
    return BadCommand(
        WorkflowTaskFailedCause.BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE,
        f"{type(command).__name__} names update {command.update_id!r}: {why}. Answer each update that a task shows, "
        "once.",
    )


def _reject(draft: TransitionBuilder, update_id: str, failure: Failure) -> None:
    pending = draft.state.updates[update_id]
    if pending.admitted_event_id:
        # Its admission is in the history, so its end must be.
        identity = "" if pending.request is None else pending.request.meta.identity
        meta, outcome = UpdateMeta(update_id=update_id, identity=identity), UpdateOutcome(failure=failure)
        draft.record(WorkflowExecutionUpdateCompleted(meta=meta, accepted_event_id=0, outcome=outcome))
        return
    del draft.state.updates[update_id]
    draft.rejected.append(RejectedUpdate(run_id=draft.state.run_id, update_id=update_id, failure=failure))
