"""How often runs of one workflow id may begin (LC-06): a time behind the newest one, and a rate.

The rate is a token bucket that is one time in the state: up to when the runs that have begun use the rate up. So it
costs no write of its own, and is the same whichever process is asked and after a restart.
"""

from datetime import datetime, timedelta

from stepwell.api.enums import ResourceExhaustedCause, ResourceExhaustedScope
from stepwell.api.errors import ResourceExhausted

from ..requests import Pace
from ..state import ExecutionState
from .run_checks import is_deleted

_ZERO = timedelta(0)


def admit(head: ExecutionState | None, pace: Pace, now: datetime) -> datetime | None:
    """The next state's ``starts_paid_until``, when another run may begin. Raises ResourceExhausted."""
    if head is not None and pace.apart:
        _check_apart(head, pace.apart, now)
    paid = now
    if head is not None and head.starts_paid_until is not None:
        paid = max(now, head.starts_paid_until)
    if not pace.every:
        return paid if paid > now else None  # of a start that is not held to it: what others have used stays used
    # Whatever was written by a clock that is ahead, or for a lower rate: a full bucket takes no longer to empty.
    paid = min(paid, now + pace.at_once * pace.every)
    wait = paid - now - (pace.at_once - 1) * pace.every
    if wait > _ZERO and head is not None:
        often = f"more often than {timedelta(seconds=1) / pace.every:g} times a second, with {pace.at_once} at once,"
        raise _too_soon(f"runs of workflow {head.workflow_id!r} would begin {often} which is the most here", wait)
    return paid + pace.every


def _check_apart(head: ExecutionState, apart: timedelta, now: datetime) -> None:
    """A run that is deleted is no run."""
    wait = head.start_time + apart - now
    if wait > _ZERO and not is_deleted(head, head.run_id):
        raise _too_soon(
            f"workflow {head.workflow_id!r} began as run {head.run_id} less than {apart.total_seconds():g} s ago, and "
            "a run of one id begins no sooner behind another here",
            wait,
        )


def _too_soon(what: str, wait: timedelta) -> ResourceExhausted:
    return ResourceExhausted(
        f"{what}; call again in a moment, or use another workflow_id",
        cause=ResourceExhaustedCause.BUSY_WORKFLOW.value,
        scope=ResourceExhaustedScope.WORKFLOW.value,
        retry_after=f"{wait.total_seconds():.3f}",
    )
