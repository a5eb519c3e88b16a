"""LC-01 to LC-03: a start is idempotent, and two runs of one id are never open."""

import pytest
from stepwell.api import commands as c
from stepwell.api import limits
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import InvalidArgument, WorkflowExecutionAlreadyStarted
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload

from stepwell_server.history.tasks import DispatchWorkflowTask, RecordVisibility
from tests.support.history_run import T0, Run, payload, seconds

Reuse, Conflict = WorkflowIDReusePolicy, WorkflowIDConflictPolicy


def close(run, status):
    match status:
        case WorkflowExecutionStatus.COMPLETED:
            run.accept(c.CompleteWorkflowExecution(result=payload()))
        case WorkflowExecutionStatus.FAILED:
            run.accept(c.FailWorkflowExecution(failure=Failure(message="no")))
        case WorkflowExecutionStatus.CANCELED:
            run.accept(c.CancelWorkflowExecution())
        case WorkflowExecutionStatus.TERMINATED:
            run.terminate()
        case WorkflowExecutionStatus.TIMED_OUT:
            run.wait(100).fire()
    assert run.s.status is status


def test_a_new_run():
    run = Run(input=payload(), memo={"k": payload()[0]}, request_id="x", identity="me")
    started = run.events[0].attributes
    assert run.kinds == ["WorkflowExecutionStarted", "WorkflowTaskScheduled"]
    assert (started.original_execution_run_id, started.first_execution_run_id) == ("run-1", "run-1")
    assert started.input == payload() and started.workflow_task_timeout == limits.DEFAULT_WORKFLOW_TASK_TIMEOUT
    assert [type(task) for task in run.last.tasks] == [DispatchWorkflowTask, RecordVisibility]
    assert (run.s.seq, run.s.first_seq, run.last.owes) == (1, 1, True)
    assert run.last.reply.started and run.last.arm == T0 + seconds(30)


def test_timeouts():
    run = Run(
        workflow_execution_timeout=seconds(50),
        workflow_run_timeout=seconds(100),
        workflow_task_timeout=seconds(1000),
    )
    started = run.events[0].attributes
    assert started.workflow_run_timeout == seconds(50)
    assert started.workflow_execution_expiration_time == T0 + seconds(50) == run.s.run_expires
    assert started.workflow_task_timeout == limits.MAX_WORKFLOW_TASK_TIMEOUT
    run = Run(workflow_run_timeout=seconds(20))
    assert run.s.run_expires == T0 + seconds(20) and run.s.execution_expires is None
    run = Run(workflow_run_timeout=seconds(20), workflow_execution_timeout=seconds(60))
    assert run.s.run_expires == T0 + seconds(20)
    assert Run(workflow_execution_timeout=seconds(60)).s.run_expires == T0 + seconds(60)


def test_a_repeat_gets_the_run_it_made():
    run = Run(request_id="x")
    assert run.start("run-2", request_id="x").reply.run_id == "run-1"
    assert not run.last.changed and run.last.reply.started
    close(run, WorkflowExecutionStatus.COMPLETED)
    assert run.start("run-2", request_id="x").reply.run_id == "run-1" and not run.last.changed
    run.start("run-2", request_id="y")
    assert run.s.run_id == "run-2"
    reply = run.start("run-3", request_id="x").reply
    assert (reply.run_id, reply.first_run_id, reply.started) == ("run-1", "run-1", True)


def test_the_next_run_goes_on_in_the_log():
    run = Run()
    run.signal(request_id="s")
    run.accept()
    close(run, WorkflowExecutionStatus.TERMINATED)
    seq, armed = run.s.seq, run.s.armed
    run.start("run-2")
    assert (run.s.seq, run.s.first_seq, run.s.next_event_id) == (seq + 1, seq + 1, 3)
    assert run.s.armed == armed and run.last.owes is True
    assert not run.signal(request_id="s").changed


ENDS = set(WorkflowExecutionStatus) - {
    WorkflowExecutionStatus.RUNNING,
    WorkflowExecutionStatus.PAUSED,
    WorkflowExecutionStatus.CONTINUED_AS_NEW,
}
"""Of the newest run of an id."""


