"""Events of timers, and markers: facts that workflow code recorded for its own replay."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers
from .failures import Failure
from .payloads import Payload, Payloads


class TimerStarted(Tagged, frozen=True, kw_only=True):
    timer_id: str
    start_to_fire_timeout: timedelta
    workflow_task_completed_event_id: int


class TimerFired(Tagged, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int


class TimerCanceled(Tagged, frozen=True, kw_only=True):
    timer_id: str
    started_event_id: int
    workflow_task_completed_event_id: int
    identity: str = ""


class MarkerRecorded(Tagged, frozen=True, kw_only=True):
    marker_name: str
    details: dict[str, Payload] = {}
    workflow_task_completed_event_id: int
    failure: Failure | None = None
    several: dict[str, Payloads] = {}
    """Further details, by names that have another number of values than one."""
    headers: Headers = {}
