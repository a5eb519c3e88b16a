"""Activities that a completion leases to this worker: how many it asks for, and what it makes of a lease.

The exchange itself is ``completion``.
"""

import msgspec

from ..api import commands as c
from ..api.common import inherited
from ..api.failures import ApplicationFailureInfo
from ..api.requests import (
    ActivityFailed,
    ActivityLease,
    ActivityOutcome,
    ActivityPending,
    ActivityTask,
    RespondWorkflowTaskCompletedResponse,
)
from ..workflow.dynamic import DYNAMIC
from .activity_worker import ActivityWorker
from .cached_run import CachedRun


def take_eager(
    activities: ActivityWorker, commands: tuple[c.Command, ...], maximum: int
) -> tuple[tuple[c.Command, ...], int]:
    """How many activities can be taken at once, with slots taken for them. Those that this worker does not have
    must not be leased to it."""
    eligible = 0
    queue, known = activities.task_queue, activities.activities
    takes_all = DYNAMIC in known
    changed: list[c.Command] | None = None
    for index, command in enumerate(commands):
        if type(command) is not c.ScheduleActivityTask or not command.request_eager_execution:
            continue
        if command.task_queue != queue or command.heartbeat_timeout is not None:
            continue
        if takes_all or command.activity_type in known:
            eligible += 1
        else:
            changed = changed if changed is not None else list(commands)
            changed[index] = msgspec.structs.replace(command, request_eager_execution=False)
    eager = 0
    if eligible and not activities.shutting_down.is_set():
        eager = activities.slots.take(min(eligible, maximum))
    return (commands if changed is None else tuple(changed)), eager


def leased_task(
    cached: CachedRun,
    command: c.ScheduleActivityTask,
    lease: ActivityLease,
    response: RespondWorkflowTaskCompletedResponse,
) -> ActivityTask:
    """What a poll would have given for it."""
    at = response.commit_time or cached.workflow_time()
    parent, own = cached.run.priority, command.priority
    return ActivityTask(
        task_token=lease.task_token,
        execution=cached.execution,
        workflow_type=cached.workflow_type,
        activity_id=command.activity_id,
        activity_type=command.activity_type,
        task_queue=command.task_queue,
        headers=command.headers,
        input=command.input,
        scheduled_time=at,
        current_attempt_scheduled_time=at,
        started_time=at,
        schedule_to_close_timeout=command.schedule_to_close_timeout,
        start_to_close_timeout=command.start_to_close_timeout,
        retry_policy=command.retry_policy,
        priority=own if parent is None else inherited(parent, own),
    )


def can_travel(outcome: ActivityOutcome, command: c.ScheduleActivityTask) -> bool:
    """Whether an outcome may be fed to the workflow before the engine has seen it. Of failures, only those that are
    never tried again whatever the policy: for the others the engine decides whether there is another attempt."""
    if type(outcome) is not ActivityFailed:
        return type(outcome) is not ActivityPending
    info = outcome.failure.info
    if outcome.worker_shutdown or not isinstance(info, ApplicationFailureInfo):
        return False
    policy = command.retry_policy
    return info.non_retryable or (policy is not None and info.failure_type in policy.non_retryable_error_types)
