"""User timers: started and cancelled by command. Their firing is derived from state and clock (``placement``)."""

from stepwell.api import limits
from stepwell.api.commands import CancelTimer, StartTimer
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import TimerCanceled, TimerStarted

from ..builder import TransitionBuilder
from ..timeouts import BadTimeout, check_duration
from .bad_command import BadCommand, check_id, check_metadata


def start(draft: TransitionBuilder, command: StartTimer, completed_event_id: int) -> None:
    """Raises BadCommand for a bad id or timeout, an id that is pending, or too many timers.

    One of no time at all is due at once, after what else the workflow task brought: SDKs of Temporal ask for such.
    """
    timers = draft.state.timers
    timer_id = command.timer_id
    check_id(WorkflowTaskFailedCause.BAD_START_TIMER_ATTRIBUTES, "timer_id", timer_id)
    try:
        check_duration(f"start_to_fire_timeout of timer {timer_id!r}", command.start_to_fire_timeout, may_be_zero=True)
    except BadTimeout as bad:
        raise BadCommand(WorkflowTaskFailedCause.BAD_START_TIMER_ATTRIBUTES, str(bad)) from None
    if timer_id in timers:
        raise BadCommand(
            WorkflowTaskFailedCause.START_TIMER_DUPLICATE_ID,
            f"timer_id {timer_id!r} is pending already; give each pending timer an id of its own.",
        )
    if len(timers) >= limits.MAX_PENDING_TIMERS:
        raise BadCommand(
            WorkflowTaskFailedCause.PENDING_TIMERS_LIMIT_EXCEEDED,
            f"the run has {len(timers)} pending timers, the most it may have; wait for some to fire first.",
        )
    draft.record(
        TimerStarted(
            timer_id=timer_id,
            start_to_fire_timeout=command.start_to_fire_timeout,
            workflow_task_completed_event_id=completed_event_id,
        ),
        user_metadata=check_metadata(f"timer {timer_id!r}", command.user_metadata),
    )


def cancel(draft: TransitionBuilder, command: CancelTimer, completed_event_id: int, identity: str) -> None:
    """Raises BadCommand when the timer is not pending."""
    timer = draft.state.timers.get(command.timer_id)
    if timer is None:
        raise BadCommand(
            WorkflowTaskFailedCause.BAD_CANCEL_TIMER_ATTRIBUTES,
            f"timer_id {command.timer_id!r} is not pending; only a pending timer can be cancelled.",
        )
    draft.record(
        TimerCanceled(
            timer_id=timer.timer_id,
            started_event_id=timer.started_event_id,
            workflow_task_completed_event_id=completed_event_id,
            identity=identity,
        )
    )
