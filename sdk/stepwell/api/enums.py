"""Closed sets of names. Values are what the wire and the store hold; they never change meaning."""

from enum import StrEnum


class WorkflowExecutionStatus(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"
    TERMINATED = "TERMINATED"
    CONTINUED_AS_NEW = "CONTINUED_AS_NEW"
    TIMED_OUT = "TIMED_OUT"


class WorkflowIDReusePolicy(StrEnum):
    """What a start does when the last run of the id is closed (LC-02)."""

    ALLOW_DUPLICATE = "ALLOW_DUPLICATE"
    ALLOW_DUPLICATE_FAILED_ONLY = "ALLOW_DUPLICATE_FAILED_ONLY"
    REJECT_DUPLICATE = "REJECT_DUPLICATE"


class WorkflowIDConflictPolicy(StrEnum):
    """What a start does when a run of the id is open (LC-03)."""

    FAIL = "FAIL"
    USE_EXISTING = "USE_EXISTING"
    TERMINATE_EXISTING = "TERMINATE_EXISTING"


class TimeoutType(StrEnum):
    START_TO_CLOSE = "START_TO_CLOSE"
    SCHEDULE_TO_START = "SCHEDULE_TO_START"
    SCHEDULE_TO_CLOSE = "SCHEDULE_TO_CLOSE"
    HEARTBEAT = "HEARTBEAT"


class RetryState(StrEnum):
    """Why there is no further attempt (ER-02)."""

    IN_PROGRESS = "IN_PROGRESS"
    NON_RETRYABLE_FAILURE = "NON_RETRYABLE_FAILURE"
    TIMEOUT = "TIMEOUT"
    MAXIMUM_ATTEMPTS_REACHED = "MAXIMUM_ATTEMPTS_REACHED"
    RETRY_POLICY_NOT_SET = "RETRY_POLICY_NOT_SET"
    INTERNAL_SERVER_ERROR = "INTERNAL_SERVER_ERROR"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"


class WorkflowTaskFailedCause(StrEnum):
    """Why a workflow task failed (ER-08); the run stays open."""

    WORKFLOW_WORKER_UNHANDLED_FAILURE = "WORKFLOW_WORKER_UNHANDLED_FAILURE"
    NON_DETERMINISTIC_ERROR = "NON_DETERMINISTIC_ERROR"
    UNHANDLED_COMMAND = "UNHANDLED_COMMAND"
    FORCE_CLOSE_COMMAND = "FORCE_CLOSE_COMMAND"
    BAD_SCHEDULE_ACTIVITY_ATTRIBUTES = "BAD_SCHEDULE_ACTIVITY_ATTRIBUTES"
    BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES = "BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES"
    BAD_START_TIMER_ATTRIBUTES = "BAD_START_TIMER_ATTRIBUTES"
    BAD_CANCEL_TIMER_ATTRIBUTES = "BAD_CANCEL_TIMER_ATTRIBUTES"
    BAD_RECORD_MARKER_ATTRIBUTES = "BAD_RECORD_MARKER_ATTRIBUTES"
    BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES = "BAD_COMPLETE_WORKFLOW_EXECUTION_ATTRIBUTES"
    BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES = "BAD_FAIL_WORKFLOW_EXECUTION_ATTRIBUTES"
    SCHEDULE_ACTIVITY_DUPLICATE_ID = "SCHEDULE_ACTIVITY_DUPLICATE_ID"
    START_TIMER_DUPLICATE_ID = "START_TIMER_DUPLICATE_ID"
    PENDING_ACTIVITIES_LIMIT_EXCEEDED = "PENDING_ACTIVITIES_LIMIT_EXCEEDED"
    PENDING_TIMERS_LIMIT_EXCEEDED = "PENDING_TIMERS_LIMIT_EXCEEDED"
    COMMANDS_LIMIT_EXCEEDED = "COMMANDS_LIMIT_EXCEEDED"
    PAYLOADS_TOO_LARGE = "PAYLOADS_TOO_LARGE"


class PendingActivityState(StrEnum):
    SCHEDULED = "SCHEDULED"
    STARTED = "STARTED"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"


class QueryRejectCondition(StrEnum):
    NONE = "NONE"
    NOT_OPEN = "NOT_OPEN"
    NOT_COMPLETED_CLEANLY = "NOT_COMPLETED_CLEANLY"


class TaskQueueKind(StrEnum):
    WORKFLOW = "WORKFLOW"
    ACTIVITY = "ACTIVITY"


class CompletionOutcome(StrEnum):
    """What became of the workflow part of a completion."""

    ACCEPTED = "ACCEPTED"
    """Committed; the worker may go on from what it computed."""

    STALE = "STALE"
    """Refused: the history moved on, another worker won, or the run is closed. Evict the cached run."""

    UNSEEN_EVENTS = "UNSEEN_EVENTS"
    """A close was refused, since messages came in that it had not seen. Evict; the task is offered again."""

    FAILED = "FAILED"
    """The commands were invalid; WorkflowTaskFailed was recorded. Evict; the task is offered again."""
