"""An update as it travels: its request, and how it ended (``temporal.api.update.v1``, in snake_case)."""

from ._struct import Record
from .common import Headers
from .failures import Failure
from .payloads import Payloads


class UpdateMeta(Record, frozen=True, kw_only=True):
    """``update_id`` is unique in the run; a repeated one is the same update."""

    update_id: str
    identity: str = ""


class UpdateInput(Record, frozen=True, kw_only=True):
    name: str
    args: Payloads = ()
    headers: Headers = {}


class UpdateRequest(Record, frozen=True, kw_only=True):
    meta: UpdateMeta
    input: UpdateInput


class UpdateOutcome(Record, frozen=True, kw_only=True):
    """``failure`` set: the handler failed, or the update was rejected. Else ``success`` is the result."""

    success: Payloads = ()
    failure: Failure | None = None
