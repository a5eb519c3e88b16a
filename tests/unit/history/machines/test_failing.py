"""Activities that fail again and again, which only their items know (VI-19)."""

import msgspec
from stepwell.api.failures import ApplicationFailureInfo, Failure

from stepwell_server.history.activity_attempts import fail
from stepwell_server.history.problems import FAILING_ACTIVITY, FAILURE_CAUSE
from stepwell_server.history.tasks import RecordVisibility
from tests.support.history_run import Run, activity, seconds

DECLINED = Failure(message="no", info=ApplicationFailureInfo(failure_type="Declined"))


def fail_attempts(run: Run, scheduled_event_id: int, first: int, last: int) -> None:
    for attempt in range(first, last + 1):
        run.wait(200)
        run.take(scheduled_event_id, attempt)
        run.put(fail(run.items[scheduled_event_id], attempt, DECLINED, run.now))


def told(run: Run) -> list[dict[str, list[str]]]:
    """What the transition projects of it."""
    return [
        {name: msgspec.json.decode(payload.data) for name, payload in task.search_attributes.items()}
        for task in run.last.tasks
        if isinstance(task, RecordVisibility)
    ]


def test_what_fails_again_and_again_is_told_once():
    run = Run()
    run.accept(activity("held"))
    fail_attempts(run, 5, 1, 4)
    run.fire()
    assert told(run) == [], "it may pass by itself"
    fail_attempts(run, 5, 5, 5)
    run.fire()
    assert told(run) == [{FAILING_ACTIVITY: [run.s.activities[5].activity_type], FAILURE_CAUSE: ["Declined"]}]
    assert run.last.events == ()
    fail_attempts(run, 5, 6, 7)
    run.fire()
    assert told(run) == []


def test_no_more_are_noted_than_are_told_of():
    run = Run()
    run.accept(*[activity(f"{number}") for number in range(12)])
    for scheduled_event_id in range(5, 17):
        fail_attempts(run, scheduled_event_id, 1, 5)
    run.fire()
    assert sum(pending.last_failure is not None for pending in run.s.activities.values()) == 10
    run.wait(seconds(3600).total_seconds()).fire()
    assert told(run) == []
