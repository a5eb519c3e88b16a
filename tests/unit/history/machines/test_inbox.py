"""Numbered at once or buffered; a buffer over its limits fails the outstanding task."""

import msgspec
from stepwell.api import limits
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.requests import EagerActivities

from tests.support.history_run import Run, activity, done, payload, seconds


def test_numbered_at_once_when_nothing_is_outstanding():
    run = Run()
    run.accept()
    run.signal()
    assert run.tail(2) == ["WorkflowExecutionSignaled", "WorkflowTaskScheduled"]
    assert run.s.buffered == () and run.s.numbered_seq == run.s.seq


def test_buffered_without_a_number():
    run = Run()
    run.signal()
    assert run.last.events == () and len(run.s.buffered) == 1 and run.s.numbered_seq == 1
    assert run.s.buffered[0].index == 1 and run.s.next_buffer_index == 2


def test_the_clock_of_the_buffer_does_not_run_backwards():
    run = Run()
    run.wait(5).signal()
    run.now -= seconds(3)
    run.signal()
    first, second = run.s.buffered
    assert second.time == first.time


def test_over_the_count_the_outstanding_task_fails():
    run = Run()
    token = run.begin()
    for _ in range(limits.MAX_BUFFERED_EVENTS):
        run.signal()
    assert len(run.s.buffered) == limits.MAX_BUFFERED_EVENTS
    run.signal()
    assert run.s.buffered == ()
    assert run.kinds[2:5] == ["WorkflowTaskStarted", "WorkflowTaskFailed", "WorkflowExecutionSignaled"]
    assert run.events[3].attributes.cause is WorkflowTaskFailedCause.FORCE_CLOSE_COMMAND
    assert run.kinds[-1] == "WorkflowTaskScheduled" and run.s.workflow_task.attempt == 1
    assert run.complete(token=token).outcome is CompletionOutcome.STALE
    run.accept()


def test_over_the_bytes_the_outstanding_task_fails():
    run = Run()
    for _ in range(3):
        run.signal(input=payload("x" * (limits.MAX_BUFFERED_BYTES // 3)))
    assert run.s.buffered == () and "WorkflowTaskFailed" in run.kinds


def test_one_large_event_alone_is_buffered():
    run = Run()
    run.signal(input=payload("x" * (limits.MAX_BUFFERED_BYTES - 10)))
    assert len(run.s.buffered) == 1


def test_a_transient_task_that_is_failed_keeps_its_failure_for_describe():
    run = Run()
    run.fail_task()
    for _ in range(limits.MAX_BUFFERED_EVENTS + 1):
        run.signal()
    task = run.s.workflow_task
    assert task.attempt == 1 and task.last_failure.message == "bug"
    assert task.last_cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    assert run.kinds[4:7] == ["WorkflowTaskScheduled", "WorkflowTaskStarted", "WorkflowTaskFailed"]


def test_ends_of_leased_activities_are_bounded_by_those_that_are_pending():
    """A wide fan-out does not lose its task, and so its worker's cache, whenever a hundred end together."""
    run = Run()
    run.accept(*(activity(str(number)) for number in range(300)), eager=EagerActivities(task_queue="orders", slots=300))
    run.signal()
    token = run.begin()
    run.outcomes(*(done(5 + number) for number in range(300)))
    assert len(run.s.buffered) == 300 and "WorkflowTaskFailed" not in run.kinds
    for _ in range(limits.MAX_BUFFERED_EVENTS):
        run.signal()
    assert run.complete(token=token).outcome is CompletionOutcome.ACCEPTED
    assert run.kinds.count("ActivityTaskCompleted") == 300


def test_ends_of_leased_activities_count_by_their_bytes():
    run = Run()
    run.accept(*(activity(str(number)) for number in range(3)), eager=EagerActivities(task_queue="orders", slots=3))
    run.signal()
    large = payload("x" * (limits.MAX_BUFFERED_BYTES // 3))
    run.outcomes(*(msgspec.structs.replace(done(5 + number), result=large) for number in range(3)))
    assert "WorkflowTaskFailed" in run.kinds
