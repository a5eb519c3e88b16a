"""Activities that are handed over with the completion that scheduled them, as far as the worker has room (AC-23).

A worker says with each command whether it has reserved a slot for it. The engine leases what it can; what there is to
run stands in the command itself.
"""

from collections.abc import Sequence
from datetime import datetime

from stepwell.api import requests as r
from stepwell.api.commands import Command, ScheduleActivityTask
from stepwell.api.common import RetryPolicy

from .remembered import TaskOf


def asked_for(commands: Sequence[Command]) -> r.EagerActivities | None:
    wanted = [command for command in commands if type(command) is ScheduleActivityTask and _may_be(command)]
    return r.EagerActivities(task_queue=wanted[0].task_queue, slots=len(wanted)) if wanted else None


def _may_be(command: ScheduleActivityTask) -> bool:
    """Where there are heartbeats, an attempt is the activity item's own, and goes through the queue."""
    return command.request_eager_execution and command.heartbeat_timeout is None


def tasks(
    leases: Sequence[r.ActivityLease], commands: Sequence[Command], of: TaskOf, now: datetime
) -> list[r.ActivityTask]:
    scheduled = {command.activity_id: command for command in commands if type(command) is ScheduleActivityTask}
    return [_task(lease, scheduled[lease.activity_id], of, now) for lease in leases]


def _task(lease: r.ActivityLease, command: ScheduleActivityTask, of: TaskOf, now: datetime) -> r.ActivityTask:
    return r.ActivityTask(
        task_token=lease.task_token,
        execution=of.execution,
        workflow_type=of.workflow_type,
        activity_id=command.activity_id,
        activity_type=command.activity_type,
        task_queue=command.task_queue,
        headers=command.headers,
        input=command.input,
        scheduled_time=now,
        current_attempt_scheduled_time=now,
        started_time=now,
        schedule_to_close_timeout=command.schedule_to_close_timeout,
        start_to_close_timeout=command.start_to_close_timeout or command.schedule_to_close_timeout,
        retry_policy=command.retry_policy or RetryPolicy(),
        priority=command.priority,
    )
