"""What must hold between one run of a workflow id and the next."""

from datetime import datetime

from stepwell.api import events as e
from stepwell.api.enums import ContinueAsNewInitiator
from stepwell.api.events import HistoryEvent

from tests.simulation.model import RunRecord
from tests.simulation.violation import Violation

_ENDS: dict[ContinueAsNewInitiator, tuple[type, ...]] = {
    ContinueAsNewInitiator.WORKFLOW: (e.WorkflowExecutionContinuedAsNew,),
    ContinueAsNewInitiator.RETRY: (e.WorkflowExecutionFailed, e.WorkflowExecutionTimedOut),
    ContinueAsNewInitiator.CRON_SCHEDULE: (
        e.WorkflowExecutionCompleted,
        e.WorkflowExecutionFailed,
        e.WorkflowExecutionTimedOut,
    ),
}


def first_of(record: RunRecord) -> e.WorkflowExecutionStarted:
    body = record.events[0].attributes
    if not isinstance(body, e.WorkflowExecutionStarted):
        raise Violation(f"run {record.run_id} begins with {type(body).__name__}")
    return body


def chain_up_to(record: RunRecord, records: list[RunRecord]) -> list[HistoryEvent]:
    """The events of the run, and of those of its chain before it that gave it what they had: not of runs that failed
    and were retried, of earlier ones of a schedule, nor of those that a reset has left behind."""
    by_run = {other.run_id: other for other in records}
    gave = [record]
    before = by_run.get(first_of(record).continued_execution_run_id)
    while before is not None:
        if _continued(before):
            gave.insert(0, before)
        before = by_run.get(first_of(before).continued_execution_run_id)
    return [event for other in gave for event in other.events]


def _continued(record: RunRecord) -> bool:
    close = record.close_event
    return close is not None and isinstance(close.attributes, e.WorkflowExecutionContinuedAsNew)


def check_link(before: RunRecord, after: RunRecord) -> None:
    """The end of a run and the beginning of the next name each other, or neither does."""
    close = before.close_event
    following = getattr(close.attributes, "new_execution_run_id", "") if close is not None else ""
    started = first_of(after)
    if following and following != after.run_id:
        raise Violation(f"run {before.run_id} says it is followed by {following}, but is by {after.run_id}")
    if not following and started.continued_execution_run_id:
        raise Violation(f"run {after.run_id} continues run {before.run_id}, which does not say so")
    if not following or close is None:
        return
    if started.first_execution_run_id != first_of(before).first_execution_run_id:
        raise Violation(f"run {after.run_id} is of another chain than run {before.run_id}, which it continues")
    if started.continued_execution_run_id != before.run_id:
        raise Violation(f"run {after.run_id} does not say that it continues {before.run_id}")
    if started.initiator is None or not isinstance(close.attributes, _ENDS[started.initiator]):
        raise Violation(f"run {after.run_id} began by {started.initiator} behind {close.attributes!r}")
    _check_repetition(before, after)


def _check_repetition(before: RunRecord, after: RunRecord) -> None:
    earlier, later = first_of(before), first_of(after)
    retried = later.initiator is ContinueAsNewInitiator.RETRY
    if later.attempt != (earlier.attempt + 1 if retried else 1):
        raise Violation(f"run {after.run_id} is attempt {later.attempt} behind attempt {earlier.attempt}")
    most = earlier.retry_policy.maximum_attempts if earlier.retry_policy is not None else 1
    if retried and most and later.attempt > most:
        raise Violation(f"run {after.run_id} is attempt {later.attempt}; at most {most} were allowed")
    expires = _expires(before)
    if later.workflow_execution_expiration_time != expires:
        raise Violation(f"run {after.run_id} expires at another time than its chain")
    begins = after.events[0].event_time
    if later.first_workflow_task_backoff is not None:
        begins += later.first_workflow_task_backoff
    # Code may ask for a delay that outlasts its chain; then the run is timed out before its code begins.
    outlasts = later.initiator is ContinueAsNewInitiator.WORKFLOW and not _has_begun(after)
    if expires is not None and begins >= expires and not outlasts:
        raise Violation(f"run {after.run_id} begins at {begins}, when its chain has expired at {expires}")


def _has_begun(record: RunRecord) -> bool:
    return any(isinstance(event.attributes, e.WorkflowTaskScheduled) for event in record.events)


def _expires(record: RunRecord) -> datetime | None:
    """A reset begins the time of its execution anew."""
    first = first_of(record)
    resets = [event for event in record.events if getattr(event.attributes, "new_run_id", "")]
    if not resets or first.workflow_execution_timeout is None:
        return first.workflow_execution_expiration_time
    return resets[-1].event_time + first.workflow_execution_timeout
