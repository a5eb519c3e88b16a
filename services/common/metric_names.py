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

OPERATION = "operation"
CODE = "code"
SERVICE = "service"

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
}
"""All metrics there are."""

DIMENSIONS: Mapping[str, tuple[str, ...]] = {REQUESTS: (OPERATION, CODE), THROTTLES: (SERVICE,)}
"""Beside ``CELL``."""

PRESSING = frozenset({NON_DETERMINISM, STUCK, FAILED_RECORDS, FEED_FAILURES})
"""Rare, and somebody may be woken by them: a function tells of them with the call that saw them."""
