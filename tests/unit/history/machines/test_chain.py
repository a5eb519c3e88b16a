"""Continue-as-new in the core: what carries over to the next run, and which messages pass on."""

from datetime import timedelta

import msgspec
import pytest
from stepwell.api import limits
from stepwell.api.callbacks import Callback
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import Priority, RetryPolicy, WorkflowExecution
from stepwell.api.enums import (
    CompletionOutcome,
    ContinueAsNewInitiator,
    WorkflowExecutionStatus,
    WorkflowTaskFailedCause,
)
from stepwell.api.events import WorkflowExecutionContinuedAsNew, WorkflowExecutionStarted, WorkflowTaskFailed
from stepwell.api.payloads import Payload

from stepwell_server.history.requests import CompleteWorkflowTask, NextRun
from stepwell_server.history.state import ParentLink
from stepwell_server.history.step import step
from stepwell_server.history.tasks import DispatchWorkflowTask, RecordVisibility
from tests.support.history_run import EAGER, T0, WORKER, Run, activity, done, leased, payload, seconds, timer

CALLBACKS = (Callback(url="https://hooks.example.com"),)
PRIORITY = Priority(priority_key=2, fairness_key="tenant", fairness_weight=2.0)
POLICY = RetryPolicy(maximum_attempts=4)
MEMO = {"customer": payload("1")[0]}
ATTRIBUTES = {"City": payload('"Ghent"')[0]}
HEADERS = {"trace": payload("7")[0]}


def again(**fields: object) -> ContinueAsNewWorkflowExecution:
    values: dict[str, object] = {"workflow_type": "fulfil", "task_queue": "orders", "input": payload("next")}
    return ContinueAsNewWorkflowExecution(**(values | fields))  # type: ignore[arg-type]


def first(run: Run) -> WorkflowExecutionStarted:
    attributes = run.events[0].attributes
    assert isinstance(attributes, WorkflowExecutionStarted)
    return attributes


def last(run: Run, run_id: str = "run-1") -> WorkflowExecutionContinuedAsNew:
    attributes = run.ended[run_id][-1].attributes
    assert isinstance(attributes, WorkflowExecutionContinuedAsNew)
    return attributes


def test_one_commit_closes_the_run_and_begins_the_next() -> None:
    run = Run(request_id="x")
    run.accept(timer(), activity())
    seq = run.s.seq
    run.signal()
    reply = run.accept(again())
    assert (reply.run_id, reply.fusible, reply.leases, reply.seq) == ("run-1", False, (), seq + 2)
    assert run.s.seq == seq + 2 and run.s.run_id == "run-2"
    assert [event.event_type for event in run.ended["run-1"]][-2:] == [
        "WorkflowTaskCompleted",
        "WorkflowExecutionContinuedAsNew",
    ]
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
    assert run.last is not None and run.last.closed is not None
    closed = run.last.closed.state
    assert (closed.status, closed.new_execution_run_id) == (WorkflowExecutionStatus.CONTINUED_AS_NEW, "run-2")
    assert (run.s.first_run_id, run.s.continued_execution_run_id) == ("run-1", "run-1")
    kinds = [(type(task), getattr(task, "run_id", "")) for task in run.last.tasks]
    assert kinds == [(RecordVisibility, "run-1"), (DispatchWorkflowTask, ""), (RecordVisibility, "run-2")]


FIXED = {
    "workflow_id": "order-1",
    "original_execution_run_id": "run-2",
    "first_execution_run_id": "run-1",
    "continued_execution_run_id": "run-1",
    "initiator": ContinueAsNewInitiator.WORKFLOW,
    "identity": "worker-1",
    "attempt": 1,
    "request_id": "",
    "continued_failure": None,
    "last_completion_result": (),
    "eager_execution_accepted": False,
    "principal": "",
}
"""Always so, whatever the run and the command say."""

