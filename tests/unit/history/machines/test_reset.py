"""Reset in the core: prefixes are made and the switch is one transition (LC-13 to LC-17)."""

from datetime import timedelta

import pytest
from stepwell.api import limits
from stepwell.api.commands import RequestCancelActivityTask
from stepwell.api.enums import ResetReapplyExcludeType, WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import WorkflowExecutionSignaled, WorkflowTaskStarted

from stepwell_server.history.commit import BEGINNING
from stepwell_server.history.machines import reset as machine
from stepwell_server.history.machines.reset import Prefix
from stepwell_server.history.tasks import CancelActivity, DispatchActivityTask, DispatchWorkflowTask, RecordVisibility
from stepwell_server.history.transition import ResetReply
from tests.support.history_run import Run, activity, seconds, timer
from tests.support.resets import reset

SIGNAL = ResetReapplyExcludeType.SIGNAL


def with_signals(*names: str) -> Run:
    run = Run()
    run.accept()
    for name in names:
        run.signal(name)
    return run


def test_one_transition_ends_the_open_run_and_begins_the_next() -> None:
    run = with_signals("a")
    run.begin()
    run.signal("in the buffer")
    seq = run.s.seq
    transition = reset(run, 3)
    assert transition.reply == ResetReply(run_id="run-2")
    assert (run.s.seq, run.s.first_seq, run.s.numbered_seq) == (seq + 1,) * 3
    assert [event.event_type for event in run.ended["run-1"]][-2:] == [
        "WorkflowExecutionSignaled",
        "WorkflowExecutionTerminated",
    ]
    closed = transition.closed
    assert closed is not None and closed.state.new_execution_run_id == "run-2"
    assert run.kinds[2:] == [
        "WorkflowTaskStarted",
        "WorkflowTaskFailed",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ]
    assert (run.s.run_id, run.s.first_run_id, run.s.original_run_id) == ("run-2", "run-1", "run-1")
    assert run.s.signal_count == 2 and run.s.workflow_task is not None and run.s.workflow_task.attempt == 1
    kinds = [(type(task), getattr(task, "run_id", "")) for task in transition.tasks]
    assert kinds == [
        (RecordVisibility, "run-1"),
        (DispatchWorkflowTask, ""),
        (RecordVisibility, "run-2"),
    ]
    run.accept()


def test_behind_a_closed_run_it_is_the_new_run_alone() -> None:
    run = Run()
    run.accept()
    run.terminate()
    transition = reset(run, 3)
    assert transition.closed is None and run.s.status is WorkflowExecutionStatus.RUNNING
    assert run.s.close_time is None
    run.accept()


def test_a_repeat_changes_nothing_also_when_the_run_it_made_is_closed() -> None:
    run = with_signals()
    reset(run, 3, request_id="once")
    run.terminate()
    transition = reset(run, 3, "run-3", request_id="once")
    assert not transition.changed and transition.reply == ResetReply(run_id="run-2")


def test_timeouts_count_from_the_reset_and_timers_from_their_start() -> None:
    run = Run(workflow_execution_timeout=seconds(1_000), workflow_run_timeout=seconds(500))
    run.accept(activity(schedule_to_start_timeout=seconds(60)), timer("1", 90))
    run.signal()
    run.accept()
    started = run.s.timers["1"].fire_time - seconds(90)
    run.wait(400)
    transition = reset(run, 9)
    state = run.s
    assert state.start_time == run.now
    assert state.run_expires == run.now + seconds(500)
    assert state.execution_expires == run.now + seconds(1_000)
    assert state.activities[5].scheduled_time == run.now
    assert state.timers["1"].fire_time == started + seconds(90)
    assert transition.deadline is not None and transition.deadline <= run.now + seconds(60)
    run.begin()
    assert "TimerFired" in [event.event_type for event in run.shown]


def test_activities_pending_at_the_point_are_dispatched_anew_and_cancelled_ones_cancelled() -> None:
    run = Run()
    run.accept(activity("1"), activity("2"))
    run.signal()
    run.accept(RequestCancelActivityTask(scheduled_event_id=5))
    run.signal()
    run.accept()
    transition = reset(run, 13)
    assert [task for task in transition.tasks if isinstance(task, CancelActivity | DispatchActivityTask)] == [
        CancelActivity(scheduled_event_id=5, activity_id="1", task_queue="orders", run_id="run-2"),
        DispatchActivityTask(scheduled_event_id=6, task_queue="orders"),
    ]
    assert run.s.activities[5].scheduled_seq == run.s.activities[6].scheduled_seq == BEGINNING + 1
    run.take(6)
    run.finish(6)
    run.begin()
    assert "ActivityTaskCompleted" in [event.event_type for event in run.shown]


