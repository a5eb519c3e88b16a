"""Commands about activities."""

from datetime import timedelta

from ._struct import Tagged
from .common import Headers, Priority, RetryPolicy, UserMetadata
from .payloads import Payloads


class ScheduleActivityTask(Tagged, frozen=True, kw_only=True):
    """Makes ``ActivityTaskScheduled``. ``activity_id`` is unique among the run's pending activities."""

    activity_id: str
    activity_type: str
    task_queue: str
    headers: Headers = {}
    input: Payloads = ()
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy | None = None
    request_eager_execution: bool = True
    user_metadata: UserMetadata | None = None
    priority: Priority | None = None
    """What it leaves open is the workflow's."""


class RequestCancelActivityTask(Tagged, frozen=True, kw_only=True):
    """Makes ``ActivityTaskCancelRequested``. Only for a pending activity without an earlier request."""

    scheduled_event_id: int