CARRIED = {
    "workflow_execution_timeout": seconds(500),
    "workflow_run_timeout": seconds(400),
    "workflow_task_timeout": seconds(20),
    "workflow_execution_expiration_time": T0 + seconds(500),
    "retry_policy": POLICY,
    "memo": MEMO,
    "search_attributes": ATTRIBUTES,
    "parent_workflow_namespace": "default",
    "parent_workflow_execution": WorkflowExecution(workflow_id="parent", run_id="p-1"),
    "parent_initiated_event_id": 7,
    "parent_original_execution_run_id": "p-0",
    "root_workflow_execution": WorkflowExecution(workflow_id="root", run_id="r-1"),
    "cron_schedule": "",
    "priority": PRIORITY,
    "first_workflow_task_backoff": None,
    "completion_callbacks": CALLBACKS,
}
"""As in the run that closes, where the command says nothing."""

ASKED = {
    "workflow_type": "fulfil",
    "task_queue": "orders",
    "input": payload("next"),
    "headers": HEADERS,
}
"""From the command, each time."""

INSTEAD = {
    "workflow_run_timeout": seconds(40),
    "workflow_task_timeout": seconds(5),
    "retry_policy": RetryPolicy(),
    "memo": {},
    "search_attributes": {},
    "workflow_type": "other",
    "task_queue": "elsewhere",
    "input": (),
    "headers": {},
}
"""What a command may say."""


def chained() -> Run:
    run = Run(
        workflow_execution_timeout=seconds(500),
        workflow_run_timeout=seconds(400),
        workflow_task_timeout=seconds(20),
        memo=MEMO,
        search_attributes=ATTRIBUTES,
        request_id="x",
    )
    run.s.parent = ParentLink(
        namespace="default", workflow_id="parent", run_id="p-1", initiated_event_id=7, original_run_id="p-0"
    )
    run.s.root = WorkflowExecution(workflow_id="root", run_id="r-1")
    run.s.retry_policy = POLICY
    run.s.priority = PRIORITY
    run.s.callbacks = CALLBACKS
    return run.wait(30)


def continued(run: Run, command: ContinueAsNewWorkflowExecution) -> WorkflowExecutionStarted:
    request = CompleteWorkflowTask(
        token=run.begin(), nonce="n", worker=WORKER, commands=(command,), next_run=NextRun(run_id="run-2")
    )
    started = step(run.s, request, run.now).events[0].attributes
    assert isinstance(started, WorkflowExecutionStarted)
    return started


def test_what_carries_over_is_said_of_every_field() -> None:
    names = {field.name for field in msgspec.structs.fields(WorkflowExecutionStarted)}
    assert names == FIXED.keys() | CARRIED.keys() | ASKED.keys()
    started = continued(chained(), again(headers=HEADERS))
    assert {name: getattr(started, name) for name in names} == FIXED | CARRIED | ASKED
    started = continued(chained(), again(**INSTEAD))
    assert {name: getattr(started, name) for name in names} == FIXED | CARRIED | INSTEAD
    assert continued(chained(), again(backoff_start_interval=seconds(9))).first_workflow_task_backoff == seconds(9)


def test_versions_of_changed_code_are_for_the_next_runs_code_to_say() -> None:
    run = chained()
    run.s.search_attributes = ATTRIBUTES | {"StepwellChangeVersion": payload('["patched"]')[0]}
    assert continued(run, again()).search_attributes == ATTRIBUTES


def test_the_expiry_is_of_the_chain_and_the_run_timeout_of_each_run() -> None:
    run = Run(workflow_execution_timeout=seconds(500), workflow_run_timeout=seconds(400)).wait(300)
    run.accept(again())
    assert run.s.execution_expires == run.s.run_expires == T0 + seconds(500)
    run = Run(workflow_run_timeout=seconds(400)).wait(300)
    run.accept(again())
    assert run.s.run_expires == T0 + seconds(700) and run.s.execution_expires is None
    run.accept(again(workflow_run_timeout=seconds(50)))
    assert run.s.run_expires == T0 + seconds(350)


def test_a_run_of_an_earlier_release_keeps_its_timeouts() -> None:
    """0.1.0 kept only the times at which they end."""
    run = Run(workflow_execution_timeout=seconds(500), workflow_run_timeout=seconds(40))
    run.s.workflow_execution_timeout = run.s.workflow_run_timeout = None
    started = continued(run.wait(5), again())
    assert (started.workflow_execution_timeout, started.workflow_run_timeout) == (seconds(500), seconds(40))


