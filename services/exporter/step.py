"""How an export goes on, burst by burst. Pure: what was written comes in as data, and so does the time.

Theory of operation. Runs are taken by the time of their close, slice by slice: a slice ends ``settle`` ago, when lists
show all that closed in it, so each run is in one slice and none is passed over. Within a slice a filter is read page by
page. Before a burst the record says which runs it is and until when it is whose (``claimed``); behind it, what became
of them (``finished``). Each write arms the time at which somebody has to look again, so whoever dies, the burst is
written again: the same objects under the same names.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api import limits
from stepwell.api.enums import ExportState

from .records import Burst, Done, Job, Target

LEASE = timedelta(seconds=90)
"""How long a burst may take before it is written again."""

KEPT = timedelta(days=7)
"""How long a job is kept behind its end."""

MAX_TRIES = 20
"""Then what cannot be read for the moment counts as failed; with the pauses below, about eight minutes."""

BEGINNING = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_SHORTEST_WAIT = timedelta(seconds=1)
_LONGEST_PAUSE = timedelta(seconds=30)
_MESSAGE_BYTES = 300

_replace = msgspec.structs.replace


def wakes_at(job: Job) -> datetime:
    """When somebody has to look at it if nothing else happens."""
    if job.closed is not None:
        return job.closed + KEPT
    return job.next_at if job.burst is None else job.burst.until


def begins_at(job: Job) -> datetime:
    """The earliest close that has not been looked at."""
    return job.upto or job.closed_after or BEGINNING


def is_complete(job: Job) -> bool:
    """All that it is for is written."""
    return job.slice_end is None and job.closed_before is not None and begins_at(job) >= job.closed_before


def with_slice(job: Job, now: datetime, settle: timedelta, interval: timedelta) -> Job:
    """With the next slice, or waiting for it. None but the last is shorter than the interval."""
    begins, last = begins_at(job), job.closed_before
    settled = now - settle
    end = settled if last is None else min(settled, last)
    due = begins + interval
    if last is not None and last < due:
        due = last
    if end > begins and (job.upto is None or end >= due):
        return _replace(job, slice_end=end, page_token=b"", exhausted=False)
    return _replace(job, next_at=max(due + settle, now + _SHORTEST_WAIT))


def query_of(job: Job) -> str:
    """Of the slice."""
    window = f"CloseTime >= '{_text(begins_at(job))}' AND CloseTime < '{_text(job.slice_end or BEGINNING)}'"
    return f"({job.query}) AND {window}" if job.query else window


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def claimed(job: Job, targets: tuple[Target, ...], now: datetime) -> Job:
    """With its next burst."""
    return _replace(job, again=(), burst=Burst(targets=targets, until=now + LEASE))


def slice_done(job: Job, now: datetime) -> Job:
    return _replace(job, upto=job.slice_end, slice_end=None, page_token=b"", exhausted=False, next_at=now)


def paused(job: Job, trouble: str, now: datetime) -> Job:
    """Nothing could be done for the moment; what was to be done is done again."""
    pause = min(timedelta(seconds=2 ** min(job.failing, 10)), _LONGEST_PAUSE)
    again = job.again if job.burst is None else job.burst.targets
    return _replace(
        job, burst=None, again=again, failing=job.failing + 1, trouble=trouble[:_MESSAGE_BYTES], next_at=now + pause
    )


def settled(job: Job, outcomes: Sequence[Done]) -> tuple[Done, ...]:
    """Those that the list will have: written, or failed for good."""
    return tuple([one for one in outcomes if not one.left and not _waits(job, one)])


def _waits(job: Job, outcome: Done) -> bool:
    return outcome.later and outcome.target.tries + 1 < MAX_TRIES and job.closed is None


def finished(job: Job, outcomes: Sequence[Done], now: datetime) -> Job:
    """What became of the burst, of a job that may have been stopped meanwhile."""
    again: list[Target] = []
    failures = list(job.failures)
    done = failed = size = 0
    trouble = ""
    for outcome in outcomes:
        target = outcome.target
        if outcome.left:
            again.append(target)
        elif _waits(job, outcome):
            again.append(_replace(target, tries=target.tries + 1))
            trouble = outcome.failure.message if outcome.failure is not None else ""
        elif outcome.failure is not None:
            failed += 1
            if len(failures) < limits.MAX_EXPORT_FAILURES:
                failures.append(_replace(outcome.failure, message=outcome.failure.message[:_MESSAGE_BYTES]))
        else:
            done += 1
            size += outcome.size
    job = _replace(
        job,
        burst=None,
        again=() if job.closed is not None else tuple(again),
        done=job.done + done,
        size=job.size + size,
        failed=job.failed + failed,
        failures=tuple(failures),
    )
    if job.closed is not None:
        return job
    if not done + failed:
        return paused(job, trouble, now)
    return _replace(job, failing=0, trouble="", next_at=now)


def closed(job: Job, state: ExportState, reason: str, now: datetime) -> Job:
    return _replace(job, state=state, closed=now, close_reason=reason)
