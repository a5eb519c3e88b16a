"""What workflow code asked for in one workflow task, on its way to being an event.

Live, an ask becomes a command, and its event id is known when the completion is accepted. In replay it is matched with the event that
it made at the time: by kind and by the attributes that identify it, never by arguments or lengths (VE-19, WC-11).
"""

from collections.abc import Sequence

from ...api.commands import Command
from ...api.events import EventAttributes, HistoryEvent, MarkerRecorded
from ..errors import NondeterminismError


class Ask:
    """Base of everything that makes a command. ``dropped`` takes one back that was not sent yet."""

    dropped = False

    def command(self) -> Command:
        raise NotImplementedError

    def matches(self, recorded: EventAttributes) -> bool:
        """True when ``recorded`` is the event that this would make."""
        raise NotImplementedError

    def describe(self) -> str:
        """Kind and identity, for people."""
        raise NotImplementedError

    def sent(self, event_id: int) -> None:
        """The event that it made is known."""


_IDENTITY = ("activity_type", "activity_id", "timer_id", "marker_name", "scheduled_event_id")


def describe_event(attributes: EventAttributes) -> str:
    """Kind and identity of a recorded event, in the words of :meth:`Ask.describe`."""
    name = type(attributes).__name__
    if isinstance(attributes, MarkerRecorded) and "patch_id" in attributes.details:
        return f"{name} (patch {attributes.details['patch_id'].data.decode('utf-8', 'replace')})"
    parts = [f"{field} {getattr(attributes, field)!r}" for field in _IDENTITY if hasattr(attributes, field)]
    return f"{name} ({', '.join(parts)})" if parts else name


def is_optional(attributes: EventAttributes) -> bool:
    """A marker of a deprecated patch may be there without the code asking for it (VE-02)."""
    return (
        isinstance(attributes, MarkerRecorded)
        and "patch_id" in attributes.details
        and attributes.details.get("deprecated") is not None
        and attributes.details["deprecated"].data == b"true"
    )


def match(asks: Sequence[Ask], events: Sequence[HistoryEvent], task_completed_event_id: int) -> None:
    """Pair what code asked for with what was recorded. Raises :class:`NondeterminismError` at the first difference."""
    position, count = 0, len(asks)
    for event in events:
        if position < count and asks[position].matches(event.attributes):
            asks[position].sent(event.event_id)
            position += 1
        elif not is_optional(event.attributes):
            asked = asks[position].describe() if position < count else "nothing more in this workflow task"
            raise NondeterminismError(
                f"event {event.event_id} recorded {describe_event(event.attributes)}, but the workflow code asked for {asked}"
            )
    if position < count:
        last = events[-1].event_id if events else task_completed_event_id
        raise NondeterminismError(
            f"after event {last} nothing more was recorded for this workflow task, but the workflow code asked for "
            f"{asks[position].describe()}"
        )