def test_unseen_signals_are_the_next_runs_first_events() -> None:
    run = Run()
    token = run.begin()
    run.signal("one", request_id="s1")
    run.signal("two", request_id="s2")
    reply = run.complete(again(), token=token)
    assert reply.outcome is CompletionOutcome.ACCEPTED
    assert run.kinds == [
        "WorkflowExecutionStarted",
        "WorkflowExecutionSignaled",
        "WorkflowExecutionSignaled",
        "WorkflowTaskScheduled",
    ]
    assert run.s.signal_count == 2 and run.s.buffered == ()
    assert not run.signal("one", request_id="s1").changed, "its repeat finds it in the next run"
    assert [event.event_type for event in run.ended["run-1"]].count("WorkflowExecutionSignaled") == 0


def test_signals_that_were_seen_stay_with_their_run() -> None:
    run = Run()
    run.signal("seen")
    token = run.begin()
    run.signal("unseen")
    run.accept(again(), token=token)
    names = [getattr(event.attributes, "signal_name", "") for event in run.ended["run-1"]]
    assert "seen" in names and "unseen" not in names
    assert [getattr(event.attributes, "signal_name", "") for event in run.events] == ["", "unseen", ""]


def test_a_cancel_request_that_was_not_seen_refuses_it() -> None:
    run = Run()
    token = run.begin()
    run.signal("one")
    run.cancel()
    assert run.complete(again(), token=token).outcome is CompletionOutcome.UNSEEN_EVENTS
    assert run.s.run_id == "run-1" and len(run.s.buffered) == 2
    run.accept(again())
    assert run.s.run_id == "run-2" and not run.s.cancel_requested


def test_ends_of_activities_do_not_refuse_it_and_go_with_the_run() -> None:
    run = leased()
    run.signal()
    token = run.begin()
    run.outcomes(done(5))
    run.accept(again(), token=token)
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
    run = leased()
    run.signal()
    reply = run.accept(again(), token=run.begin(), outcomes=[done(5)])
    assert [outcome.error_code for outcome in reply.outcome_replies] == [""]


def test_in_a_fused_step() -> None:
    run = leased()
    run.fused([done(5)], again())
    assert run.s.run_id == "run-2"
    assert "ActivityTaskCompleted" in [event.event_type for event in run.ended["run-1"]]


def test_its_repeat_is_answered_and_makes_nothing() -> None:
    run = Run()
    token = run.begin()
    reply = run.accept(again(), token=token, nonce="once")
    repeated = run.accept(again(), token=token, nonce="once")
    assert run.last is not None and not run.last.changed
    assert (repeated.run_id, repeated.seq, repeated.started_event_id) == ("run-1", reply.seq, reply.started_event_id)
    assert run.complete(again(), token=token, nonce="other").outcome is CompletionOutcome.STALE


def test_a_chain_of_many() -> None:
    run = Run(request_id="x")
    for _ in range(20):
        run.accept(again())
    assert run.s.run_id == "run-21" and run.s.first_run_id == "run-1" and run.s.seq == 21
    reply = run.start("run-99", request_id="x").reply
    assert (reply.run_id, reply.first_run_id, reply.started) == ("run-1", "run-1", True)  # type: ignore[union-attr]
    assert run.s.history_size < 2_000


def test_the_signal_limit_is_of_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SIGNALS_PER_RUN", 3)
    run = Run()
    token = run.begin()
    for _ in range(2):
        run.signal()
    run.accept(again(), token=token)
    assert run.s.signal_count == 2
    run.signal()
    with pytest.raises(Exception, match="has had 3 signals"):
        run.signal()


