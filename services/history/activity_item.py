"""The activity item: the single authority on the attempts of an activity that went through a queue (design section 5).

Pure: every function takes an item (or None) and returns the next one; the shell puts it with a condition on
``version``, so of two writers one wins and the other looks again.
"""

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec
from stepwell.api.common import ProcessIdentity, RetryPolicy
from stepwell.api.enums import RetryState
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads


class ItemState(StrEnum):
    SCHEDULED = "SCHEDULED"
    """Waits for attempt ``attempt``, not before ``next_attempt_time``."""
    STARTED = "STARTED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELED = "CANCELED"


FINISHED = frozenset({ItemState.COMPLETED, ItemState.FAILED, ItemState.TIMED_OUT, ItemState.CANCELED})


class ActivityItem(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    version: int = 1
    """Grows by one with each put."""
    state: ItemState
    attempt: int = 1
    # copied from the pending activity, so that decisions need no read of the log
    activity_id: str
    activity_type: str
    scheduled_time: datetime
    schedule_to_close_timeout: timedelta | None = None
    schedule_to_start_timeout: timedelta | None = None
    start_to_close_timeout: timedelta | None = None
    heartbeat_timeout: timedelta | None = None
    retry_policy: RetryPolicy
    # the current or last attempt
    identity: str = ""
    holder: ProcessIdentity | None = None
    worker_key: str = ""
    started_time: datetime | None = None
    heartbeat_time: datetime | None = None
    heartbeat_details: Payloads = ()
    next_attempt_time: datetime | None = None
    last_failure: Failure | None = None
    cancel_requested: bool = False
    # the end
    finished_time: datetime | None = None
    result: Payloads = ()
    failure: Failure | None = None
    retry_state: RetryState | None = None
