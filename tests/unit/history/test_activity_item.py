"""The activity item: each attempt ends once, whoever reports it and however often."""

import pytest
from stepwell.api import limits
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.errors import NotFound
from stepwell.api.failures import CanceledFailureInfo, TimeoutFailureInfo
from stepwell.api.payloads import Payload

from stepwell_server.history import activity_attempts, activity_item
from stepwell_server.history.activity_item import ItemState, is_finished
from tests.support.history_run import EAGER, T0, Run, activity, declined, failed, once, payload, seconds

ID = 5


def held(**fields):
    """A run whose activity, event 5, waits in its queue."""
    run = Run()
    run.accept(activity(**fields))
    return run


def running(**fields):
    run = held(**fields)
    return run, run.take(ID)


def test_start_makes_the_item():
    _, item = running(heartbeat_timeout=seconds(3))
    assert (item.version, item.state, item.attempt, item.started_time) == (1, ItemState.STARTED, 1, T0)
    assert item.identity == "worker-2" and item.worker_key == "k2"
    assert item.heartbeat_timeout == seconds(3)


def test_start_refuses_what_is_not_to_be_had():
    run, item = running()
    pending = run.s.activities[ID]

    def start(item, attempt=1, now=run.now):
        return activity_attempts.start(run.s, pending, item, attempt=attempt, identity="w", now=now)

    with pytest.raises(NotFound, match="the activity is STARTED"):
        start(item)
    waiting = activity_attempts.fail(item, 1, declined(), run.now)
    with pytest.raises(NotFound, match="attempt 2 is next"):
        start(waiting)
    with pytest.raises(NotFound, match="it starts at"):
        start(waiting, attempt=2)
    assert start(waiting, attempt=2, now=run.now + seconds(1)).attempt == 2


def test_start_refuses_leased_and_overdue():
    run = Run()
    run.accept(activity(), eager=EAGER)
    with pytest.raises(NotFound, match="handed out with its scheduling"):
        run.take(ID)
    run = held(schedule_to_start_timeout=seconds(2))
    with pytest.raises(NotFound, match="timeout has passed"):
        run.wait(2).take(ID)


def test_complete_counts_once():
    run, item = running()
    done = activity_attempts.complete(item, 1, payload(), run.now)
    assert done.state is ItemState.COMPLETED and done.result == payload() and is_finished(done)
    assert activity_attempts.complete(done, 1, payload(), run.now) is done
    with pytest.raises(NotFound, match="COMPLETED"):
        activity_attempts.fail(done, 1, declined(), run.now)
    with pytest.raises(NotFound, match="COMPLETED"):
        activity_attempts.heartbeat(done, 1, (), run.now)
    with pytest.raises(NotFound, match="current attempt is 1"):
        activity_attempts.complete(done, 2, payload(), run.now)


def test_an_oversized_result_is_not_tried_again():
    run, item = running()
    large = (Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1)),)
    end = activity_attempts.complete(item, 1, large, run.now)
    assert end.state is ItemState.FAILED and end.retry_state is RetryState.NON_RETRYABLE_FAILURE
    assert activity_attempts.complete(end, 1, large, run.now) is end


def test_heartbeat_keeps_progress_and_tells_of_cancellation():
    run, item = running(heartbeat_timeout=seconds(3))
    assert activity_item.due(item) == T0 + seconds(3)
    run.wait(2)
    item = activity_attempts.heartbeat(item, 1, payload("half"), run.now)
    assert activity_item.due(item) == T0 + seconds(5)
    assert item.heartbeat_details == payload("half") and not item.cancel_requested
    asked = activity_attempts.request_cancel(run.s, run.s.activities[ID], item, run.now)
    assert asked.cancel_requested and asked.state is ItemState.STARTED
    assert activity_attempts.request_cancel(run.s, run.s.activities[ID], asked, run.now) is asked


def test_failure_is_tried_again_with_its_progress():
    run, item = running()
    after = activity_attempts.fail(item, 1, declined(), run.now, heartbeat_details=payload("50"))
    assert (after.state, after.attempt, after.next_attempt_time) == (ItemState.SCHEDULED, 2, T0 + seconds(1))
    assert after.heartbeat_details == payload("50") and after.last_failure == declined()
    assert activity_attempts.fail(after, 1, declined(), run.now) is after
    with pytest.raises(NotFound):
        activity_attempts.fail(after, 1, declined("other"), run.now)
    with pytest.raises(NotFound):
        activity_attempts.complete(after, 1, payload(), run.now)
    assert activity_item.due(after) is None
    assert activity_item.arm_time(after) == T0 + seconds(1)


