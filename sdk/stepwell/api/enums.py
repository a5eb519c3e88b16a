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
    PAUSED = "PAUSED"
    """Open, but none of its work is given out until it is unpaused (LC-11)."""


class CallbackForm(StrEnum):
    """What is posted to a completion callback (LC-10)."""

    STEPWELL = "STEPWELL"
    """JSON that names the run and has its close event."""
    NEXUS = "NEXUS"
    """The result or failure of an operation, as the Nexus protocol delivers it to a callback URL."""


class CallbackState(StrEnum):
    """How far a completion callback is (LC-10)."""

    STANDBY = "STANDBY"
    """The workflow has not ended."""
    SCHEDULED = "SCHEDULED"
    BACKING_OFF = "BACKING_OFF"
    FAILED = "FAILED"
    """It is not tried again."""
    SUCCEEDED = "SUCCEEDED"


class DeduplicationPolicy(StrEnum):
    """What a start does whose deduplication key is held by another one (LC-48)."""

    FAIL = "FAIL"
    USE_EXISTING = "USE_EXISTING"
    """Returns that one's run."""
    CANCEL_EXISTING = "CANCEL_EXISTING"
    """Asks that one to cancel, and starts."""


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
    BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES = "BAD_CANCEL_WORKFLOW_EXECUTION_ATTRIBUTES"
    BAD_CONTINUE_AS_NEW_ATTRIBUTES = "BAD_CONTINUE_AS_NEW_ATTRIBUTES"
    BAD_START_CHILD_EXECUTION_ATTRIBUTES = "BAD_START_CHILD_EXECUTION_ATTRIBUTES"
    BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES = "BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES"
    BAD_SIGNAL_INPUT_SIZE = "BAD_SIGNAL_INPUT_SIZE"
    BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES = (
        "BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES"
    )
    BAD_SEARCH_ATTRIBUTES = "BAD_SEARCH_ATTRIBUTES"
    BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES = "BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES"
    BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE = "BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE"
    UNHANDLED_UPDATE = "UNHANDLED_UPDATE"
    PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED = "PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED"
    PENDING_SIGNALS_LIMIT_EXCEEDED = "PENDING_SIGNALS_LIMIT_EXCEEDED"
    PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED = "PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED"
    RESET_WORKFLOW = "RESET_WORKFLOW"
    """Ends the part of the history that a reset keeps."""
    FEATURE_DISABLED = "FEATURE_DISABLED"
    """The engine does not carry out commands of this kind."""
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    """What the worker would have sent is larger than one request may be."""


class ParentClosePolicy(StrEnum):
    """What the end of the parent does to a child that still runs (CH-03)."""

    TERMINATE = "TERMINATE"
    ABANDON = "ABANDON"
    REQUEST_CANCEL = "REQUEST_CANCEL"


class ChildWorkflowCancellationType(StrEnum):
    """What cancelling a child from its parent's code does, and when the parent hears of it."""

    ABANDON = "ABANDON"
    TRY_CANCEL = "TRY_CANCEL"
    WAIT_CANCELLATION_COMPLETED = "WAIT_CANCELLATION_COMPLETED"
    WAIT_CANCELLATION_REQUESTED = "WAIT_CANCELLATION_REQUESTED"


class ContinueAsNewInitiator(StrEnum):
    """Why a chain goes on with another run."""

    WORKFLOW = "WORKFLOW"
    RETRY = "RETRY"
    CRON_SCHEDULE = "CRON_SCHEDULE"


class SuggestContinueAsNewReason(StrEnum):
    HISTORY_SIZE_TOO_LARGE = "HISTORY_SIZE_TOO_LARGE"
    TOO_MANY_HISTORY_EVENTS = "TOO_MANY_HISTORY_EVENTS"
    TOO_MANY_UPDATES = "TOO_MANY_UPDATES"


class StartChildWorkflowExecutionFailedCause(StrEnum):
    WORKFLOW_ALREADY_EXISTS = "WORKFLOW_ALREADY_EXISTS"
    NAMESPACE_NOT_FOUND = "NAMESPACE_NOT_FOUND"
    NAMESPACE_NOT_ALLOWED = "NAMESPACE_NOT_ALLOWED"
    """It does not list the parent's among its callers, or is deprecated. To ask again does not help until that is
    changed."""
    WORKFLOW_NOT_FOUND = "WORKFLOW_NOT_FOUND"
    """There is nothing to watch."""
    WAITERS_LIMIT_EXCEEDED = "WAITERS_LIMIT_EXCEEDED"
    """As many runs watch it as may."""
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    """It cannot be started with what it was asked for with, now or later; the engine's log says why."""


class SignalExternalWorkflowExecutionFailedCause(StrEnum):
    EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND = "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"
    NAMESPACE_NOT_FOUND = "NAMESPACE_NOT_FOUND"
    NAMESPACE_NOT_ALLOWED = "NAMESPACE_NOT_ALLOWED"
    """It does not list the sender's among its callers."""
    SIGNAL_COUNT_LIMIT_EXCEEDED = "SIGNAL_COUNT_LIMIT_EXCEEDED"


class CancelExternalWorkflowExecutionFailedCause(StrEnum):
    EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND = "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"
    NAMESPACE_NOT_FOUND = "NAMESPACE_NOT_FOUND"
    NAMESPACE_NOT_ALLOWED = "NAMESPACE_NOT_ALLOWED"
    """It does not list the sender's among its callers."""


