"""What schedules tell of how they are doing: the growth of their counters, and how late they act. Pure but for telling.

Counters are in the record, so they are told behind the write that raised them: once, whoever steps again. A process
that ends in between leaves them untold; the record has them.
"""

from datetime import datetime, timedelta

from ..common import metric_names as names
from ..common.metrics import Metrics
from .spec import next_time
from .state import Run, ScheduleRecord

_COUNTED = (
    ("action_count", names.SCHEDULE_STARTED),
    ("start_refused", names.SCHEDULE_REFUSED),
    ("overlap_skipped", names.SCHEDULE_SKIPPED),
    ("missed_catchup_window", names.SCHEDULE_MISSED),
    ("buffer_dropped", names.SCHEDULE_OVERRUNS),
    ("rate_delayed", names.SCHEDULE_RATE_LIMITED),
)
_MILLISECOND = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def tell_counts(metrics: Metrics, before: ScheduleRecord, after: ScheduleRecord) -> None:
    for counter, name in _COUNTED:
        more = getattr(after, counter) - getattr(before, counter)
        if more > 0:
            metrics.count(name, more)


def lateness(record: ScheduleRecord, run: Run, now: datetime) -> float:
    """From when it was due, its jitter included, in milliseconds."""
    nominal = run.waiting.nominal
    firing = next_time(record.schedule.spec, nominal - _SECOND, record.schedule_id)
    due = firing.at if firing is not None and firing.nominal == nominal else nominal
    return max((now - due) / _MILLISECOND, 0.0)
