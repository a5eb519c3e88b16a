"""What a schedule is: when it acts, what it does then, by which rules, and what is known of it (LC-25 to LC-42).

``services/scheduler/spec.py`` is what the times mean.
"""

from datetime import datetime, timedelta

from ._struct import Record
from .common import Headers, Memo, Priority, RetryPolicy, UserMetadata, WorkflowExecution
from .enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy, WorkflowExecutionStatus, WorkflowIDReusePolicy
from .payloads import Payloads


class ScheduleRange(Record, frozen=True):
    """``start``, ``start + step`` and so on up to ``end``, which counts."""

    start: int
    end: int = 0
    """0: ``start`` alone."""
    step: int = 0
    """0 is 1."""


class ScheduleCalendarSpec(Record, frozen=True, kw_only=True):
    """Times whose every part matches (day of month AND day of week, LC-26). An empty part is as if it was not given."""

    second: tuple[ScheduleRange, ...] = (ScheduleRange(0),)
    minute: tuple[ScheduleRange, ...] = (ScheduleRange(0),)
    hour: tuple[ScheduleRange, ...] = (ScheduleRange(0),)
    day_of_month: tuple[ScheduleRange, ...] = (ScheduleRange(1, 31),)
    month: tuple[ScheduleRange, ...] = (ScheduleRange(1, 12),)
    year: tuple[ScheduleRange, ...] = ()
    """Empty: every year."""
    day_of_week: tuple[ScheduleRange, ...] = (ScheduleRange(0, 6),)
    """Sunday is 0, and 7."""
    comment: str = ""


class ScheduleIntervalSpec(Record, frozen=True, kw_only=True):
    """Whole multiples of ``every`` since 1970 in UTC, plus ``offset``, which is below ``every``. Whole seconds."""

    every: timedelta
    offset: timedelta = timedelta(0)


class ScheduleSpec(Record, frozen=True, kw_only=True):
    """When: all that is named by calendars, intervals or cron strings, without what ``skip`` names. Nothing named:
    never, but when it is triggered."""

    calendars: tuple[ScheduleCalendarSpec, ...] = ()
    intervals: tuple[ScheduleIntervalSpec, ...] = ()
    cron_expressions: tuple[str, ...] = ()
    """Five fields (minute, hour, day of month, month, day of week), six (with the year behind) or seven (with the
    second before); ``@daily`` and the like; ``@every 90m``, or ``@every 1h/10m`` with an offset."""
    skip: tuple[ScheduleCalendarSpec, ...] = ()
    start_at: datetime | None = None
    """Nothing before; this time itself counts. Compared with the nominal time, without jitter."""
    end_at: datetime | None = None
    """Nothing after; this time itself counts. Compared with the nominal time, without jitter."""
    jitter: timedelta = timedelta(0)
    """Each action is at its nominal time plus something below this; always the same for one nominal time."""
    time_zone_name: str = ""
    """Of calendars, cron strings and ``skip``, such as ``Europe/Rome``; empty is UTC."""
    time_zone_data: bytes = b""
    """A zone file (TZif) to be used instead of what the server has under that name."""


class NewWorkflowExecutionInfo(Record, frozen=True, kw_only=True):
    """As in StartWorkflow. The nominal time is appended to ``workflow_id`` unless the policies say to keep it."""

    workflow_id: str
    workflow_type: str
    task_queue: str
    input: Payloads = ()
    workflow_execution_timeout: timedelta | None = None
    workflow_run_timeout: timedelta | None = None
    workflow_task_timeout: timedelta | None = None
    """A longer one than a start takes is cut when it starts."""
    workflow_id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE
    memo: Memo = {}
    search_attributes: Memo = {}
    headers: Headers = {}
    retry_policy: RetryPolicy | None = None
    workflow_start_delay: timedelta | None = None
    user_metadata: UserMetadata | None = None
    priority: Priority | None = None