def test_shutdown_is_tried_again_at_once():
    run, item = running()
    after = activity_attempts.fail(item, 1, declined(), run.now, worker_shutdown=True)
    assert after.state is ItemState.SCHEDULED and after.next_attempt_time == run.now


def test_final_failure():
    run, item = running(retry_policy=once())
    after = activity_attempts.fail(item, 1, declined(), run.now)
    assert after.state is ItemState.FAILED and after.failure == declined()
    assert after.retry_state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert activity_attempts.fail(after, 1, declined(), run.now) is after
    assert activity_item.due(after) is None and activity_item.arm_time(after) is None
    with pytest.raises(NotFound):
        activity_attempts.fail(after, 3, declined(), run.now)


def test_no_room_for_a_retry_is_the_overall_deadline_with_the_real_cause():
    run, item = running(schedule_to_close_timeout=seconds(1))
    after = activity_attempts.fail(item, 1, declined(), run.now)
    assert after.state is ItemState.TIMED_OUT and after.retry_state is RetryState.TIMEOUT
    assert after.failure.cause == declined()
    assert after.failure.info == TimeoutFailureInfo(timeout_type=TimeoutType.SCHEDULE_TO_CLOSE)
    assert activity_attempts.fail(after, 1, declined(), run.now) is after


def test_cancel_asked_and_unasked():
    run, item = running()
    unasked = activity_attempts.cancel(item, 1, payload("d"), run.now)
    assert unasked.state is ItemState.FAILED and isinstance(unasked.failure.info, CanceledFailureInfo)
    assert activity_attempts.cancel(unasked, 1, payload("d"), run.now) is unasked
    asked = activity_attempts.request_cancel(run.s, run.s.activities[ID], item, run.now)
    canceled = activity_attempts.cancel(asked, 1, payload("d"), run.now)
    assert canceled.state is ItemState.CANCELED and canceled.result == payload("d")
    assert activity_attempts.cancel(canceled, 1, payload("d"), run.now) is canceled
    refused = activity_attempts.fail(asked, 1, declined(), run.now)
    assert refused.retry_state is RetryState.CANCEL_REQUESTED


def test_cancel_before_any_start_is_the_end():
    run = held()
    pending = run.s.activities[ID]
    item = activity_attempts.request_cancel(run.s, pending, None, run.now)
    assert (item.version, item.state, item.started_time) == (1, ItemState.CANCELED, None)
    assert activity_attempts.request_cancel(run.s, pending, item, run.now) is item


def test_cancel_between_attempts_is_the_end_of_the_last_one():
    run, item = running()
    waiting = activity_attempts.fail(item, 1, declined(), run.now)
    end = activity_attempts.request_cancel(run.s, run.s.activities[ID], waiting, run.now)
    assert (end.state, end.attempt, end.started_time) == (ItemState.CANCELED, 1, T0)


def test_a_gone_worker_frees_its_attempt():
    run, item = running()
    after = activity_attempts.end_attempt(item, 1, "killed", run.now)
    assert (after.state, after.attempt, after.next_attempt_time) == (ItemState.SCHEDULED, 2, run.now)
    assert activity_attempts.end_attempt(after, 1, "killed", run.now) is after
    run, item = running(retry_policy=once())
    assert activity_attempts.end_attempt(item, 1, "killed", run.now) is item


@pytest.mark.parametrize(
    ("fields", "wait", "kind", "state"),
    [
        ({"schedule_to_close_timeout": seconds(4)}, 4, TimeoutType.SCHEDULE_TO_CLOSE, ItemState.TIMED_OUT),
        ({}, 10, TimeoutType.START_TO_CLOSE, ItemState.SCHEDULED),
        ({"retry_policy": once()}, 10, TimeoutType.START_TO_CLOSE, ItemState.TIMED_OUT),
        ({"heartbeat_timeout": seconds(3)}, 3, TimeoutType.HEARTBEAT, ItemState.SCHEDULED),
        ({"heartbeat_timeout": seconds(3), "retry_policy": once()}, 3, TimeoutType.HEARTBEAT, ItemState.TIMED_OUT),
    ],
)
def test_timeouts_of_a_running_attempt(fields, wait, kind, state):
    run, item = running(**fields)
    assert activity_attempts.time_out(item, run.wait(wait - 0.5).now) is item
    after = activity_attempts.time_out(item, run.wait(0.5).now)
    assert after.state is state
    failure = after.failure if state is ItemState.TIMED_OUT else after.last_failure
    assert failure.info.timeout_type is kind
    assert activity_attempts.time_out(after, run.now) is after


