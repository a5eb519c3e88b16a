"""Events of updates. A rejected update leaves none."""

from ._struct import Tagged
from .enums import UpdateAdmittedEventOrigin
from .updates import UpdateMeta, UpdateOutcome, UpdateRequest


class WorkflowExecutionUpdateAdmitted(Tagged, frozen=True, kw_only=True):
    """An update that was taken over from another run; else admission leaves no event."""

    request: UpdateRequest
    origin: UpdateAdmittedEventOrigin = UpdateAdmittedEventOrigin.REAPPLY


class WorkflowExecutionUpdateAccepted(Tagged, frozen=True, kw_only=True):
    """Workflow code took the update: its handler runs."""

    protocol_instance_id: str
    """The update's id."""
    accepted_request_message_id: str = ""
    accepted_request_sequencing_event_id: int = 0
    """The last event that workflow code had seen before the update."""
    accepted_request: UpdateRequest | None = None
    """None when it stands in a WorkflowExecutionUpdateAdmitted event."""


class WorkflowExecutionUpdateCompleted(Tagged, frozen=True, kw_only=True):
    meta: UpdateMeta
    accepted_event_id: int
    """0 for one that was rejected, which is an event only behind an admission that is one."""
    outcome: UpdateOutcome
