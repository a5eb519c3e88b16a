"""The checker of the history rules finds each kind of unlawful history; a checker that never objects proves nothing."""

from datetime import timedelta

import msgspec
import pytest
from stepwell.api import events as e
from stepwell.api.common import RetryPolicy
from stepwell.api.events import EventAttributes, HistoryEvent
from stepwell.api.payloads import Payload

from tests.simulation.environment import EPOCH
from tests.simulation.history_rules import HistoryRules, Violation
from tests.simulation.local_rules import MARKER

SECOND = timedelta(seconds=1)

STARTED = e.WorkflowExecutionStarted(
    workflow_type="t",
    task_queue="q",
    workflow_task_timeout=10 * SECOND,
    original_execution_run_id="r",
    first_execution_run_id="r",
    workflow_id="w",
)
SIGNAL = e.WorkflowExecutionSignaled(signal_name="s")

CLOSE = e.WorkflowExecutionCompleted(workflow_task_completed_event_id=4)


def task_scheduled() -> e.WorkflowTaskScheduled:
    return e.WorkflowTaskScheduled(task_queue="q", start_to_close_timeout=10 * SECOND)


def activity_scheduled(completed: int, activity_id: str = "1") -> e.ActivityTaskScheduled:
    return e.ActivityTaskScheduled(
        activity_id=activity_id,
        activity_type="a",
        task_queue="q",
        workflow_task_completed_event_id=completed,
        retry_policy=RetryPolicy(),
    )


def local_end(attempt: int, backoff: int = 0) -> e.MarkerRecorded:
    data = Payload(data=msgspec.json.encode({"activity_id": "1", "attempt": attempt, "backoff": backoff}))
    return e.MarkerRecorded(marker_name=MARKER, details={"data": data}, workflow_task_completed_event_id=4)


OPENING: list[EventAttributes] = [
    STARTED,
    task_scheduled(),
    e.WorkflowTaskStarted(scheduled_event_id=2),
    e.WorkflowTaskCompleted(scheduled_event_id=2, started_event_id=3),
]
ACTIVITY_END: list[EventAttributes] = [
    e.ActivityTaskStarted(scheduled_event_id=5),
    e.ActivityTaskCompleted(scheduled_event_id=5, started_event_id=6),
]


def check(bodies: list[EventAttributes], outstanding: bool = False, last_seconds: int | None = None) -> None:
    rules = HistoryRules()
    for number, body in enumerate(bodies, start=1):
        seconds = last_seconds if last_seconds is not None and number == len(bodies) else number
        rules.add(HistoryEvent(event_id=number, event_time=EPOCH + seconds * SECOND, attributes=body))
    rules.end_of_commit(outstanding)


def test_a_lawful_history_passes() -> None:
    check([*OPENING, activity_scheduled(4), *ACTIVITY_END, task_scheduled()], outstanding=True)
    check([*OPENING, CLOSE])
    check([*OPENING, local_end(2, backoff=9), local_end(3)])
    timer = e.TimerStarted(timer_id="1", start_to_fire_timeout=SECOND, workflow_task_completed_event_id=4)
    fired = e.TimerFired(timer_id="1", started_event_id=5)
    check([*OPENING, timer, fired, task_scheduled()], outstanding=True)


@pytest.mark.parametrize(
    ("bodies", "outstanding", "message"),
    [
        ([STARTED, task_scheduled(), task_scheduled()], True, "rule 1"),
        ([*OPENING[:3], SIGNAL], True, "rule 4"),
        (OPENING[:3], True, "rule 4"),
        ([STARTED], False, "rule 3"),
        ([*OPENING, activity_scheduled(4), *ACTIVITY_END], False, "rule 3"),
        ([*OPENING, SIGNAL, activity_scheduled(4)], True, "rule 2"),
        ([*OPENING, activity_scheduled(3)], False, "another workflow task"),
        ([*OPENING, activity_scheduled(4), ACTIVITY_END[0]], False, "rule 8"),
        ([*OPENING, activity_scheduled(4), ACTIVITY_END[0], SIGNAL], True, "rule 8"),
        ([*OPENING, activity_scheduled(4), *ACTIVITY_END, *ACTIVITY_END], True, "second time"),
        ([*OPENING, activity_scheduled(4), activity_scheduled(4)], False, "reuses"),
        ([*OPENING, CLOSE, SIGNAL], False, "after the close"),
        ([*OPENING, e.TimerFired(timer_id="1", started_event_id=5)], True, "not pending"),
        ([SIGNAL], True, "misplaced"),
        ([*OPENING, local_end(1), local_end(1)], False, "second time"),
        ([*OPENING, local_end(2, backoff=9), local_end(2, backoff=9)], False, "attempt 2"),
    ],
)
def test_an_unlawful_history_is_refused(bodies: list[EventAttributes], outstanding: bool, message: str) -> None:
    with pytest.raises(Violation, match=message):
        check(bodies, outstanding)


def test_time_running_backwards_and_early_timers_are_refused() -> None:
    with pytest.raises(Violation, match="earlier"):
        check([STARTED, task_scheduled()], outstanding=True, last_seconds=0)
    timer = e.TimerStarted(timer_id="1", start_to_fire_timeout=30 * SECOND, workflow_task_completed_event_id=4)
    with pytest.raises(Violation, match="before its time"):
        check([*OPENING, timer, e.TimerFired(timer_id="1", started_event_id=5)], outstanding=True)