def test_timeouts_before_a_start():
    run = held(schedule_to_start_timeout=seconds(2))
    item = activity_item.new_item(run.s, run.s.activities[ID])
    assert activity_attempts.time_out(item, T0) is item
    after = activity_attempts.time_out(item, T0 + seconds(2))
    assert after.failure.info.timeout_type is TimeoutType.SCHEDULE_TO_START
    assert after.retry_state is RetryState.TIMEOUT and after.started_time is None
    assert activity_attempts.time_out(after, T0 + seconds(9)) is after


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"schedule_to_close_timeout": seconds(2)}, TimeoutType.SCHEDULE_TO_START),
        (
            {"schedule_to_close_timeout": seconds(2), "schedule_to_start_timeout": seconds(1)},
            TimeoutType.SCHEDULE_TO_START,
        ),
    ],
)
def test_what_nobody_took_is_schedule_to_start_though_the_whole_time_is_over_too(fields, kind):
    run = held(**fields)
    item = activity_item.new_item(run.s, run.s.activities[ID])
    assert activity_attempts.time_out(item, T0 + seconds(2)).failure.info.timeout_type is kind


def test_overall_deadline_between_attempts_names_the_last_failure():
    run, item = running(schedule_to_close_timeout=seconds(4))
    waiting = activity_attempts.fail(item, 1, declined(), run.now)
    assert activity_attempts.time_out(waiting, T0 + seconds(3)) is waiting
    end = activity_attempts.time_out(waiting, T0 + seconds(4))
    assert (end.state, end.attempt) == (ItemState.TIMED_OUT, 1)
    assert end.failure.cause == declined()


def test_a_leased_first_attempt_is_known_to_its_item():
    run = Run()
    run.accept(activity(), eager=EAGER)
    run.outcomes(failed(ID))
    item = activity_item.new_item(run.s, run.s.activities[ID])
    assert (item.attempt, item.started_time, item.identity) == (2, T0, "worker-1")
    assert item.last_failure == declined() and item.next_attempt_time == T0 + seconds(1)


def test_overdue_finds_every_item_held_activity_with_a_timeout_due():
    run = Run()
    run.accept(
        activity("leased"),
        activity("waits", task_queue="other", schedule_to_start_timeout=seconds(2)),
        activity("waits-longer", task_queue="other", schedule_to_start_timeout=seconds(20)),
        activity("runs", task_queue="other", schedule_to_close_timeout=seconds(5)),
        activity("no-limit", task_queue="other"),
        eager=EAGER,
    )
    run.take(8)
    assert activity_attempts.overdue(run.s, run.items, run.wait(1).now) == []
    overdue = activity_attempts.overdue(run.s, run.items, run.wait(5).now)
    assert [(item.activity_id, item.version) for item in overdue] == [("waits", 1), ("runs", 2)]


def test_retry_policy_of_the_activity_decides():
    policy = RetryPolicy(initial_interval=seconds(3), non_retryable_error_types=("Declined",))
    run, item = running(retry_policy=policy)
    assert activity_attempts.fail(item, 1, declined(), run.now).retry_state is RetryState.NON_RETRYABLE_FAILURE


def test_an_attempt_that_never_began_goes_back_uncounted():
    run, item = running(retry_policy=once(), heartbeat_timeout=seconds(3))
    back = activity_attempts.put_back(item, 1, "k2", run.now)
    assert (back.state, back.attempt, back.version) == (ItemState.SCHEDULED, 1, 2)
    assert (back.holder, back.worker_key, back.started_time) == (None, "", None)
    assert activity_attempts.put_back(back, 1, "k2", run.now) is back
    again = activity_attempts.start(
        run.s, run.s.activities[ID], back, attempt=1, identity="w", worker_key="k3", now=run.now
    )
    with pytest.raises(NotFound, match="another worker has it"):
        activity_attempts.put_back(again, 1, "k2", run.now)
    with pytest.raises(NotFound):
        activity_attempts.put_back(activity_attempts.complete(again, 1, payload(), run.now), 1, "k3", run.now)


def test_an_attempt_that_never_began_and_is_not_wanted_any_more_is_canceled():
    run, item = running()
    asked = activity_attempts.request_cancel(run.s, run.s.activities[ID], item, run.now)
    assert asked.state is ItemState.STARTED
    assert activity_attempts.put_back(asked, 1, "k2", run.now).state is ItemState.CANCELED
