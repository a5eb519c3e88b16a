"""Scheduling activities: checked, filled in, leased or queued."""

import math

import msgspec
import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import WorkflowTaskFailedCause as Cause
from stepwell.api.payloads import Payload
from stepwell.api.requests import EagerActivities

from stepwell_server.history.tasks import CancelActivity, DispatchActivityTask
from tests.support.history_run import EAGER, T0, Run, activity, seconds

LARGE = (Payload(data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1)),)


def refused(run, *commands):
    reply = run.complete(*commands)
    return run.events[-1].attributes.cause, reply.message


def test_what_is_recorded():
    run = Run(workflow_run_timeout=seconds(60))
    run.accept(activity(headers={"h": Payload(data=b"1")}, retry_policy=RetryPolicy(maximum_attempts=3)))
    scheduled = run.events[-1].attributes
    assert scheduled.schedule_to_close_timeout == seconds(60) == scheduled.schedule_to_start_timeout
    assert scheduled.start_to_close_timeout == seconds(10) and scheduled.workflow_task_completed_event_id == 4
    assert scheduled.retry_policy.maximum_attempts == 3 and scheduled.headers
    pending = run.s.activities[5]
    assert (pending.scheduled_seq, pending.scheduled_time, pending.dispatches) == (2, T0, 1)
    assert run.s.activity_ids == {"1": 5}


def test_leased_or_queued():
    run = Run()
    reply = run.accept(
        activity("other-queue", task_queue="other"),
        activity("not-asked", request_eager_execution=False),
        activity("heartbeats", heartbeat_timeout=seconds(1)),
        activity("a"),
        activity("b"),
        activity("no-slot-left"),
        eager=EagerActivities(task_queue="orders", slots=2),
    )
    assert [(lease.activity_id, lease.scheduled_event_id) for lease in reply.leases] == [("a", 8), ("b", 9)]
    assert [task.scheduled_event_id for task in run.last.tasks] == [5, 6, 7, 10]
    lease = run.s.activities[8].lease
    assert (lease.identity, lease.worker_key, lease.started_time) == ("worker-1", "k1", T0)
    assert run.s.activities[8].next_dispatch is None
    assert run.last.deadline == T0 + seconds(10)


def test_queued_without_slots():
    run = Run()
    assert run.accept(activity()).leases == ()
    assert run.last.tasks == (DispatchActivityTask(scheduled_event_id=5, task_queue="orders"),)


@pytest.mark.parametrize(
    ("command", "cause", "message"),
    [
        (activity(""), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "activity_id has 0 bytes"),
        (activity("é" * 501), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "activity_id has 1002 bytes"),
        (activity(activity_type=""), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "activity_type"),
        (activity(task_queue=""), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "task_queue"),
        (activity(start_to_close_timeout=None), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "neither"),
        (activity(start_to_close_timeout=-seconds(1)), Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES, "above zero"),
        (activity(input=LARGE), Cause.PAYLOADS_TOO_LARGE, "the input of the activity has 2097153 bytes"),
        (activity(headers={"h": LARGE[0]}), Cause.PAYLOADS_TOO_LARGE, "the headers of the activity"),
    ],
)
def test_bad(command, cause, message):
    named, said = refused(Run(), command)
    assert named is cause and message in said


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (RetryPolicy(initial_interval=seconds(0)), "initial_interval"),
        (RetryPolicy(initial_interval=-seconds(1)), "initial_interval"),
        (RetryPolicy(backoff_coefficient=0.9), "backoff_coefficient is 0.9"),
        (RetryPolicy(backoff_coefficient=math.inf), "backoff_coefficient"),
        (RetryPolicy(backoff_coefficient=math.nan), "backoff_coefficient"),
        (RetryPolicy(maximum_interval=seconds(0.5)), "maximum_interval"),
        (RetryPolicy(maximum_attempts=-1), "maximum_attempts"),
    ],
)
def test_bad_retry_policy(policy, message):
    named, said = refused(Run(), activity(retry_policy=policy))
    assert named is Cause.BAD_SCHEDULE_ACTIVITY_ATTRIBUTES and message in said


def test_ids_of_ended_activities_are_free():
    run = Run()
    named, said = refused(run, activity("1"), activity("1"))
    assert named is Cause.SCHEDULE_ACTIVITY_DUPLICATE_ID and "'1'" in said
    run.accept(activity("1"))
    run.take(run.s.activity_ids["1"])
    run.finish(run.s.activity_ids["1"])
    run.wake_up()
    run.accept(activity("1"))


def test_limit_is_met_exactly():
    run = Run()
    run.accept(*(activity(str(number)) for number in range(limits.MAX_PENDING_ACTIVITIES)))
    assert len(run.s.activities) == limits.MAX_PENDING_ACTIVITIES
    run.signal()
    assert refused(run, activity("more"))[0] is Cause.PENDING_ACTIVITIES_LIMIT_EXCEEDED


def test_cancel_is_asked_once_while_pending():
    run = Run()
    ask = c.RequestCancelActivityTask(scheduled_event_id=5)
    run.accept(activity("1"), ask)
    assert run.s.activities[5].cancel_requested_event_id == 6
    told = CancelActivity(scheduled_event_id=5, activity_id="1", task_queue="orders", run_id="run-1")
    assert told in run.last.tasks
    run.signal()
    assert "already" in refused(run, ask)[1]
    run = Run()
    named, said = refused(run, ask)
    assert named is Cause.BAD_REQUEST_CANCEL_ACTIVITY_ATTRIBUTES and "is not pending" in said
    run = Run()
    run.accept(activity("1"), eager=EAGER)
    run.signal()
    run.accept(ask)
    assert run.last.tasks == (msgspec.structs.replace(told, leased_to="k1"),), "for the worker that holds the lease"