class WorkflowUpdateStage(StrEnum):
    """How far an update has come; a caller waits for one of these."""

    ADMITTED = "ADMITTED"
    ACCEPTED = "ACCEPTED"
    COMPLETED = "COMPLETED"


class UpdateAdmittedEventOrigin(StrEnum):
    """Why an admission is in the history."""

    REAPPLY = "REAPPLY"


class ResetReapplyExcludeType(StrEnum):
    """Messages that a reset does not apply again."""

    SIGNAL = "SIGNAL"
    UPDATE = "UPDATE"
    CANCEL_REQUEST = "CANCEL_REQUEST"


class ResetType(StrEnum):
    """Where a reset goes back to, when that is not named by an event."""

    FIRST_WORKFLOW_TASK = "FIRST_WORKFLOW_TASK"
    LAST_WORKFLOW_TASK = "LAST_WORKFLOW_TASK"
    LAST_CONTINUED_AS_NEW = "LAST_CONTINUED_AS_NEW"
    """The last workflow task of the run before, which continued as new."""
    BUILD_ID = "BUILD_ID"
    """The first workflow task that a worker of that build completed."""


class PendingActivityState(StrEnum):
    SCHEDULED = "SCHEDULED"
    STARTED = "STARTED"
    CANCEL_REQUESTED = "CANCEL_REQUESTED"
    PAUSED = "PAUSED"
    PAUSE_REQUESTED = "PAUSE_REQUESTED"


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

    DROPPED = "DROPPED"
    """A workflow task that was there for updates alone, and all were rejected: nothing was recorded, the history is as
    it was before the task."""


class ScheduleOverlapPolicy(StrEnum):
    """What a schedule does when its last run is still open at the next time (LC-27)."""

    SKIP = "SKIP"
    BUFFER_ONE = "BUFFER_ONE"
    """Starts when that one ends; one may wait, further ones are left out."""
    BUFFER_ALL = "BUFFER_ALL"
    """All wait and start one after the other."""
    CANCEL_OTHER = "CANCEL_OTHER"
    """Asks the open run to cancel, starts when it has ended."""
    TERMINATE_OTHER = "TERMINATE_OTHER"
    ALLOW_ALL = "ALLOW_ALL"
    """Runs beside each other; they are not told of the last result."""


class ScheduleCatchUpPolicy(StrEnum):
    """What an unpaused schedule makes of the times that it was paused at (LC-30)."""

    SKIP = "SKIP"
    ONE = "ONE"
    """The last of them."""
    ALL = "ALL"


class NamespaceState(StrEnum):
    REGISTERED = "REGISTERED"
    DEPRECATED = "DEPRECATED"
    """Nothing is started in it any more; what runs goes on."""
    DELETED = "DELETED"
    """Nobody is shown it any more; what was in it goes in the background."""


class ResourceExhaustedCause(StrEnum):
    """What there was too much of (MT-05), in ``details["cause"]``."""

    RPS_LIMIT = "RPS_LIMIT"
    """Calls in a second."""
    STARTS_LIMIT = "STARTS_LIMIT"
    """Calls that start workflows."""
    DISPATCH_LIMIT = "DISPATCH_LIMIT"
    """Tasks handed to workers."""
    VISIBILITY_LIMIT = "VISIBILITY_LIMIT"
    """Lists and counts."""
    CONCURRENT_LIMIT = "CONCURRENT_LIMIT"
    """Calls that are held open."""
    NAMESPACE_CHANGES_LIMIT = "NAMESPACE_CHANGES_LIMIT"
    """Registrations and changes of namespaces."""
    BUSY_WORKFLOW = "BUSY_WORKFLOW"
    """What one run has to do."""


class ResourceExhaustedScope(StrEnum):
    """Whose limit it was, in ``details["scope"]``."""

    NAMESPACE = "NAMESPACE"
    SYSTEM = "SYSTEM"
    WORKFLOW = "WORKFLOW"


class BatchOperationState(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    """It was done with all, whatever came of each."""
    FAILED = "FAILED"
    """It could not go on."""
    STOPPED = "STOPPED"


class ExportState(StrEnum):
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    """All of its window was looked at, whatever came of each run."""
    FAILED = "FAILED"
    """It could not go on."""
    STOPPED = "STOPPED"


class ExportFormat(StrEnum):
    """Of one history."""

    JSON_LINES_GZIP = "JSON_LINES_GZIP"
    """An event a line, gzipped."""
    JSON = "JSON"
    """One object: ``workflow_id`` and ``events``."""


class BatchOperationType(StrEnum):
    TERMINATE = "TERMINATE"
    CANCEL = "CANCEL"
    SIGNAL = "SIGNAL"
    DELETE = "DELETE"
    RESET = "RESET"
    UPDATE_OPTIONS = "UPDATE_OPTIONS"
    UNPAUSE = "UNPAUSE"
    UNPAUSE_ACTIVITIES = "UNPAUSE_ACTIVITIES"
    RESET_ACTIVITIES = "RESET_ACTIVITIES"
    UPDATE_ACTIVITY_OPTIONS = "UPDATE_ACTIVITY_OPTIONS"
    TERMINATE_ACTIVITIES = "TERMINATE_ACTIVITIES"
    CANCEL_ACTIVITIES = "CANCEL_ACTIVITIES"
    DELETE_ACTIVITIES = "DELETE_ACTIVITIES"
