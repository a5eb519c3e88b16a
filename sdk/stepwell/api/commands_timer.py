"""Commands about timers, and markers."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, UserMetadata
from .failures import Failure
from .payloads import Payload, Payloads


class StartTimer(Tagged, frozen=True, kw_only=True):
    """Makes ``TimerStarted``. ``timer_id`` is unique among the run's pending timers; the timeout is above zero."""

    timer_id: str
    start_to_fire_timeout: timedelta
    user_metadata: UserMetadata | None = None


class CancelTimer(Tagged, frozen=True, kw_only=True):
    """Makes ``TimerCanceled``. Only for a pending timer."""

    timer_id: str


class RecordMarker(Tagged, frozen=True, kw_only=True):
    marker_name: str
    details: dict[str, Payload] = {}
    failure: Failure | None = None
    user_metadata: UserMetadata | None = None
    several: dict[str, Payloads] = {}
    """Further details, by names that have another number of values than one."""
    headers: Headers = {}
