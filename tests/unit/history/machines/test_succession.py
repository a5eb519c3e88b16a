"""The next run of a workflow id in the commit that closes the one before: what passes on, and what does not."""

from dataclasses import dataclass

import msgspec
import pytest
from stepwell.api import commands as c
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus
from stepwell.api.events import (
    EventAttributes,
    WorkflowExecutionCompleted,
    WorkflowExecutionStarted,
    WorkflowExecutionTerminated,
    WorkflowExecutionTimedOut,
)

from stepwell_server.history import request_ids
from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.builder import TransitionBuilder
from stepwell_server.history.machines import closing, inbox, succession
from stepwell_server.history.requests import CompleteWorkflowTask
from stepwell_server.history.state import BufferedEvent, CompletionMark, ExecutionState
from stepwell_server.history.step import step
from stepwell_server.history.tasks import DispatchWorkflowTask, RecordVisibility
from stepwell_server.history.transition import CompletionReply, Transition
from tests.support.history_run import T0, WORKER, Run, activity, done, leased, seconds


def next_started(state: ExecutionState, **fields: object) -> WorkflowExecutionStarted:
    values: dict[str, object] = {
        "workflow_type": state.workflow_type,
        "task_queue": state.task_queue,
        "workflow_task_timeout": state.workflow_task_timeout,
        "original_execution_run_id": "to be set",
        "first_execution_run_id": state.first_run_id,
        "workflow_id": state.workflow_id,
    }
    return WorkflowExecutionStarted(**(values | fields))  # type: ignore[arg-type]


@dataclass
class Both:
    transition: Transition
    closed: ExecutionState

    @property
    def opened(self) -> ExecutionState:
        return self.transition.state


def succeed(
    run: Run,
    ending: EventAttributes | None = None,
    carried: tuple[BufferedEvent, ...] = (),
    *,
    mark: CompletionMark | None = None,
    later: float = 1,
    first_task: bool = True,
    **fields: object,
) -> Both:
    draft = TransitionBuilder(run.s, max(run.now + seconds(later), run.s.last_event_time))
    if mark is not None:
        draft.state.completion = mark
    ending = ending or WorkflowExecutionTerminated(reason="over")
    closed = succession.succeed(draft, ending, next_started(run.s, **fields), "run-2", carried)
    if first_task:
        succession.first_task(draft)
    return Both(draft.finish(), closed)


def test_one_transition_of_two_runs() -> None:
    run = Run(request_id="x")
    run.accept(activity())
    run.signal(request_id="s")
    seq = run.s.seq
    run.accept(c.StartTimer(timer_id="1", start_to_fire_timeout=seconds(5)))
    both = succeed(run)
    transition, closed, opened = both.transition, both.closed, both.opened
    assert transition.closed is not None and transition.closed.state is closed
    assert (closed.seq, closed.numbered_seq, closed.status) == (seq + 2, seq + 2, WorkflowExecutionStatus.TERMINATED)
    assert (opened.seq, opened.first_seq, opened.numbered_seq) == (seq + 2,) * 3
    assert (opened.run_id, opened.first_run_id, opened.status) == ("run-2", "run-1", WorkflowExecutionStatus.RUNNING)
    assert [event.event_id for event in transition.events] == [1, 2]
    assert durable_part(rebuild(transition.events, "default")) == durable_part(opened)
    history = [*run.events, *transition.closed.events]
    assert durable_part(rebuild(history, "default")) == durable_part(closed)
    assert opened.activities == {} and opened.timers == {} and closed.timers == {}
    assert run.s.run_id == "run-1" and run.s.timers, "the state that it was given is not changed"


def test_tasks_name_their_runs_and_queues_are_rebuilt_for_the_next() -> None:
    run = Run()
    run.accept(activity())
    both = succeed(run)
    kinds = [(type(task), getattr(task, "run_id", "")) for task in both.transition.tasks]
    assert kinds == [(RecordVisibility, "run-1"), (DispatchWorkflowTask, ""), (RecordVisibility, "run-2")]
    assert both.transition.owes is True


def test_nothing_is_armed_at_first() -> None:
    run = Run(workflow_run_timeout=seconds(20))
    armed = run.s.armed
    both = succeed(run)
    assert both.closed.armed == armed
    assert both.transition.arm == both.transition.deadline == both.opened.armed == T0 + seconds(31)


def test_without_a_first_task_something_is_armed_all_the_same() -> None:
    both = succeed(Run(), first_task=False, workflow_run_timeout=seconds(5))
    assert both.opened.workflow_task is None and both.transition.owes is False
    assert both.transition.arm == both.opened.run_expires == T0 + seconds(6)


def test_the_chain_keeps_its_expiry_and_another_chain_does_not() -> None:
    run = Run(workflow_execution_timeout=seconds(50))
    opened = succeed(run, later=30, workflow_run_timeout=seconds(40)).opened
    assert opened.execution_expires == opened.run_expires == T0 + seconds(50)
    later = T0 + seconds(500)
    assert succeed(run, workflow_execution_expiration_time=later).opened.execution_expires == T0 + seconds(50)
    other = succeed(run, first_execution_run_id="run-2", workflow_execution_expiration_time=later).opened
    assert (other.execution_expires, other.first_run_id) == (later, "run-2")


