"""Commands about activities: scheduled and leased or queued (design section 6), asked to cancel."""

from collections.abc import Collection

import msgspec
from stepwell.api import limits
from stepwell.api.commands import RequestCancelActivityTask, ScheduleActivityTask
from stepwell.api.common import RetryPolicy, inherited
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import ActivityTaskCancelRequested, ActivityTaskScheduled
from stepwell.api.payloads import Payload
from stepwell.api.requests import EagerActivities

from .. import priorities, retry
from ..builder import TransitionBuilder
from ..requests import Worker
from ..run_limits import way_out
from ..state import Lease
from ..tasks import DispatchActivityTask
from ..timeouts import ActivityTimeouts, BadTimeout, fill_in, run_timeout
from ..transition import LeaseGranted
from .activity import told_of_cancel
from .bad_command import BadCommand, check_id, check_metadata, check_payloads, check_size, payload_size

_BAD = WorkflowTaskFailedCause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES
DEFAULT_RETRY_POLICY = RetryPolicy()
"""AC-09: 1 s, factor 2.0, at most 100 s, unlimited attempts."""

_replace = msgspec.structs.replace


class Leasing:
    """What the completing worker can take at once, and what it has been given of it so far."""

    __slots__ = ("granted", "lease", "slots", "task_queue")

    def __init__(self, eager: EagerActivities | None, worker: Worker, draft: TransitionBuilder) -> None:
        self.granted: list[LeaseGranted] = []
        self.slots = eager.slots if eager is not None else 0
        self.task_queue = eager.task_queue if eager is not None else ""
        self.lease: Lease | None = None
        if self.slots > 0:
            self.lease = Lease(
                identity=worker.identity,
                started_time=draft.now,
                holder=worker.holder,
                worker_key=worker.worker_key,
            )

    def takes(self, command: ScheduleActivityTask) -> bool:
        """Never with a heartbeat timeout: such an attempt needs an item (design section 5)."""
        return (
            len(self.granted) < self.slots
            and command.request_eager_execution
            and command.heartbeat_timeout is None
            and command.task_queue == self.task_queue
        )


def schedule(
    draft: TransitionBuilder, command: ScheduleActivityTask, completed_event_id: int, leasing: Leasing
) -> None:
    """Raises BadCommand for bad attributes, an id that is pending, or too many activities."""
    timeouts = _checked(draft, command)
    event = draft.record(
        ActivityTaskScheduled(
            activity_id=command.activity_id,
            activity_type=command.activity_type,
            task_queue=command.task_queue,
            headers=command.headers,
            input=command.input,
            schedule_to_close_timeout=timeouts.schedule_to_close,
            schedule_to_start_timeout=timeouts.schedule_to_start,
            start_to_close_timeout=timeouts.start_to_close,
            heartbeat_timeout=timeouts.heartbeat,
            workflow_task_completed_event_id=completed_event_id,
            retry_policy=command.retry_policy if command.retry_policy is not None else DEFAULT_RETRY_POLICY,
            priority=inherited(draft.state.priority, command.priority),
        ),
        user_metadata=check_metadata(f"activity {command.activity_id!r}", command.user_metadata),
    )
    scheduled_event_id = event.event_id
    if leasing.takes(command):
        activities = draft.state.activities
        activities[scheduled_event_id] = _replace(
            activities[scheduled_event_id], lease=leasing.lease, next_dispatch=None, dispatches=0
        )
        leasing.granted.append(LeaseGranted(activity_id=command.activity_id, scheduled_event_id=scheduled_event_id))
    else:
        draft.tasks.append(DispatchActivityTask(scheduled_event_id=scheduled_event_id, task_queue=command.task_queue))


def request_cancel(draft: TransitionBuilder, command: RequestCancelActivityTask, completed_event_id: int) -> None:
    """Raises BadCommand when the activity is not pending or has been asked already."""
    pending = draft.state.activities.get(command.scheduled_event_id)
    if pending is None or pending.cancel_requested_event_id:
        why = "is not pending" if pending is None else "has been asked to cancel already"
        raise BadCommand(
            WorkflowTaskFailedCause.BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES,
            f"the activity with scheduled_event_id {command.scheduled_event_id} {why}; ask once, while it is pending.",
        )
    draft.record(
        ActivityTaskCancelRequested(
            scheduled_event_id=command.scheduled_event_id, workflow_task_completed_event_id=completed_event_id
        )
    )
    draft.tasks.append(told_of_cancel(draft, pending))


def _checked(draft: TransitionBuilder, command: ScheduleActivityTask) -> ActivityTimeouts:
    state = draft.state
    check_id(_BAD, "activity_id", command.activity_id)
    check_id(_BAD, "activity_type", command.activity_type)
    check_id(_BAD, "task_queue", command.task_queue)
    if command.activity_id in state.activity_ids:
        raise BadCommand(
            WorkflowTaskFailedCause.SCHEDULE_ACTIVITY_DUPLICATE_ID,
            f"activity_id {command.activity_id!r} is pending already; give each pending activity an id of its own.",
        )
    most = draft.limits.activities
    if len(state.activities) >= most:
        raise BadCommand(
            WorkflowTaskFailedCause.PENDING_ACTIVITIES_LIMIT_EXCEEDED,
            f"the run has {len(state.activities)} pending activities, the most it may have; "
            f"wait for some to end first{way_out(most, limits.MAX_PENDING_ACTIVITIES)}.",
        )
    if command.retry_policy is not None:
        problem = retry.problem_of(command.retry_policy)
        if problem:
            raise BadCommand(_BAD, f"retry_policy of activity {command.activity_id!r}: {problem}.")
    if command.priority is not None:
        problem = priorities.problem_of(command.priority)
        if problem:
            raise BadCommand(_BAD, f"priority of activity {command.activity_id!r}: {problem}.")
    check_payloads("the input of the activity", command.input)
    if command.headers:
        _check_headers(command.headers.values())
    try:
        return fill_in(command, run_timeout(state.start_time, state.run_expires))
    except BadTimeout as bad:
        raise BadCommand(_BAD, str(bad)) from None


def _check_headers(headers: Collection[Payload]) -> None:
    check_size("the headers of the activity", sum(map(payload_size, headers)))
