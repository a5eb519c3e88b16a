"""What the engine records for commands about updates."""

from collections.abc import Mapping, Sequence

from stepwell.api import commands as cmd
from stepwell.api import events as ev
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.updates import UpdateMeta, UpdateOutcome, UpdateRequest


def update_event(
    events: Sequence[HistoryEvent],
    command: cmd.AcceptUpdate | cmd.RejectUpdate | cmd.CompleteUpdate,
    requests: Mapping[str, UpdateRequest],
    positions: Mapping[str, int],
) -> EventAttributes | None:
    """``positions``: the events that updates came behind; else the one before the started task."""
    meta = UpdateMeta(update_id=command.update_id)
    match command:
        case cmd.AcceptUpdate():
            return ev.WorkflowExecutionUpdateAccepted(
                protocol_instance_id=command.update_id,
                accepted_request_sequencing_event_id=positions.get(command.update_id, 0),
                accepted_request=requests.get(command.update_id),
            )
        case cmd.RejectUpdate():
            bodies = [event.attributes for event in events]
            admitted = [body for body in bodies if isinstance(body, ev.WorkflowExecutionUpdateAdmitted)]
            if command.update_id not in {body.request.meta.update_id for body in admitted}:
                return None
            outcome = UpdateOutcome(failure=command.failure)
            return ev.WorkflowExecutionUpdateCompleted(meta=meta, accepted_event_id=0, outcome=outcome)
        case cmd.CompleteUpdate():
            return ev.WorkflowExecutionUpdateCompleted(
                meta=meta, accepted_event_id=accepted_event_id(events, command.update_id), outcome=command.outcome
            )


def accepted_event_id(events: Sequence[HistoryEvent], update_id: str) -> int:
    for event in reversed(events):
        body = event.attributes
        if isinstance(body, ev.WorkflowExecutionUpdateAccepted) and body.protocol_instance_id == update_id:
            return event.event_id
    raise AssertionError(f"no accepted update {update_id}")