def test_the_next_run_does_not_begin_before_the_last_event() -> None:
    run = Run()
    draft = TransitionBuilder(run.s, T0)
    draft.record(WorkflowExecutionTimedOut(), T0 + seconds(0.5))
    draft.succeed(next_started(run.s, original_execution_run_id="run-2"))
    assert draft.state.start_time == draft.state.last_event_time == T0 + seconds(0.5)


def test_request_ids_pass_on() -> None:
    run = Run(request_id="x")
    run.signal(request_id="s")
    opened = succeed(run, WorkflowExecutionTimedOut(), tuple(run.s.buffered)).opened
    assert request_ids.is_known(opened, request_ids.SIGNAL, "s")
    assert request_ids.started(opened, "x").run_id == "run-1"


def test_messages_that_were_not_seen_are_the_first_events_of_the_next_run() -> None:
    run = Run()
    run.begin()
    run.signal("one")
    run.signal("two")
    both = succeed(run, WorkflowExecutionTimedOut(), tuple(run.s.buffered))
    names = [event.event_type for event in both.transition.events]
    assert names == [
        "WorkflowExecutionStarted",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ]
    assert [event.attributes.signal_name for event in both.transition.events[1:3]] == ["one", "two"]  # type: ignore[union-attr]
    assert (both.opened.signal_count, both.closed.signal_count) == (2, 0)
    assert both.opened.buffered == both.closed.buffered == ()
    assert all(event.event_time >= both.opened.start_time for event in both.transition.events)


def test_flushed_messages_stay_with_the_run_that_closes() -> None:
    run = Run()
    run.signal("one")
    draft = TransitionBuilder(run.s, run.now)
    inbox.flush(draft)
    succession.succeed(draft, WorkflowExecutionTimedOut(), next_started(run.s), "run-2")
    succession.first_task(draft)
    transition = draft.finish()
    assert transition.closed is not None and transition.closed.state.signal_count == 1
    assert transition.state.signal_count == 0


def test_what_was_promised_to_the_run_does_not_vanish() -> None:
    run = Run()
    run.cancel()
    with pytest.raises(ValueError, match="has not seen WorkflowExecutionCancelRequested"):
        succeed(run)
    run = Run()
    run.signal("one")
    with pytest.raises(ValueError, match="has not seen WorkflowExecutionSignaled"):
        succeed(run)


def test_ends_of_activities_go_with_their_run() -> None:
    run = leased()
    run.signal()
    run.outcomes(done(5))
    assert [type(entry.attributes).__name__ for entry in run.s.buffered] == ["ActivityTaskCompleted"]
    both = succeed(run)
    assert both.closed.buffered == () and both.opened.buffered == ()


def test_an_open_run_is_not_followed_and_a_commit_has_two_runs_at_most() -> None:
    run = Run()
    draft = TransitionBuilder(run.s, run.now)
    with pytest.raises(ValueError, match="is open"):
        draft.succeed(next_started(run.s))
    closing.close(draft, WorkflowExecutionTimedOut())
    draft.succeed(next_started(run.s, original_execution_run_id="run-2"))
    closing.close(draft, WorkflowExecutionTimedOut())
    with pytest.raises(ValueError, match="follows another in this commit"):
        draft.succeed(next_started(run.s, original_execution_run_id="run-3"))


def test_the_repeat_of_the_completion_that_closed_its_run_is_answered() -> None:
    run = Run()
    token = run.begin()
    mark = CompletionMark(nonce="one", seq=run.s.seq + 1, started_event_id=3)
    both = succeed(run, WorkflowExecutionCompleted(workflow_task_completed_event_id=4), mark=mark)
    repeat = CompleteWorkflowTask(token=token, nonce="one", worker=WORKER, commands=())
    again = step(both.opened, repeat, both.opened.last_event_time)
    assert not again.changed and isinstance(again.reply, CompletionReply)
    assert (again.reply.outcome, again.reply.run_id, again.reply.seq, again.reply.started_event_id) == (
        CompletionOutcome.ACCEPTED,
        "run-1",
        mark.seq,
        3,
    )
    assert not again.reply.leases and not again.reply.fusible
    for other in (
        msgspec.structs.replace(repeat, nonce="two"),
        msgspec.structs.replace(repeat, token=msgspec.structs.replace(token, run_id="run-2")),
    ):
        reply = step(both.opened, other, both.opened.last_event_time).reply
        assert isinstance(reply, CompletionReply) and reply.outcome is not CompletionOutcome.ACCEPTED


def test_the_mark_of_an_earlier_completion_stays_behind() -> None:
    run = Run()
    run.accept(activity())
    assert run.s.completion is not None
    assert succeed(run).opened.completion is None
