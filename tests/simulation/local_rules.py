"""What must hold of local activities: each has one end in its history, behind attempts that only go up."""

from typing import Any

import msgspec
from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

from tests.simulation.violation import violation

MARKER = "local_activity"


class LocalRules:
    """By activity id. A failure whose next attempt waits for a timer has a marker as well, and is no end."""

    def __init__(self) -> None:
        self._ended: set[str] = set()
        self._attempts: dict[str, int] = {}

    def add(self, event: HistoryEvent) -> None:
        body = event.attributes
        if not isinstance(body, e.MarkerRecorded) or body.marker_name != MARKER:
            return
        data: dict[str, Any] = msgspec.json.decode(body.details["data"].data)
        activity_id = data["activity_id"]
        if activity_id in self._ended:
            raise violation(event, f"records an end of local activity {activity_id!r} a second time")
        if not data.get("backoff"):
            self._ended.add(activity_id)
        elif data["attempt"] <= self._attempts.get(activity_id, 0):
            raise violation(event, f"records attempt {data['attempt']} of local activity {activity_id!r} again")
        else:
            self._attempts[activity_id] = data["attempt"]