def test_what_comes_in_late_is_recorded_in_the_switch_unless_excluded() -> None:
    late = WorkflowExecutionSignaled(signal_name="late")
    run = with_signals("a")
    reset(run, 3, late=[late])
    assert run.tail(3) == ["WorkflowExecutionSignaled", "WorkflowExecutionSignaled", "WorkflowTaskScheduled"]
    run = with_signals("a")
    reset(run, 3, late=[late], excluded=[SIGNAL])
    assert run.tail(2) == ["WorkflowTaskFailed", "WorkflowTaskScheduled"]


@pytest.mark.parametrize("where", ["prefix", "late"])
def test_more_signals_than_one_run_takes_are_refused(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    run = with_signals("a", "b", "c")
    monkeypatch.setattr(limits, "MAX_SIGNALS_PER_RUN", 2 if where == "prefix" else 3)
    late = [WorkflowExecutionSignaled(signal_name="late")] if where == "late" else []
    with pytest.raises(InvalidArgument, match="Exclude signals") as refused:
        reset(run, 3, late=late)
    assert refused.value.details["field"] == "reset_reapply_exclude_types"
    assert run.s.run_id == "run-1" and run.s.close_time is None


def test_a_reset_of_a_reset() -> None:
    run = with_signals("a")
    reset(run, 3)
    run.accept()
    point = run.s.next_event_id - 2
    assert isinstance(run.events[point - 1].attributes, WorkflowTaskStarted)
    reset(run, point, "run-3")
    assert run.kinds.count("WorkflowTaskFailed") == 2 and run.kinds.count("WorkflowExecutionSignaled") == 1
    assert (run.s.first_run_id, run.s.original_run_id) == ("run-1", "run-1")
    run.accept()


def test_the_clock_may_have_gone_back_since_the_prefix_was_made() -> None:
    run = with_signals("a")
    run.now += timedelta(hours=1)
    run.signal("b")
    run.now -= timedelta(hours=1)
    reset(run, 3)
    times = [event.event_time for event in run.events]
    assert times == sorted(times)
    run.accept()


def test_parts_are_cut_by_events_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    run = with_signals("a")
    run.accept(timer())
    assert len(run.events) == 9
    monkeypatch.setattr(machine, "PART_EVENTS", 4)
    made = Prefix("default", "run-2", ())
    for event in run.events:
        made.add(event)
    parts = made.take_parts()
    assert [(seq - BEGINNING, len(events)) for seq, events in parts] == [(1, 4), (2, 4)]
    assert made.take_parts() == []
    assert [(seq - BEGINNING, len(events)) for seq, events in made.take_parts(last=True)] == [(3, 1)]
    assert made.take_parts(last=True) == []
    assert made.state.prefix_tail_seq == BEGINNING + 3  # of event 9, behind the last completed task
    monkeypatch.setattr(machine, "PART_BYTES", 10)
    made = Prefix("default", "run-2", ())
    for event in run.events:
        made.add(event)
    assert [len(events) for _, events in made.take_parts()] == [1] * len(run.events)


def test_a_prefix_begins_with_a_start_and_ends_in_a_workflow_task() -> None:
    run = Run()
    made = Prefix("default", "run-2", ())
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        made.add(run.events[1])
    with pytest.raises(ValueError, match="begins with WorkflowExecutionStarted"):
        assert made.state
    made.add(run.events[0])
    with pytest.raises(ValueError, match="no workflow task is open"):
        made.fail_task("", "", run.now)


def test_a_task_that_was_never_started_gets_a_start() -> None:
    """A workflow task that timed out before a worker took it."""
    run = Run()
    made = Prefix("default", "run-2", ())
    for event in run.events:
        made.add(event)
    made.fail_task("", "", run.now)
    ((_, events),) = made.take_parts(last=True)
    assert [event.event_type for event in events][2:] == ["WorkflowTaskStarted", "WorkflowTaskFailed"]