def test_with_a_wait_the_first_task_comes_when_it_is_over() -> None:
    run = Run()
    run.accept(again(backoff_start_interval=seconds(90)))
    assert run.kinds == ["WorkflowExecutionStarted"] and run.s.workflow_task is None
    assert run.s.first_task_at == T0 + seconds(90) == run.s.armed
    run.signal()
    assert run.kinds[1:] == ["WorkflowExecutionSignaled"], "a signal does not end it"
    run.wait(30).fire()
    assert run.s.workflow_task is None
    run.wait(60).fire()
    assert run.kinds[1:] == ["WorkflowExecutionSignaled", "WorkflowTaskScheduled"] and run.s.first_task_at is None
    run.accept()


def test_a_wait_that_outlasts_the_chain_ends_with_it() -> None:
    run = Run(workflow_execution_timeout=seconds(50))
    run.accept(again(backoff_start_interval=seconds(90)))
    assert run.s.armed == T0 + seconds(50)
    run.wait(50).fire()
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowExecutionTimedOut"]


def test_a_cancel_request_ends_the_wait() -> None:
    run = Run()
    run.accept(again(backoff_start_interval=timedelta(days=1)))
    run.cancel()
    assert run.kinds[1:] == ["WorkflowExecutionCancelRequested", "WorkflowTaskScheduled"]


def test_what_is_left_open_is_as_in_this_run() -> None:
    run = Run()
    before = run.s.workflow_type, run.s.task_queue
    run.accept(again(workflow_type="", task_queue=""))
    assert run.s.run_id != "run-1" and (run.s.workflow_type, run.s.task_queue) == before


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"workflow_type": "t" * 1001}, "workflow_type of ContinueAsNewWorkflowExecution has 1001 bytes"),
        ({"task_queue": "q" * 1001}, "task_queue of ContinueAsNewWorkflowExecution has 1001 bytes"),
        ({"workflow_run_timeout": timedelta(0)}, "workflow_run_timeout is 0 s; it must be above zero"),
        ({"workflow_run_timeout": timedelta(days=3651)}, "at most 3650 days"),
        ({"workflow_task_timeout": seconds(-1)}, "workflow_task_timeout is -1 s"),
        ({"workflow_task_timeout": seconds(121)}, "workflow_task_timeout is 0:02:01; at most 0:02:00"),
        ({"backoff_start_interval": seconds(-1)}, "backoff_start_interval is -1 s"),
        ({"retry_policy": RetryPolicy(backoff_coefficient=0.5)}, "backoff_coefficient is 0.5"),
    ],
)
def test_bad_input_fails_the_task_by_name(fields: dict[str, object], says: str) -> None:
    run = Run()
    reply = run.complete(again(**fields))
    assert reply.outcome is CompletionOutcome.FAILED and says in reply.message
    failed = run.events[-1].attributes
    assert isinstance(failed, WorkflowTaskFailed)
    assert failed.cause is WorkflowTaskFailedCause.BAD_CONTINUE_AS_NEW_ATTRIBUTES
    assert run.s.run_id == "run-1" and run.s.close_time is None


@pytest.mark.parametrize("field", ["input", "headers", "memo", "search_attributes"])
def test_what_is_too_large_fails_the_task(field: str) -> None:
    large = Payload(metadata={}, data=b"x" * (limits.MAX_PAYLOAD_BYTES + 1))
    run = Run()
    reply = run.complete(again(**{field: (large,) if field == "input" else {"large": large}}))
    assert reply.outcome is CompletionOutcome.FAILED and str(limits.MAX_PAYLOAD_BYTES) in reply.message
    failed = run.events[-1].attributes
    assert isinstance(failed, WorkflowTaskFailed) and failed.cause is WorkflowTaskFailedCause.PAYLOADS_TOO_LARGE


def test_all_together_are_within_the_limit_of_one_transition() -> None:
    part = Payload(metadata={}, data=b"x" * (limits.MAX_PAYLOAD_BYTES - 100))
    run = Run()
    reply = run.complete(again(input=(part,), memo={"a": part}, headers={"a": part}))
    assert reply.outcome is CompletionOutcome.FAILED and str(limits.MAX_TRANSITION_BYTES) in reply.message


def test_nothing_is_leased_with_it() -> None:
    run = Run()
    assert run.accept(activity(), again(), eager=EAGER).leases == ()
    assert run.s.run_id == "run-2" and run.s.activities == {}
