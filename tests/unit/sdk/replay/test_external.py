"""What is asked of children and other workflows is refused by name, and wrapped by interceptors."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api import events as ev
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
    StartChildWorkflowExecutionFailedCause,
)
from stepwell.common import WorkflowIDConflictPolicy
from stepwell.replay.errors import WorkflowTaskError
from stepwell.worker import WorkflowInboundInterceptor, WorkflowOutboundInterceptor

from tests.support.histories import Driver, payloads


@workflow.defn(name="pack")
class Pack:
    @workflow.signal
    def hurry(self, why: str) -> None: ...

    @workflow.run
    async def run(self, what: str) -> int:
        return len(what)


def started(d: Driver, child_id: str) -> None:
    d.history.add(
        ev.ChildWorkflowExecutionStarted(
            initiated_event_id=len(d.history.events),
            workflow_execution=WorkflowExecution(workflow_id=child_id, run_id="run"),
            workflow_type="pack",
        )
    )


# --- refused ------------------------------------------------------------------------------------------------------


@workflow.defn
async def sends_to_nobody() -> None:
    await workflow.get_external_workflow_handle("nobody").signal("hurry")


@pytest.mark.parametrize("cause", list(SignalExternalWorkflowExecutionFailedCause))
def test_a_signal_that_cannot_be_delivered_fails_the_workflow(
    cause: SignalExternalWorkflowExecutionFailedCause,
) -> None:
    d = Driver(sends_to_nobody)
    d.task()
    d.history.add(
        ev.SignalExternalWorkflowExecutionFailed(
            cause=cause,
            initiated_event_id=len(d.history.events),
            workflow_task_completed_event_id=4,
            workflow_execution=WorkflowExecution(workflow_id="nobody"),
        )
    )
    d.task()
    (close,) = d.result.commands
    assert "sending signal 'hurry' to workflow 'nobody' is not possible" in close.failure.message


@workflow.defn
async def means_itself(how: str) -> None:
    handle = workflow.get_external_workflow_handle(workflow.info().workflow_id)
    await (handle.signal("hurry") if how == "signal" else handle.cancel() if how == "cancel" else handle.result())


@pytest.mark.parametrize("how", ["signal", "cancel", "result"])
def test_a_workflow_cannot_mean_itself(how: str) -> None:
    d = Driver(means_itself, how)
    d.task()
    refusal: Any = {
        "signal": ev.SignalExternalWorkflowExecutionFailed,
        "cancel": ev.RequestCancelExternalWorkflowExecutionFailed,
    }
    asked = {"initiated_event_id": len(d.history.events), "workflow_task_completed_event_id": 4}
    if how == "result":
        cause = StartChildWorkflowExecutionFailedCause.WORKFLOW_NOT_FOUND
        d.history.add(ev.StartChildWorkflowExecutionFailed(workflow_id="wf-1", workflow_type="", cause=cause, **asked))
    else:
        to = WorkflowExecution(workflow_id="wf-1")
        cause_of = SignalExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        if how == "cancel":
            cause_of = CancelExternalWorkflowExecutionFailedCause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND
        d.history.add(refusal[how](cause=cause_of, workflow_execution=to, **asked))
    d.task()
    (close,) = d.result.commands
    assert close.failure.message.endswith(": it is this workflow, and a workflow cannot mean itself")
    assert close.failure.info.failure_type == "ExternalWorkflowExecutionNotFound"


@workflow.defn
async def in_no_namespace() -> None:
    await workflow.start_child_workflow("pack", "x", id="kid")


def test_a_start_that_fails_otherwise_says_why() -> None:
    d = Driver(in_no_namespace)
    d.task()
    d.history.add(
        ev.StartChildWorkflowExecutionFailed(
            workflow_id="kid",
            workflow_type="pack",
            cause=StartChildWorkflowExecutionFailedCause.NAMESPACE_NOT_FOUND,
            initiated_event_id=len(d.history.events),
            workflow_task_completed_event_id=4,
        )
    )
    d.task()
    assert "was not started: NAMESPACE_NOT_FOUND" in d.result.commands[0].failure.message


@workflow.defn
async def reaches_out(how: str) -> None:
    there = workflow.get_external_workflow_handle("kid", namespace="shop")
    if how == "start":
        kid = await workflow.start_child_workflow("pack", "x", id="kid", namespace="shop")
        await kid.signal("hurry")
        kid.cancel()
        await kid
    else:
        await (there.signal("hurry") if how == "signal" else there.cancel() if how == "cancel" else there.result())


@pytest.mark.parametrize("how", ["start", "signal", "cancel", "result"])
def test_what_is_asked_of_another_namespace_says_so(how: str) -> None:
    d = Driver(reaches_out, how)
    d.task()
    (command,) = d.result.commands
    assert command.namespace == "shop"
    if how == "start":
        started(d, "kid")
        d.task()
        (command,) = d.result.commands
        assert command.namespace == "shop" and command.child_workflow_only
        d.history.add(
            ev.ExternalWorkflowExecutionSignaled(
                initiated_event_id=len(d.history.events), workflow_execution=WorkflowExecution(workflow_id="kid")
            )
        )
        d.task()
        (command,) = d.result.commands
        assert command.namespace == "shop" and command.child_workflow_only


@workflow.defn
async def stays_here() -> None:
    own = workflow.info().namespace
    await workflow.get_external_workflow_handle("kid", namespace=own).signal("hurry")


def test_the_own_namespace_is_not_said() -> None:
    d = Driver(stays_here)
    d.task()
    assert d.result.commands[0].namespace == ""


@pytest.mark.parametrize(("how", "what"), [("start", "child workflow"), ("result", "workflow")])
def test_a_namespace_that_does_not_let_it_in_is_told_with_the_way_out(how: str, what: str) -> None:
    d = Driver(reaches_out, how)
    d.task()
    d.history.add(
        ev.StartChildWorkflowExecutionFailed(
            namespace="shop",
            workflow_id="kid",
            workflow_type="pack",
            cause=StartChildWorkflowExecutionFailedCause.NAMESPACE_NOT_ALLOWED,
            initiated_event_id=len(d.history.events),
            workflow_task_completed_event_id=4,
        )
    )
    d.task()
    failure = d.result.commands[0].failure
    assert failure.message.startswith(f"{what} 'kid' ") and "does not list this workflow's" in failure.message
    assert failure.info.failure_type == "NAMESPACE_NOT_ALLOWED"


BAD: list[tuple[dict[str, Any], str]] = [
    ({"id": ""}, "id is empty"),
    ({"id": 7}, "id must be text, not int"),
    ({"task_queue": b"q"}, "task_queue must be text, not bytes"),
    ({"run_timeout": 5}, "run_timeout must be a timedelta, not int"),
    ({"execution_timeout": timedelta(0)}, "execution_timeout must be above zero"),
    ({"task_timeout": timedelta(-1)}, "task_timeout must be above zero"),
    ({"parent_close_policy": "TERMINATE!"}, "parent_close_policy must be one of ParentClosePolicy"),
    ({"cancellation_type": 1}, "cancellation_type must be one of ChildWorkflowCancellationType"),
    ({"id_conflict_policy": WorkflowIDConflictPolicy.TERMINATE_EXISTING}, "use FAIL or USE_EXISTING"),
    ({"memo": {1: "x"}}, "memo has the name 1"),
    ({"args": ["y"]}, "either by position or as args"),
    ({"timeout": 5}, "there is no option 'timeout'"),
]


@pytest.mark.parametrize(("options", "said"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_options_are_refused_where_they_are_given(options: dict[str, Any], said: str) -> None:
    @workflow.defn(name="starts", sandboxed=False)
    async def starts() -> None:
        await workflow.start_child_workflow("pack", "x", **options)

    d = Driver(starts)
    with pytest.raises(WorkflowTaskError) as failed:
        d.task()
    assert said in failed.value.failure.message


@pytest.mark.parametrize("bad", ["", 7])
def test_a_handle_of_another_workflow_needs_an_id(bad: Any) -> None:
    @workflow.defn(name="handles")
    async def handles() -> None:
        workflow.get_external_workflow_handle(bad)

    with pytest.raises(WorkflowTaskError, match="workflow_id"):
        Driver(handles).task()


# --- interceptors -------------------------------------------------------------------------------------------------

HEADER = payloads("tenant-7")[0]


class Marks(WorkflowOutboundInterceptor):
    async def start_child_workflow(self, input: Any) -> Any:
        input.headers = {**input.headers, "tenant": HEADER}
        input.args = [f"{input.args[0]}!"]
        return await self.next.start_child_workflow(input)

    async def signal_child_workflow(self, input: Any) -> None:
        input.headers = {"tenant": HEADER}
        await self.next.signal_child_workflow(input)

    async def signal_external_workflow(self, input: Any) -> None:
        input.headers = {"tenant": HEADER}
        await self.next.signal_external_workflow(input)


class Marking(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self.next.init(Marks(outbound))


@workflow.defn
async def marked() -> None:
    child = await workflow.start_child_workflow(Pack.run, "x", id="kid")
    sending = asyncio.create_task(child.signal(Pack.hurry, "late"))
    await asyncio.sleep(0)
    await asyncio.gather(sending, workflow.get_external_workflow_handle("other").signal("hurry"))


def test_headers_travel_to_children_and_with_signals() -> None:
    d = Driver(marked, interceptors=[Marking])
    d.task()
    (start,) = d.result.commands
    assert start.headers == {"tenant": HEADER} and start.input == payloads("x!")
    started(d, "kid")
    d.task()
    assert [command.headers for command in d.result.commands] == [{"tenant": HEADER}] * 2
    assert [command.execution.workflow_id for command in d.result.commands] == ["kid", "other"]
