"""Limits of namespaces: what is over one is refused with its cause and a hint, without the engine; others are not
touched; more important calls pass first (MT-04 to MT-06)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.batches import BatchReset, BatchSignal
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import (
    ApiError,
    FailedPrecondition,
    NamespaceNotFound,
    PayloadTooLarge,
    ResourceExhausted,
    retry_after,
)
from stepwell.api.failures import Failure
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.operations import OPERATIONS, Operation
from stepwell.api.payloads import Payload
from stepwell.api.schedules import NewWorkflowExecutionInfo, Schedule, ScheduleAction, ScheduleSpec

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.frontend import call_classes
from stepwell_server.frontend.limiting import CHANGES_AT_ONCE, SERVED, UNLIMITED, Limiter
from stepwell_server.namespaces.registry import Namespaces

WORKER = r.WorkerInfo(identity="w", worker_key="k")
EXECUTION = WorkflowExecution(workflow_id="w")
START = r.StartWorkflowRequest(namespace="shop", workflow_id="w", workflow_type="t", task_queue="q")
WORKFLOW = NewWorkflowExecutionInfo(workflow_id="w", workflow_type="t", task_queue="q")
SCHEDULE = r.CreateScheduleRequest(
    namespace="shop",
    schedule_id="s",
    schedule=Schedule(spec=ScheduleSpec(), action=ScheduleAction(start_workflow=WORKFLOW)),
)
SIGNAL = r.SignalWorkflowRequest(namespace="shop", execution=EXECUTION, signal_name="s")
POLL = r.PollWorkflowTaskRequest(namespace="shop", task_queue="q", worker=WORKER)
LIST = r.ListWorkflowsRequest(namespace="shop")
COMPLETED = r.ActivityCompleted(task_token=b"t")
FAILED = r.ActivityFailed(task_token=b"t", failure=Failure(message="no"))


class Clock(SystemClock):
    passed = 0.0

    def monotonic(self) -> float:
        return self.passed


class Installation:
    """A limiter before handlers that only count; there is no engine at all."""

    def __init__(self, namespaces: Namespaces, clock: Clock, default: NamespaceLimits) -> None:
        self.namespaces, self.clock = namespaces, clock
        self.limiter = Limiter(namespaces, default)
        self.handled: list[str] = []
        self.answer: Any = None
        self.gate: asyncio.Event | None = None

    async def handle(self, engine: Any, request: Any) -> Any:
        self.handled.append(type(request).__name__)
        if self.gate is not None:
            await self.gate.wait()
        return self.answer

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        return await self.limiter.carry_out(self.handle, None, operation, request)  # type: ignore[arg-type]

    async def passes(self, operation: Operation[Any, Any], request: Any, times: int = 1_000) -> int:
        """How many of so many calls at once pass."""
        for number in range(times):
            try:
                await self.call(operation, request)
            except ResourceExhausted:
                return number
        return times

    async def refused(self, operation: Operation[Any, Any], request: Any) -> ApiError:
        before = len(self.handled)
        with pytest.raises(ApiError) as refused:
            await self.call(operation, request)
        assert len(self.handled) == before, "the handler was called all the same"
        return refused.value

    async def register(self, name: str = "shop", **limits: Any) -> None:
        request = r.RegisterNamespaceRequest(namespace=name, limits=NamespaceLimits(**limits))
        await self.namespaces.register(request)


@pytest.fixture
async def made() -> AsyncIterator[Any]:
    backend = embedded_backend(":memory:")

    def make(default: NamespaceLimits = UNLIMITED, **more: Any) -> Installation:
        clock = Clock()
        return Installation(Namespaces(backend.control, clock, backend.ids, **more), clock, default)

    yield make
    await backend.close()


async def test_without_limits_there_is_nothing_to_ask(made: Any) -> None:
    installation = made()
    assert not installation.limiter.active
    await installation.register()
    assert not installation.limiter.active
    await installation.register("other", requests_per_second=1.0)
    assert installation.limiter.active
    assert await installation.passes(o.START_WORKFLOW, START, 100) == 100


async def test_twice_the_rate_at_once_then_a_refusal_with_cause_scope_and_hint(made: Any) -> None:
    installation = made()
    await installation.register(requests_per_second=10.0)
    await installation.register("other", requests_per_second=10.0)
    assert await installation.passes(o.SIGNAL_WORKFLOW, SIGNAL) == 20
    error = await installation.refused(o.SIGNAL_WORKFLOW, SIGNAL)
    assert isinstance(error, ResourceExhausted) and error.retryable
    assert error.details == {"cause": "RPS_LIMIT", "scope": "NAMESPACE", "retry_after": "0.1"}
    assert str(error) == (
        "namespace 'shop' has used up its 10 calls a second at this server (RPS_LIMIT); nothing was done, call again "
        "in 0.1 s, or have the limit raised"
    )
    other = r.SignalWorkflowRequest(namespace="other", execution=EXECUTION, signal_name="s")
    assert await installation.passes(o.SIGNAL_WORKFLOW, other) == 20
    installation.clock.passed += retry_after(error)
    await installation.call(o.SIGNAL_WORKFLOW, SIGNAL)
    await installation.refused(o.SIGNAL_WORKFLOW, SIGNAL)


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-6])
async def test_a_rate_of_next_to_nothing_says_tomorrow(made: Any, rate: float) -> None:
    installation = made()
    await installation.register(requests_per_second=rate)
    assert await installation.passes(o.SIGNAL_WORKFLOW, SIGNAL) == 1
    assert retry_after(await installation.refused(o.SIGNAL_WORKFLOW, SIGNAL)) == 86_400.0


async def test_polls_leave_room_for_starts_and_lists_have_their_own(made: Any) -> None:
    installation = made(SERVED)
    await installation.register(requests_per_second=5.0)
    installation.answer = r.PollWorkflowTaskResponse()
    assert await installation.passes(o.POLL_WORKFLOW_TASK, POLL) == 10
    assert await installation.passes(o.START_WORKFLOW, START) == 10
    assert (
        await installation.passes(o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(namespace="shop", execution=EXECUTION))
        == 0
    )
    assert await installation.passes(o.LIST_WORKFLOWS, LIST) == 100
    error = await installation.refused(o.LIST_WORKFLOWS, LIST)
    assert error.details["cause"] == "VISIBILITY_LIMIT"


async def test_starts_have_a_rate_and_what_was_refused_for_it_counts_for_nothing(made: Any) -> None:
    installation = made()
    await installation.register(starts_per_second=2.0, requests_per_second=6.0)
    assert await installation.passes(o.START_WORKFLOW, START) == 4
    for _ in range(50):
        assert (await installation.refused(o.START_WORKFLOW, START)).details["cause"] == "STARTS_LIMIT"
    assert await installation.passes(o.SIGNAL_WORKFLOW, SIGNAL) == 12 - 4


async def test_tasks_that_were_handed_out_count(made: Any) -> None:
    installation = made()
    await installation.register(dispatches_per_second=10.0)
    task: Any = object()
    installation.answer = r.PollWorkflowTaskResponse(tasks=(task,) * 30)
    await installation.call(o.POLL_WORKFLOW_TASK, POLL)
    error = await installation.refused(o.POLL_WORKFLOW_TASK, POLL)
    assert error.details == {"cause": "DISPATCH_LIMIT", "scope": "NAMESPACE", "retry_after": "2.1"}
    installation.answer = None
    await installation.call(o.START_WORKFLOW, START)
    installation.clock.passed += 2.1
    installation.answer = r.PollWorkflowTaskResponse()
    assert await installation.passes(o.POLL_WORKFLOW_TASK, POLL, 50) == 50, "polls that bring nothing cost nothing"


async def test_so_many_long_polls_of_one_operation_wait_at_the_same_time(made: Any) -> None:
    installation = made()
    await installation.register(concurrent_long_polls=2)
    installation.gate, installation.answer = asyncio.Event(), r.PollWorkflowTaskResponse()
    held = [asyncio.create_task(installation.call(o.POLL_WORKFLOW_TASK, POLL)) for _ in range(2)]
    await asyncio.sleep(0)
    error = await installation.refused(o.POLL_WORKFLOW_TASK, POLL)
    assert error.details["cause"] == "CONCURRENT_LIMIT" and retry_after(error) > 0
    query = r.QueryWorkflowRequest(namespace="shop", execution=EXECUTION, query_type="q")
    held.append(asyncio.create_task(installation.call(o.QUERY_WORKFLOW, query)))
    await asyncio.sleep(0)
    held[0].cancel()
    await asyncio.wait(held[:1])
    held.append(asyncio.create_task(installation.call(o.POLL_WORKFLOW_TASK, POLL)))
    await asyncio.sleep(0)
    assert len(installation.handled) == 4
    await installation.namespaces.update(
        r.UpdateNamespaceRequest(namespace="shop", limits=NamespaceLimits(concurrent_long_polls=1))
    )
    await installation.refused(o.POLL_WORKFLOW_TASK, POLL)
    installation.gate.set()
    await asyncio.gather(*held[1:])
    await installation.call(o.POLL_WORKFLOW_TASK, POLL)


async def test_payloads_obey_the_limit_of_their_namespace(made: Any) -> None:
    installation = made()
    await installation.register(max_payload_bytes=2_000)
    large = (Payload(data=b"x" * 2_001),)
    signal = r.SignalWorkflowRequest(namespace="shop", execution=EXECUTION, signal_name="s", input=large)
    error = await installation.refused(o.SIGNAL_WORKFLOW, signal)
    assert isinstance(error, PayloadTooLarge) and not error.retryable and error.details == {"field": "input"}
    assert "above the limit of 2000 of namespace 'shop'" in str(error)
    await installation.call(o.SIGNAL_WORKFLOW, SIGNAL)
    noted = msgspec.structs.replace(START, memo={"note": large[0]})
    assert (await installation.refused(o.START_WORKFLOW, noted)).details == {"field": "memo"}
    beat = r.RecordActivityHeartbeatRequest(namespace="shop", task_token=b"t", details=large)
    await installation.call(o.RECORD_ACTIVITY_HEARTBEAT, beat)  # the handler ends the activity


async def test_what_schedules_and_batches_will_send_obeys_it_too(made: Any) -> None:
    installation = made()
    await installation.register(max_payload_bytes=2_000)
    large = (Payload(data=b"x" * 2_001),)
    action = ScheduleAction(start_workflow=msgspec.structs.replace(WORKFLOW, input=large))
    schedule = msgspec.structs.replace(SCHEDULE, schedule=Schedule(action=action))
    error = await installation.refused(o.CREATE_SCHEDULE, schedule)
    assert isinstance(error, PayloadTooLarge) and error.details == {"field": "schedule.action.start_workflow.input"}
    signal = r.PostResetOperation(signal_workflow=r.PostResetSignal(signal_name="s", input=large))
    for operation, field in (
        (BatchSignal(signal_name="s", input=large), "operation.input"),
        (BatchReset(post_reset_operations=(signal,)), "operation.post_reset_operations[0].signal_workflow.input"),
    ):
        batch = r.StartBatchOperationRequest(namespace="shop", job_id="j", operation=operation, query="a = 'b'")
        error = await installation.refused(o.START_BATCH_OPERATION, batch)
        assert isinstance(error, PayloadTooLarge) and error.details == {"field": field}
    reset = r.ResetWorkflowRequest(namespace="shop", execution=EXECUTION, post_reset_operations=(signal,))
    assert isinstance(await installation.refused(o.RESET_WORKFLOW, reset), PayloadTooLarge)


async def test_two_limiters_of_a_process_and_its_schedules_share_starts(made: Any) -> None:
    installation = made()
    await installation.register(starts_per_second=1.0)
    await installation.call(o.START_WORKFLOW, START)
    starts = installation.namespaces.starts("shop")
    assert starts is not None and starts.available(0.0) == 1
    starts.owe(1)
    assert isinstance(await installation.refused(o.START_WORKFLOW, START), ResourceExhausted)
    await installation.namespaces.update(
        r.UpdateNamespaceRequest(namespace="shop", limits=NamespaceLimits(starts_per_second=5.0))
    )
    assert await installation.passes(o.START_WORKFLOW, START) == 10


async def test_nothing_is_started_in_a_deprecated_namespace(made: Any) -> None:
    installation = made()
    await installation.register()
    await installation.call(o.START_WORKFLOW, START)
    await installation.namespaces.deprecate(r.DeprecateNamespaceRequest(namespace="shop"))
    assert installation.limiter.active
    error = await installation.refused(o.START_WORKFLOW, START)
    assert isinstance(error, FailedPrecondition) and "'shop' is deprecated" in str(error)
    error = await installation.refused(o.CREATE_SCHEDULE, SCHEDULE)
    assert isinstance(error, FailedPrecondition) and "'shop' is deprecated" in str(error)
    await installation.call(o.SIGNAL_WORKFLOW, SIGNAL)
    await installation.call(o.DELETE_SCHEDULE, r.DeleteScheduleRequest(namespace="shop", schedule_id="s"))


async def test_where_namespaces_have_to_be_registered_others_are_refused(made: Any) -> None:
    installation = made(require_registered=True)
    error = await installation.refused(o.START_WORKFLOW, START)
    assert isinstance(error, NamespaceNotFound) and "'shop' is not registered; register it" in str(error)
    await installation.call(o.DESCRIBE_NAMESPACE, r.DescribeNamespaceRequest(namespace="shop"))
    await installation.call(o.SIGNAL_WORKFLOW, r.SignalWorkflowRequest(execution=EXECUTION, signal_name="s"))
    await installation.register()
    await installation.call(o.START_WORKFLOW, START)


async def test_changes_of_namespaces_are_few(made: Any) -> None:
    installation = made(SERVED)
    register = r.RegisterNamespaceRequest(namespace="shop")
    assert await installation.passes(o.REGISTER_NAMESPACE, register) == int(CHANGES_AT_ONCE)
    error = await installation.refused(o.REGISTER_NAMESPACE, register)
    assert error.details == {"cause": "NAMESPACE_CHANGES_LIMIT", "scope": "SYSTEM", "retry_after": "1"}


async def test_names_that_are_made_up_do_not_fill_the_memory(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepwell_server.frontend.limiting._FULL", 10)
    installation = made(SERVED)
    for number in range(100):
        await installation.call(o.LIST_WORKFLOWS, r.ListWorkflowsRequest(namespace=f"n{number}"))
    assert len(installation.limiter._gates) <= 10


def test_completions_that_bring_a_run_on_come_before_those_that_do_not() -> None:
    def of(*outcomes: Any) -> int:
        request = r.RespondActivityTasksRequest(worker=WORKER, outcomes=outcomes)
        assert call_classes.cost_of(request) == len(outcomes)
        return call_classes.priority_of(o.RESPOND_ACTIVITY_TASKS, request)

    assert of(COMPLETED) == of(FAILED, COMPLETED) == 1 and of(FAILED) == of(FAILED, FAILED) == 3
    by_id = [
        r.RespondActivityByIdRequest(execution=EXECUTION, activity_id="a", outcome=outcome)
        for outcome in (COMPLETED, FAILED)
    ]
    assert [call_classes.priority_of(o.RESPOND_ACTIVITY_BY_ID, request) for request in by_id] == [1, 3]


def test_calls_are_in_the_order_of_the_field() -> None:
    history = r.GetHistoryRequest(execution=EXECUTION)
    waiting = r.GetHistoryRequest(execution=EXECUTION, wait_new_event=True, timeout=timedelta(seconds=1))
    assert call_classes.priority_of(o.GET_HISTORY, history) == 2
    assert call_classes.priority_of(o.GET_HISTORY, waiting) == 5
    expected = {
        0: (o.DESCRIBE_NAMESPACE, o.GET_SYSTEM_INFO),
        1: (o.START_WORKFLOW, o.SIGNAL_WORKFLOW, o.UPDATE_WORKFLOW, o.RECORD_ACTIVITY_HEARTBEAT),
        2: (o.CANCEL_WORKFLOW, o.TERMINATE_WORKFLOW, o.RESET_WORKFLOW, o.PAUSE_ACTIVITY),
        3: (o.DESCRIBE_WORKFLOW, o.DESCRIBE_TASK_QUEUE, o.QUERY_WORKFLOW, o.RESPOND_WORKFLOW_TASK_FAILED),
        4: (o.POLL_WORKFLOW_TASK, o.POLL_ACTIVITY_TASK, o.SHUTDOWN_WORKER),
    }
    for priority, operations in expected.items():
        assert {call_classes.priority_of(operation, None) for operation in operations} == {priority}
    assert {each.name for each in OPERATIONS if call_classes.is_visibility(each.name)} >= {"ListWorkflows"}
