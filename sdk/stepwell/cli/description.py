"""``stepwell workflow describe`` for people: what a run waits for comes first, what fails is in plain sight."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console
from rich.text import Text

from ..api.common import UserMetadata, WorkflowExecution
from ..api.enums import WorkflowExecutionStatus
from ..api.payloads import Payload
from ..api.requests import (
    DescribeWorkflowResponse,
    PendingActivityInfo,
    PendingChildInfo,
    PendingExternalInfo,
    PendingWorkflowTaskInfo,
)
from .output import key_values, section, status_text, warn
from .text import distance_text, failure_text, payload_text, payloads_text, safe, shorten, span_text, time_text


def print_description(described: DescribeWorkflowResponse, now: datetime, to: Console) -> None:
    """``now`` is for distances in time."""
    _print_head(described, now, to)
    for queue in described.unpolled_task_queues:
        warn(f"No worker polls task queue {queue}; start one, or check its name.", to)
    if described.pending_workflow_task is not None:
        _print_workflow_task(described.pending_workflow_task, now, to)
    section(
        "Pending activities",
        ("ID", "TYPE", "STATE", "ATTEMPT", "NEXT ATTEMPT", "WORKER", "LAST FAILURE"),
        (_activity_row(activity, now) for activity in described.pending_activities),
        to,
    )
    paused = [activity for activity in described.pending_activities if activity.paused_time is not None]
    section(
        "Paused activities",
        ("ID", "SINCE", "BY", "REASON"),
        (
            (
                activity.activity_id,
                distance_text(activity.paused_time, now),
                activity.paused_by,
                shorten(activity.pause_reason),
            )
            for activity in paused
        ),
        to,
    )
    heartbeats = [activity for activity in described.pending_activities if activity.last_heartbeat_time is not None]
    section(
        "Heartbeats",
        ("ID", "LAST", "DETAILS"),
        (
            (
                activity.activity_id,
                distance_text(activity.last_heartbeat_time, now),
                shorten(payloads_text(activity.heartbeat_details)),
            )
            for activity in heartbeats
        ),
        to,
    )
    section(
        "Pending children",
        ("WORKFLOW ID", "TYPE", "FIRST RUN ID", "WHEN THIS CLOSES"),
        (
            (child.workflow_id, child.workflow_type, child.run_id or "starting", _when_closed(child))
            for child in described.pending_children
        ),
        to,
    )
    _print_external("Signals not delivered yet", described.pending_external_signals, now, to)
    _print_external("Requests to cancel not delivered yet", described.pending_external_cancels, now, to)
    section(
        "Pending updates",
        ("ID", "NAME", "STAGE", "SINCE"),
        (
            (
                update.update_id,
                update.update_name or f"see event {update.accepted_event_id}",
                str(update.stage),
                distance_text(update.admitted_time, now) if update.admitted_time is not None else "",
            )
            for update in described.pending_updates
        ),
        to,
    )
    section(
        "Callbacks",
        ("URL", "STATE", "ATTEMPT", "NEXT ATTEMPT", "LAST FAILURE"),
        (
            (
                safe(told.url),
                str(told.state),
                str(told.attempt),
                "" if told.next_attempt_schedule_time is None else distance_text(told.next_attempt_schedule_time, now),
                shorten(told.last_attempt_failure),
            )
            for told in described.callbacks
        ),
        to,
    )
    section(
        "Pending timers",
        ("ID", "FIRES", "AT"),
        (
            (timer.timer_id, distance_text(timer.fire_time, now), time_text(timer.fire_time))
            for timer in described.pending_timers
        ),
        to,
    )


def _when_closed(child: PendingChildInfo) -> str:
    return "nothing, only watched" if child.watched else child.parent_close_policy


def _print_external(title: str, pending: Sequence[PendingExternalInfo], now: datetime, to: Console) -> None:
    section(
        title,
        ("WORKFLOW ID", "RUN ID", "ATTEMPT", "NEXT ATTEMPT"),
        ((one.workflow_id, one.run_id, str(one.attempt), distance_text(one.next_attempt_time, now)) for one in pending),
        to,
    )


def _begins(described: DescribeWorkflowResponse, now: datetime) -> str:
    at = described.first_workflow_task_time
    return "" if at is None else f"{time_text(at)} ({distance_text(at, now)})"


def _print_head(described: DescribeWorkflowResponse, now: datetime, to: Console) -> None:
    info = described.info
    status = status_text(info.status)
    if described.paused_time is not None:
        by = f" by {described.paused_by}" if described.paused_by else ""
        why = f": {described.pause_reason}" if described.pause_reason else ""
        since = distance_text(described.paused_time, now)
        status.append(f" ({safe(shorten(since + by + why))})", style="bright_yellow")
    if described.cancel_requested and info.status is WorkflowExecutionStatus.RUNNING:
        status.append(" (cancellation requested)", style="yellow")
    timeouts = [
        f"{name} {span_text(span)}"
        for name, span in (
            ("execution", described.workflow_execution_timeout),
            ("run", described.workflow_run_timeout),
            ("task", described.workflow_task_timeout),
        )
        if span is not None
    ]
    closed = info.close_time
    texts = described.user_metadata or UserMetadata()
    key_values(
        (
            ("Workflow id", info.execution.workflow_id),
            ("Run id", info.execution.run_id),
            ("First run id", info.first_run_id if info.first_run_id != info.execution.run_id else ""),
            ("Run before", described.continued_execution_run_id),
            ("Next run", described.new_execution_run_id),
            ("Parent", _named(info.parent_execution)),
            ("Root", _named(info.root_execution) if info.root_execution != info.parent_execution else ""),
            ("Type", info.workflow_type),
            ("Status", status),
            ("Task queue", info.task_queue),
            ("Workers", ", ".join(poller.identity for poller in described.workflow_task_pollers)),
            ("Started", f"{time_text(info.start_time)} ({distance_text(info.start_time, now)})"),
            ("Closed", f"{time_text(closed)} (after {span_text(closed - info.start_time)})" if closed else ""),
            ("History", f"{info.history_length} events, {info.history_size_bytes} bytes"),
            ("Timeouts", ", ".join(timeouts)),
            ("Summary", _said(texts.summary)),
            ("Details", _said(texts.details)),
            ("Attempt", str(described.attempt) if described.attempt > 1 else ""),
            ("Cron", described.cron_schedule),
            ("Begins", _begins(described, now)),
            ("Memo", ", ".join(f"{name}={shorten(payload_text(value))}" for name, value in info.memo.items())),
            (
                "Search attributes",
                ", ".join(f"{name}={shorten(payload_text(value))}" for name, value in info.search_attributes.items()),
            ),
            ("Unseen messages", str(described.buffered_events) if described.buffered_events else ""),
        ),
        to,
    )


def _named(execution: WorkflowExecution | None) -> str:
    return "" if execution is None else f"{execution.workflow_id} (run {execution.run_id})"


def _said(text: Payload | None) -> str:
    return "" if text is None else shorten(payload_text(text))


def _print_workflow_task(task: PendingWorkflowTaskInfo, now: datetime, to: Console) -> None:
    to.print()
    if task.last_failure is None and task.last_cause is None:
        to.print(
            Text(
                f"A workflow task waits for a worker, scheduled {distance_text(task.scheduled_time, now)}.",
                style="bold",
            )
        )
        return
    to.print(Text("The workflow task fails; the workflow stays open until the code is fixed.", style="bold red"))
    failure = task.last_failure
    key_values(
        (
            ("Cause", str(task.last_cause or "")),
            ("Failure", shorten(failure_text(failure), 2_000) if failure is not None else ""),
            ("Attempt", str(task.attempt)),
            ("Next attempt", distance_text(task.next_attempt_time, now)),
        ),
        to,
    )
    if failure is not None and failure.stack_trace:
        to.print(Text(safe(failure.stack_trace.rstrip()), style="dim"))


def _activity_row(activity: PendingActivityInfo, now: datetime) -> tuple[str | Text, ...]:
    attempts = (
        f"{activity.attempt} of {activity.maximum_attempts}" if activity.maximum_attempts else str(activity.attempt)
    )
    following = activity.next_attempt_schedule_time
    failure = activity.last_failure
    return (
        activity.activity_id,
        activity.activity_type,
        activity.state,
        attempts,
        distance_text(following, now) if following is not None and following > now else "",
        activity.last_worker_identity,
        Text(shorten(failure_text(failure), 400) if failure is not None else "", style="red"),
    )
