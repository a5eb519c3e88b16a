"""Times and durations between our records and protobuf's. An unset or zero duration is None here: left out."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_DURATION, MAX_WORKFLOW_TASK_TIMEOUT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST = int(MAX_DURATION.total_seconds()) + 1


def task_timeout_of(value: Duration) -> timedelta | None:
    """Of a workflow task: their servers cut what is too long, without a word."""
    asked = timedelta_of(value)
    return None if asked is None else min(asked, MAX_WORKFLOW_TASK_TIMEOUT)


def timestamp(value: datetime) -> Timestamp:
    since = value - _EPOCH
    return Timestamp(seconds=since.days * 86_400 + since.seconds, nanos=since.microseconds * 1_000)


def optional_timestamp(value: datetime | None) -> Timestamp | None:
    return None if value is None else timestamp(value)


def time_of(value: Timestamp) -> datetime:
    """Of a time that somebody else chose; what no datetime can hold is refused."""
    try:
        return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    except OverflowError as error:
        raise InvalidArgument(f"a time of {value.seconds} seconds since 1970 is out of range") from error


@lru_cache(maxsize=1_024)
def duration(value: timedelta) -> Duration:
    """Shared by all that have it; other messages take a copy."""
    return Duration(seconds=value.days * 86_400 + value.seconds, nanos=value.microseconds * 1_000)


def optional_duration(value: timedelta | None) -> Duration | None:
    return None if value is None else duration(value)


def timedelta_of(value: Duration) -> timedelta | None:
    """None when it is not set, or zero. What is longer than any duration that is taken is cut to the first such one,
    so that whoever checks it says so."""
    seconds, nanos = value.seconds, value.nanos
    if not seconds and not nanos:
        return None
    if seconds > _LONGEST:
        return timedelta(seconds=_LONGEST)
    if seconds < -_LONGEST:
        return timedelta(seconds=-_LONGEST)
    # What is shorter than a microsecond is still longer than nothing.
    return timedelta(seconds=seconds, microseconds=-(-nanos // 1_000))
