"""What workflow code asked for in one workflow task, on its way to being an event.

Live, an ask becomes a command, and its event id is known when the completion is accepted. In replay it is matched
with the event that it made at the time: by kind and by the attributes that identify it, never by arguments or lengths
(VE-19, WC-11).
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from ...api.commands import Command
from ...api.events import (
    ActivityTaskScheduled,
    EventAttributes,
    HistoryEvent,
    MarkerRecorded,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionInitiated,
    UpsertWorkflowSearchAttributes,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateCompleted,
)
from ...api.payloads import Payloads
from ..errors import NondeterminismError

CHANGE_VERSIONS = "StepwellChangeVersion"
"""The search attribute that lists the changes which a run has met (VE-05)."""


class Ask(ABC):
    """Base of everything that makes a command. ``dropped`` takes one back that was not sent yet."""

    dropped = False

    @abstractmethod
    def command(self) -> Command: ...

    @abstractmethod
    def matches(self, recorded: EventAttributes) -> bool:
        """True when ``recorded`` is the event that this would make."""

    @abstractmethod
    def describe(self) -> str:
        """Kind and identity, for people."""

    def sent(self, event_id: int) -> None:
        """The event that it made is known."""
        del event_id

    def arguments(self) -> Payloads | None:
        """Arguments of an activity, for the check of their order; None for anything else."""
        return None


_IDENTITY = (
    "activity_type",
    "activity_id",
    "timer_id",
    "marker_name",
    "scheduled_event_id",
    "workflow_type",
    "workflow_id",
    "signal_name",
)


def describe_event(attributes: EventAttributes) -> str:
    """Kind and identity of a recorded event, in the words of :meth:`Ask.describe`."""
    name = type(attributes).__name__
    if isinstance(attributes, MarkerRecorded):
        details = {key: value.data.decode("utf-8", "replace") for key, value in attributes.details.items()}
        if "patch_id" in details:
            return f"{name} (patch {details['patch_id']})"
        if "change_id" in details and "version" in details:
            return f"{name} (version {details['version']} of {details['change_id']})"
        if attributes.marker_name == "local_activity" and "data" in details:
            return f"{name} (local activity {details['data']})"
    parts = [f"{field} {getattr(attributes, field)!r}" for field in _IDENTITY if hasattr(attributes, field)]
    match attributes:
        case SignalExternalWorkflowExecutionInitiated() | RequestCancelExternalWorkflowExecutionInitiated():
            parts.append(f"workflow_id {attributes.workflow_execution.workflow_id!r}")
        case WorkflowExecutionUpdateAccepted():
            parts.append(f"update_id {attributes.protocol_instance_id!r}")
        case WorkflowExecutionUpdateCompleted():
            parts.append(f"update_id {attributes.meta.update_id!r}")
    return f"{name} ({', '.join(parts)})" if parts else name


def is_optional(attributes: EventAttributes) -> bool:
    """A marker of a deprecated patch or version may be there without the code asking for it (VE-02), and so may the
    search attribute that says so.
    """
    if isinstance(attributes, UpsertWorkflowSearchAttributes):
        return CHANGE_VERSIONS in attributes.search_attributes
    if isinstance(attributes, WorkflowExecutionUpdateCompleted) and not attributes.accepted_event_id:
        return True  # rejected, by a validator, which replay does not run
    return (
        isinstance(attributes, MarkerRecorded)
        and ("patch_id" in attributes.details or "change_id" in attributes.details)
        and attributes.details.get("deprecated") is not None
        and attributes.details["deprecated"].data == b"true"
    )


_WAY_OUT = "put the earlier code back, or keep it for open runs behind workflow.patched()"


def match(asks: Sequence[Ask], events: Sequence[HistoryEvent], task_completed_event_id: int) -> None:
    """Pair what code asked for with what was recorded. Raises :class:`NondeterminismError` at the first difference."""
    position, count = 0, len(asks)
    swapped: list[tuple[Payloads, ActivityTaskScheduled, int]] = []
    for event in events:
        if position < count and asks[position].matches(event.attributes):
            ask = asks[position]
            ask.sent(event.event_id)
            position += 1
            if isinstance(event.attributes, ActivityTaskScheduled):
                arguments = ask.arguments()
                if arguments is not None and arguments != event.attributes.input:
                    swapped.append((arguments, event.attributes, event.event_id))
        elif not is_optional(event.attributes):
            asked = asks[position].describe() if position < count else "nothing more in this workflow task"
            raise NondeterminismError(
                f"event {event.event_id} recorded {describe_event(event.attributes)}, but the workflow code asked for "
                f"{asked}; {_WAY_OUT}"
            )
    if position < count:
        last = events[-1].event_id if events else task_completed_event_id
        raise NondeterminismError(
            f"after event {last} nothing more was recorded for this workflow task, but the workflow code asked for "
            f"{asks[position].describe()}; {_WAY_OUT}"
        )
    if len(swapped) > 1:
        _refuse_other_order(swapped)


def _refuse_other_order(differing: list[tuple[Payloads, ActivityTaskScheduled, int]]) -> None:
    """Other arguments are harmless; the same ones handed to each other's activities are not: results would be swapped
    (WC-22).
    """
    by_type: dict[str, list[tuple[Payloads, Payloads, int]]] = {}
    for asked, recorded, event_id in differing:
        by_type.setdefault(recorded.activity_type, []).append((asked, recorded.input, event_id))
    for activity_type, pairs in by_type.items():
        asked_data = Counter(tuple(p.data for p in asked) for asked, _, _ in pairs)
        if len(pairs) > 1 and asked_data == Counter(tuple(p.data for p in recorded) for _, recorded, _ in pairs):
            raise NondeterminismError(
                f"from event {pairs[0][2]} on, activities {activity_type!r} were recorded with the same arguments in "
                "another order than the workflow code asked for now; iterate over something with a fixed order, such "
                "as sorted(…) instead of a set"
            )
