"""An update as it travels: its request, and how it ended (``temporal.api.update.v1``, in snake_case)."""

from ._struct import Record
from .common import Headers
from .failures import Failure
from .payloads import Payloads


class UpdateMeta(Record, frozen=True, kw_only=True):
    """``update_id`` is unique in the run; a repeated one is the same update."""

    update_id: str
    identity: str = ""
    principal: str = ""
    """Whose verified credentials sent it; set by the server alone."""


class UpdateInput(Record, frozen=True, kw_only=True):
    name: str
    args: Payloads = ()
    headers: Headers = {}


class UpdateRequest(Record, frozen=True, kw_only=True):
    meta: UpdateMeta
    input: UpdateInput


class DeliveredUpdate(Record, frozen=True, kw_only=True):
    """An update as it is shown to workflow code, which accepts or rejects it in the same workflow task."""

    request: UpdateRequest
    sequencing_event_id: int = 0
    """The event that it comes behind, in the order in which messages came in."""


class UpdateOutcome(Record, frozen=True, kw_only=True):
    """``failure`` set: the handler failed, or the update was rejected. Else ``success`` is the result."""

    success: Payloads = ()
    failure: Failure | None = None
