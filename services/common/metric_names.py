"""Names of the metrics that operators are woken by: who reports them and who makes alarms of them use these.

The field's names, as Temporal's server and SDK have them. Each is reported with the dimension ``CELL`` and those that
``DIMENSIONS`` has for it, which are of closed sets: CloudWatch bills each combination, so no id is ever one. Metrics of
alarms have ``CELL`` alone.
"""

from collections.abc import Mapping

NAMESPACE = "Stepwell"
CELL = "cell"

BACKLOG_AGE = "approximate_backlog_age_seconds"
"""Age of a task queue's oldest task, in seconds: told by each task that is handed out, and by each that has waited so
long that it is sent again."""

SCHEDULE_TO_START = "task_schedule_to_start_latency"
"""From a task's being scheduled to its being handed to a worker, in milliseconds."""

TIMER_LAG = "timer_lag"
"""From a deadline's time to its handling, in milliseconds."""

NON_DETERMINISM = "non_deterministic_workflow_tasks"
"""Workflow tasks that failed because the code disagrees with the history."""

STUCK = "stuck_workflow_tasks"
"""Attempts of workflow tasks that have failed several times in a row."""

STUCK_AFTER = 3
"""How many failures in a row that is."""

REQUESTS = "service_requests"
"""Calls of the API, by operation and the code of its answer (``OK``)."""

THROTTLES = "store_throttles"
"""Calls that an AWS service refused for now because they were too many, by service; each try is one."""

FAILED_RECORDS = "failed_records"
"""Records of the stream, and deadlines of the queue, that could not be handled and come again."""

FEED_FAILURES = "feed_failures"
"""Records of the stream that a container has set aside for good. Of functions, Lambda does that: the alarm is on the
queue that they go to."""

SCHEDULE_STARTED = "schedule_action_success"
"""Runs that schedules have started, orders and backfills included."""

SCHEDULE_REFUSED = "schedule_action_errors"
"""Actions that can never be started as they are: refused by the engine or by a limit of the namespace."""

SCHEDULE_SKIPPED = "schedule_overlap_skipped"
"""Actions that were left out for the run of another one, by the overlap policy or because the workflow id is taken."""

SCHEDULE_MISSED = "schedule_missed_catchup_window"
"""Times that were noticed later than the catch-up window allows."""

SCHEDULE_OVERRUNS = "schedule_buffer_overruns"
"""Times that came while a thousand waited."""

SCHEDULE_RATE_LIMITED = "schedule_rate_limited"
"""Actions that had to wait for the namespace's starts of a second; each once."""

SCHEDULE_DELAY = "schedule_action_delay"
"""From an action's time, with its jitter, to its start, in milliseconds; of those that waited for the end of another
run, or for the schedule to be unpaused, nothing is told."""

SHADOW_READS = "visibility_shadow_reads"
"""Lists and counts that were asked of both visibility stores, by whether they said the same."""

EQUAL, DIFFERENT, FAILED = "equal", "different", "failed"
"""Outcomes of shadow reads."""

OPERATION = "operation"
CODE = "code"
SERVICE = "service"
OUTCOME = "outcome"

UNITS: Mapping[str, str] = {
    BACKLOG_AGE: "Seconds",
    SCHEDULE_TO_START: "Milliseconds",
    TIMER_LAG: "Milliseconds",
    NON_DETERMINISM: "Count",
    STUCK: "Count",
    REQUESTS: "Count",
    THROTTLES: "Count",
    FAILED_RECORDS: "Count",
    FEED_FAILURES: "Count",
    SCHEDULE_STARTED: "Count",
    SCHEDULE_REFUSED: "Count",
    SCHEDULE_SKIPPED: "Count",
    SCHEDULE_MISSED: "Count",
    SCHEDULE_OVERRUNS: "Count",
    SCHEDULE_RATE_LIMITED: "Count",
    SCHEDULE_DELAY: "Milliseconds",
    SHADOW_READS: "Count",
}
"""All metrics there are."""

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    REQUESTS: (OPERATION, CODE),
    THROTTLES: (SERVICE,),
    SHADOW_READS: (OUTCOME,),
}
"""Beside ``CELL``."""

PRESSING = frozenset({NON_DETERMINISM, STUCK, FAILED_RECORDS, FEED_FAILURES})
"""Rare, and somebody may be woken by them: a function tells of them with the call that saw them."""
