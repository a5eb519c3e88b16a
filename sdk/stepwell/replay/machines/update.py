"""What workflow code says of an update: ``AcceptUpdate`` and ``CompleteUpdate``, with the events they make."""

from ...api.commands import AcceptUpdate, CompleteUpdate, RejectUpdate
from ...api.events import EventAttributes, WorkflowExecutionUpdateAccepted, WorkflowExecutionUpdateCompleted
from ...api.updates import UpdateOutcome
from .command import Ask


class UpdateAcceptance(Ask):
    """Its handler runs."""

    __slots__ = ("update_id",)

    def __init__(self, update_id: str) -> None:
        self.update_id = update_id

    def command(self) -> AcceptUpdate:
        return AcceptUpdate(update_id=self.update_id)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is WorkflowExecutionUpdateAccepted and recorded.protocol_instance_id == self.update_id

    def describe(self) -> str:
        return f"AcceptUpdate (update_id {self.update_id!r})"


class UpdateRejection(Ask):
    """Of one that was taken over from another run: its admission is in the history, and so is this."""

    __slots__ = ("rejection",)

    def __init__(self, rejection: RejectUpdate) -> None:
        self.rejection = rejection

    def command(self) -> RejectUpdate:
        return self.rejection

    def matches(self, recorded: EventAttributes) -> bool:
        """Never: it is asked live only, and a replay takes what was recorded as it is."""
        del recorded
        return False

    def describe(self) -> str:
        return f"RejectUpdate (update_id {self.rejection.update_id!r})"


class UpdateCompletion(Ask):
    """Its handler has ended."""

    __slots__ = ("outcome", "update_id")

    def __init__(self, update_id: str, outcome: UpdateOutcome) -> None:
        self.update_id = update_id
        self.outcome = outcome

    def command(self) -> CompleteUpdate:
        return CompleteUpdate(update_id=self.update_id, outcome=self.outcome)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is WorkflowExecutionUpdateCompleted and recorded.meta.update_id == self.update_id

    def describe(self) -> str:
        return f"CompleteUpdate (update_id {self.update_id!r})"
