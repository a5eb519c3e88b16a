"""What is said of a history that no engine writes."""

from stepwell.api.events import HistoryEvent


class Violation(Exception):
    """A rule that does not hold, and where."""


def violation(event: HistoryEvent, what: str) -> Violation:
    return Violation(f"event {event.event_id} {event.event_type}: {what}")
