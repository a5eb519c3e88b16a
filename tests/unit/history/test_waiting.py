"""What counts as waiting for a worker: not what was taken, nor what waits on purpose."""

from datetime import timedelta

import msgspec

from stepwell_server.history.activity_item import ActivityItem, ItemState, Pause, new_item
from stepwell_server.history.waiting import longest_wait
from tests.support.history_run import EAGER, T0, Run, activity, seconds

replace = msgspec.structs.replace


def waited(run: Run, *items: ActivityItem) -> timedelta | None:
    return longest_wait(run.s, {item.scheduled_event_id: item for item in items}, run.now)


def item_of(run: Run, **changes: object) -> ActivityItem:
    (pending,) = run.s.activities.values()
    return replace(new_item(run.s, pending), **changes)


def test_a_workflow_task_waits_from_its_schedule_on():
    run = Run().wait(40)
    assert waited(run) == seconds(40)


def test_a_failed_one_waits_from_the_end_of_its_backoff_on():
    run = Run()
    for _ in range(3):
        run.fail_task()
    task = run.s.workflow_task
    assert task is not None and task.not_before is not None and task.not_before > run.now
    assert waited(run) is None
    run.now = task.not_before + seconds(5)
    assert waited(run) == seconds(5)


def test_an_idle_run_waits_for_nobody():
    run = Run()
    run.accept()
    assert waited(run.wait(60)) is None


def test_a_leased_activity_has_its_worker():
    run = Run()
    run.accept(activity(), eager=EAGER)
    assert waited(run.wait(60)) is None


def test_a_queued_activity_waits_until_it_is_started():
    run = Run()
    run.accept(activity())
    run.wait(60)
    assert waited(run) == seconds(60)
    assert waited(run, item_of(run, state=ItemState.SCHEDULED)) == seconds(60)
    assert waited(run, item_of(run, state=ItemState.STARTED, started_time=T0)) is None
    assert waited(run, item_of(run, state=ItemState.COMPLETED)) is None


def test_a_retry_waits_from_its_time_on_and_a_paused_one_on_purpose():
    run = Run()
    run.accept(activity())
    run.wait(60)
    retry = item_of(run, state=ItemState.SCHEDULED, attempt=2, next_attempt_time=T0 + seconds(45))
    assert waited(run, retry) == seconds(15)
    assert waited(run, replace(retry, next_attempt_time=T0 + seconds(90))) is None
    assert waited(run, replace(retry, pause=Pause(time=T0))) is None
