"""What every check of the simulation raises."""

from stepwell.api.events import HistoryEvent


class Violation(AssertionError):
    """An invariant does not hold."""


def violation(event: HistoryEvent, what: str) -> Violation:
    return Violation(f"event {event.event_id} {event.event_type}: {what}")