class ScheduleAction(Record, frozen=True, kw_only=True):
    """What is done at each time. There is one kind so far."""

    start_workflow: NewWorkflowExecutionInfo | None = None


class SchedulePolicies(Record, frozen=True, kw_only=True):
    overlap_policy: ScheduleOverlapPolicy = ScheduleOverlapPolicy.SKIP
    concurrency_limit: int = 0
    """How many of its runs may be open before ``overlap_policy`` decides (LC-28); 0 is one. With ALLOW_ALL 0 is no
    limit, and what is over a limit is skipped."""
    catchup_window: timedelta | None = None
    """Times that are found this late or later, after an outage, are missed and counted. At least 10 s; None: a year,
    ``limits.DEFAULT_CATCHUP_WINDOW``."""
    pause_on_failure: bool = False
    """A run that fails or times out, its retries included, pauses the schedule (LC-31)."""
    catch_up_on_unpause: ScheduleCatchUpPolicy = ScheduleCatchUpPolicy.SKIP
    """What becomes of the times within the catch-up window that came while it was paused (LC-30)."""
    keep_original_workflow_id: bool = False
    """Runs get the action's ``workflow_id`` as it is, without the time (LC-37)."""


class ScheduleState(Record, frozen=True, kw_only=True):
    note: str = ""
    """For people; pausing, unpausing and ``pause_on_failure`` overwrite it."""
    paused: bool = False
    limited_actions: bool = False
    """``remaining_actions`` counts down with each action; at 0 only a trigger or a backfill acts."""
    remaining_actions: int = 0


class Schedule(Record, frozen=True, kw_only=True):
    spec: ScheduleSpec = ScheduleSpec()
    action: ScheduleAction
    policies: SchedulePolicies = SchedulePolicies()
    state: ScheduleState = ScheduleState()


class ScheduleActionResult(Record, frozen=True, kw_only=True):
    schedule_time: datetime
    """The nominal time."""
    actual_time: datetime
    """When it was done."""
    start_workflow_result: WorkflowExecution | None = None
    """The run that was started, the first of its chain."""
    start_workflow_status: WorkflowExecutionStatus | None = None
    """As far as the schedule knows."""


class ScheduleInfo(Record, frozen=True, kw_only=True):
    """LC-36."""

    action_count: int = 0
    """Actions done: by time, by trigger, by backfill."""
    missed_catchup_window: int = 0
    """Times that were found too late."""
    missed_paused: int = 0
    """Times that passed while it was paused and that are not made up for."""
    overlap_skipped: int = 0
    """Times that the overlap policy left out."""
    buffer_dropped: int = 0
    """Actions that found the buffer full."""
    start_refused: int = 0
    """Actions whose start was refused for good: by a limit of the namespace on payloads, say."""
    last_refusal: str = ""
    """Why the newest of those was."""
    rate_delayed: int = 0
    """Actions that waited since the namespace had no starts left for a while."""
    buffer_size: int = 0
    """Actions that wait."""
    state_size_bytes: int = 0
    running_workflows: tuple[WorkflowExecution, ...] = ()
    recent_actions: tuple[ScheduleActionResult, ...] = ()
    """The last 10, oldest first."""
    future_action_times: tuple[datetime, ...] = ()
    """The next 10, with jitter, as if it was not paused."""
    create_time: datetime
    update_time: datetime | None = None


class ScheduleListInfo(Record, frozen=True, kw_only=True):
    """What a list shows: of the spec without zone data, 5 actions behind and 5 ahead."""

    spec: ScheduleSpec = ScheduleSpec()
    workflow_type: str = ""
    note: str = ""
    paused: bool = False
    recent_actions: tuple[ScheduleActionResult, ...] = ()
    future_action_times: tuple[datetime, ...] = ()


class ScheduleListEntry(Record, frozen=True, kw_only=True):
    schedule_id: str
    memo: Memo = {}
    search_attributes: Memo = {}
    info: ScheduleListInfo
