"""How a batch operation goes on, burst by burst. Pure: what was done comes in as data, and so does the time.

Theory of operation. A job is one record. Before a burst is begun the record says which workflows it is and until when
it is whose (``claimed``); behind it, what became of them (``finished``). Each write arms the time at which somebody has
to look again (``wakes_at``), so whoever dies, the burst is done again, and doing it again is harmless (``actions``).
Rate: a burst is as many as a second has room for; within it the shell spaces what it does, and the next begins when the
time of this one's last is over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from stepwell.api import limits
from stepwell.api.batches import BatchFailure
from stepwell.api.enums import BatchOperationState

from .records import Burst, Done, Job, Page, Target

START_TAKES = timedelta(seconds=10)
"""A job whose start did not come to its end by then is looked at."""

LEASE = timedelta(seconds=30)
"""How much longer than its own time a burst may take before it is done again."""

KEPT = timedelta(days=7)
"""How long a job is kept behind its end."""

MAX_TRIES = 20
"""Then what cannot be done for the moment counts as failed; with the pauses below, about eight minutes."""

_LONGEST_PAUSE = timedelta(seconds=30)
_MESSAGE_BYTES = 300

_replace = msgspec.structs.replace


def wakes_at(job: Job) -> datetime:
    """When somebody has to look at it if nothing else happens."""
    if job.closed is not None:
        return job.closed + KEPT
    if not job.begun:
        return job.started + START_TAKES
    return job.next_at if job.burst is None else job.burst.until


def burst_size(job: Job) -> int:
    return max(1, min(int(job.rate), limits.MAX_BATCH_RATE))


def begun(job: Job, now: datetime) -> Job:
    """It has its turn."""
    return _replace(job, begun=True, next_at=now)


def needs_page(job: Job) -> bool:
    return job.burst is None and not job.again and not job.exhausted


def upcoming(job: Job, page: Page | None) -> tuple[Target, ...]:
    """What is next: what one that died has left, else what had to wait, else ``page``."""
    if job.burst is not None:
        return job.burst.targets
    return job.again or (page.targets if page is not None else ())


def claimed(job: Job, page: Page | None, targets: tuple[Target, ...], now: datetime) -> Job:
    """With its next burst: ``targets`` are those that are ``upcoming``, by their runs. Closed if there are no more."""
    repeated = job.burst is not None
    if page is not None:
        job = _replace(
            job,
            position=job.position + len(targets),
            found=job.found + len(targets),
            page_token=page.page_token,
            exhausted=page.exhausted,
        )
    if not targets:
        # A page of a filter may be empty though there are more.
        return closed(job, BatchOperationState.COMPLETED, "", now) if job.exhausted else _replace(job, next_at=now)
    until = now + _time_of(job, len(targets)) + LEASE
    return _replace(job, again=(), burst=Burst(targets=targets, until=until, repeated=repeated))


def paused(job: Job, now: datetime) -> Job:
    """Nothing could be done for the moment."""
    pause = min(timedelta(seconds=2 ** min(job.failing, 10)), _LONGEST_PAUSE)
    return _replace(job, failing=job.failing + 1, next_at=now + pause)


def finished(job: Job, outcomes: Sequence[Done], acted: datetime, now: datetime) -> Job:
    """What became of the burst, whose last was begun at ``acted``; of a job that may have been stopped meanwhile."""
    done = failed = 0
    again: list[Target] = []
    failures = list(job.failures)
    for outcome in outcomes:
        target = outcome.target
        if outcome.left:
            again.append(target)
        elif outcome.later and target.tries + 1 < MAX_TRIES and job.closed is None:
            again.append(_replace(target, tries=target.tries + 1))
        elif outcome.failure is not None:
            failed += 1
            if len(failures) < limits.MAX_BATCH_FAILURES:
                failures.append(_shortened(outcome.failure))
        else:
            done += 1
    job = _replace(
        job,
        burst=None,
        again=() if job.closed is not None else tuple(again),
        done=job.done + done,
        failed=job.failed + failed,
        failures=tuple(failures),
    )
    if job.closed is not None:
        return job
    if job.exhausted and not job.again:
        return closed(job, BatchOperationState.COMPLETED, "", now)
    if not done + failed:
        return paused(job, now)
    return _replace(job, failing=0, next_at=max(acted + _time_of(job, 1), now))


def closed(job: Job, state: BatchOperationState, reason: str, now: datetime) -> Job:
    return _replace(job, state=state, closed=now, close_reason=reason)


def _time_of(job: Job, count: int) -> timedelta:
    return timedelta(seconds=count / job.rate)


def _shortened(failure: BatchFailure) -> BatchFailure:
    return _replace(failure, message=failure.message.encode()[:_MESSAGE_BYTES].decode(errors="ignore"))
