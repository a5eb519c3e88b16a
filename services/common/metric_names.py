"""Names of the metrics that operators are woken by: who reports them and who makes alarms of them use these.

Reported with the dimension ``CELL`` alone. The field's names, as Temporal's server and SDK have them.
"""

CELL = "cell"

BACKLOG_AGE = "approximate_backlog_age_seconds"
"""Age of a task queue's oldest task, in seconds."""

SCHEDULE_TO_START = "task_schedule_to_start_latency"
"""From a task's being scheduled to its being handed to a worker, in milliseconds."""

TIMER_LAG = "timer_lag"
"""From a deadline's time to its handling, in milliseconds."""

NON_DETERMINISM = "non_deterministic_workflow_tasks"
"""Workflow tasks that failed because the code disagrees with the history."""

STUCK = "stuck_workflow_tasks"
"""Attempts of workflow tasks that have failed several times in a row."""
