"""How a log-leased attempt ended, from the words of the API into those of the core. Pure."""

from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import ActivityCanceled, ActivityCompleted, ActivityFailed, ActivityOutcome, ActivityPending

from .requests import LeasedOutcome
from .task_tokens import ActivityToken


def leased_outcome(token: ActivityToken, outcome: ActivityOutcome) -> LeasedOutcome:
    """How a log-leased attempt ended, as the core takes it."""
    event_id, attempt = token.scheduled_event_id, token.attempt
    match outcome:
        case ActivityCompleted():
            return LeasedOutcome(scheduled_event_id=event_id, attempt=attempt, result=outcome.result)
        case ActivityFailed():
            return LeasedOutcome(
                scheduled_event_id=event_id,
                attempt=attempt,
                failure=outcome.failure,
                details=outcome.last_heartbeat_details,
                worker_shutdown=outcome.worker_shutdown,
            )
        case ActivityCanceled():
            return LeasedOutcome(
                scheduled_event_id=event_id,
                attempt=attempt,
                canceled=True,
                details=outcome.details,
            )
        case ActivityPending():
            raise InvalidArgument(
                f"activity {token.activity_id!r} goes on, so that its workflow cannot have seen its end; "
                "send ActivityPending to RespondActivityTasks",
                field="activity_outcomes",
            )
