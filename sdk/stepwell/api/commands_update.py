"""Commands about updates. The field sends protocol messages instead."""

from ._struct import Tagged
from .failures import Failure
from .updates import UpdateOutcome


class AcceptUpdate(Tagged, frozen=True, kw_only=True):
    """Makes ``WorkflowExecutionUpdateAccepted``. Only for an update that is admitted and not accepted."""

    update_id: str


class RejectUpdate(Tagged, frozen=True, kw_only=True):
    """The one command that makes no event: the caller is told, and the history is as if there had been no update."""

    update_id: str
    failure: Failure


class CompleteUpdate(Tagged, frozen=True, kw_only=True):
    """Makes ``WorkflowExecutionUpdateCompleted``. Only for an accepted update without an end."""

    update_id: str
    outcome: UpdateOutcome