@pytest.mark.parametrize("status", sorted(ENDS))
def test_reuse_of_a_closed_id(status):
    for policy in Reuse:
        run = Run(workflow_run_timeout=seconds(60))
        close(run, status)
        allowed = policy is Reuse.ALLOW_DUPLICATE or (
            policy is Reuse.ALLOW_DUPLICATE_FAILED_ONLY and status is not WorkflowExecutionStatus.COMPLETED
        )
        if allowed:
            assert run.start("run-2", workflow_id_reuse_policy=policy).reply.started
        else:
            with pytest.raises(WorkflowExecutionAlreadyStarted, match=policy.value) as refused:
                run.start("run-2", workflow_id_reuse_policy=policy)
            assert refused.value.details == {"run_id": "run-1"}


def test_conflict_with_an_open_run():
    run = Run(request_id="x")
    with pytest.raises(WorkflowExecutionAlreadyStarted, match="is running as run run-1"):
        run.start("run-2", request_id="y")
    reply = run.start("run-2", request_id="y", workflow_id_conflict_policy=Conflict.USE_EXISTING).reply
    assert (reply.run_id, reply.started) == ("run-1", False) and not run.last.changed


def test_terminate_existing_closes_and_opens_in_one_transition():
    run = Run(request_id="x", workflow_execution_timeout=seconds(500))
    run.signal(request_id="s")
    fields = {"workflow_id_conflict_policy": Conflict.TERMINATE_EXISTING, "request_id": "y"}
    done = run.start("run-2", **fields)
    closed = done.closed
    assert closed.run_id == "run-1" and closed.state.status is WorkflowExecutionStatus.TERMINATED
    assert [event.event_type for event in closed.events][-2:] == [
        "WorkflowExecutionSignaled",
        "WorkflowExecutionTerminated",
    ]
    assert "run-2" in closed.events[-1].attributes.reason
    assert done.reply.started and (run.s.run_id, run.s.first_run_id, run.kinds) == (
        "run-2",
        "run-2",
        ["WorkflowExecutionStarted", "WorkflowTaskScheduled"],
    )
    assert (run.s.seq, run.s.first_seq, closed.state.seq, closed.state.numbered_seq) == (3, 3, 3, 3)
    assert run.s.execution_expires is None, "the timeout of another chain"
    assert [(type(task), getattr(task, "run_id", "")) for task in done.tasks] == [
        (RecordVisibility, "run-1"),
        (DispatchWorkflowTask, ""),
        (RecordVisibility, "run-2"),
    ]
    assert done.owes is True and done.arm == run.s.armed == T0 + seconds(30)
    for request_id, run_id in (("y", "run-2"), ("x", "run-1")):
        assert run.start("run-3", **(fields | {"request_id": request_id})).reply.run_id == run_id
        assert not run.last.changed
    assert not run.signal(request_id="s").changed


def test_terminate_existing_cannot_go_with_reject_duplicate():
    with pytest.raises(InvalidArgument, match="TERMINATE_EXISTING cannot go with"):
        Run().start(
            "run-2",
            workflow_id_conflict_policy=Conflict.TERMINATE_EXISTING,
            workflow_id_reuse_policy=Reuse.REJECT_DUPLICATE,
        )


@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"search_attributes": {"a": Payload(data=b"x" * 2_049)}}, "search_attributes", "'a' has 2049 bytes; at most"),
        ({"search_attributes": {f"n{n}": Payload() for n in range(101)}}, "search_attributes", "101 search attributes"),
        ({"search_attributes": {"x" * 1_001: Payload()}}, "search_attributes", "has 1001 bytes; use one of 1 to 1000"),
        (
            {"search_attributes": {f"n{n}": Payload(data=b"x" * 2_048) for n in range(20)}},
            "search_attributes",
            "would have 41010 bytes; at most 40960",
        ),
        ({"retry_policy": RetryPolicy(non_retryable_error_types=("E",) * 101)}, "retry_policy", "101 names"),
    ],
)
def test_what_is_refused_by_name(options, field, says):
    with pytest.raises(InvalidArgument, match=says) as refused:
        Run(**options)
    assert refused.value.details["field"] == field
