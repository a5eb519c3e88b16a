"""The client on a real engine in memory."""

import asyncio
import os
import uuid
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.events import WorkflowExecutionSignaled, WorkflowExecutionStarted
from stepwell.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    RPCError,
    StartWorkflowInput,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
    WorkflowQueryRejectedError,
)
from stepwell.common import (
    CompletionCallback,
    Deduplication,
    DeduplicationPolicy,
    QueryRejectCondition,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from stepwell.converter import ArgumentError
from stepwell.exceptions import ApplicationError, TerminatedError, TimeoutError, WorkflowAlreadyStartedError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


@dataclass
class Order:
    id: str
    amount: int


@workflow.defn
class Fulfil:
    def __init__(self) -> None:
        self.shipped = False

    @workflow.run
    async def run(self, order: Order, express: bool = False) -> Order:
        await workflow.wait_condition(lambda: self.shipped)
        return order

    @workflow.signal
    def ship(self, times: int = 1) -> None:
        self.shipped = True

    @workflow.query
    def status(self, verbose: bool) -> str:
        return "shipped" if self.shipped else "open"


@workflow.defn
async def refuse(message: str) -> None:
    raise ApplicationError(message, {"a": 1}, type="Refused")


@pytest.fixture
async def client():
    async with await DevEnvironment.start() as env:
        yield env.client


@pytest.fixture
async def working(client: Client):
    async with Worker(client, task_queue="q", workflows=[Fulfil, refuse]):
        yield client


async def start(client: Client, id: str = "w", **options: object) -> WorkflowHandle[Order]:
    return await client.start_workflow(Fulfil.run, Order("o", 1), id=id, task_queue="q", **options)


async def test_start_signal_query_result(working: Client) -> None:
    handle = await start(working)
    assert await handle.query(Fulfil.status, True) == "open"
    await handle.signal(Fulfil.ship)
    assert await handle.result() == Order("o", 1)
    assert await handle.query(Fulfil.status, True) == "shipped"
    assert (handle.id, handle.run_id) == ("w", None)
    assert repr(handle) == f"<WorkflowHandle 'w' run {handle.result_run_id}>"
    assert repr(working.get_workflow_handle("v")) == "<WorkflowHandle 'v'>"
    assert handle.result_run_id == handle.first_execution_run_id != ""


async def test_by_name_and_result_type(working: Client) -> None:
    handle = await working.start_workflow(
        "Fulfil", args=[{"id": "o", "amount": 2}, True], id="w", task_queue="q", result_type=Order
    )
    await handle.signal("ship", 2)
    assert await handle.result() == Order("o", 2)
    assert await handle.query("status", True, result_type=str) == "shipped"
    typed = working.get_workflow_handle_for(Fulfil.run, "w")
    assert await typed.result() == Order("o", 2)
    assert await working.get_workflow_handle("w").result() == {"id": "o", "amount": 2}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "takes 1 to 2 arguments"),
        ([Order("o", 1), True, 3], "takes 1 to 2 arguments"),
        ([Order("o", 1), "yes"], "'express'"),
        ([object()], "'order'"),
        ([{1, 2}], "'order'"),
    ],
)
async def test_arguments_are_checked_at_the_call(client: Client, args: list[object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        await client.start_workflow(Fulfil.run, args=args, id="w", task_queue="q")
    with pytest.raises(RPCError) as caught:
        await client.get_workflow_handle("w").describe()
    assert caught.value.code == "NOT_FOUND"


async def test_arguments_of_signals_and_queries_are_checked_at_the_call(client: Client) -> None:
    handle = await start(client)
    with pytest.raises(ArgumentError, match="'times'"):
        await handle.signal(Fulfil.ship, "many")
    with pytest.raises(ArgumentError, match="status"):
        await handle.query(Fulfil.status)
    with pytest.raises(TypeError, match="not both"):
        await handle.signal(Fulfil.ship, 1, args=[2])
    for call in (client.start_workflow, client.execute_workflow, handle.signal, handle.query):
        with pytest.raises(TypeError, match=r"several as args=\[…\]; 2 were given"):
            await call("any", 1, 2, **({} if call in (handle.signal, handle.query) else {"id": "v", "task_queue": "q"}))
    with pytest.raises(ValueError, match="not a signal"):
        await handle.signal(Fulfil.status)


async def test_oversize_arguments_are_refused_with_size_limit_and_remedy(client: Client) -> None:
    with pytest.raises(RPCError, match="2097166 bytes, the limit is 2097152; store") as caught:
        await client.start_workflow("x", b"x" * (2 * 1024 * 1024 - 8 - 12 + 14), id="w", task_queue="q")
    assert caught.value.code == "PAYLOAD_TOO_LARGE" and not caught.value.retryable
    with pytest.raises(RPCError, match="memo"):
        await client.start_workflow("x", id="w", task_queue="q", memo={"a": "x" * 3_000_000})


async def test_bad_options_are_refused(client: Client) -> None:
    for options in ({"id": ""}, {"id": "x" * 1001}, {"task_queue": ""}, {"run_timeout": timedelta(seconds=-1)}):
        with pytest.raises(RPCError) as caught:
            await client.start_workflow("x", **{"id": "w", "task_queue": "q", **options})
        assert caught.value.code == "INVALID_ARGUMENT" and caught.value.details["field"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retry_policy": {}}, "workflow 'w': retry_policy must be a RetryPolicy, not dict; pass RetryPolicy"),
        ({"retry_policy": 3}, "retry_policy must be a RetryPolicy, not int"),
        ({"request_eager_start": 1}, "request_eager_start must be True or False, not 1"),
    ],
)
async def test_options_that_no_request_would_show_are_refused(
    client: Client, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        await start(client, **options)
    with pytest.raises(RPCError, match="no such workflow"):
        await client.get_workflow_handle("w").describe()


async def test_id_policies(working: Client) -> None:
    first = await start(working)
    with pytest.raises(WorkflowAlreadyStartedError) as caught:
        await start(working)
    assert "id_conflict_policy" in str(caught.value)
    assert caught.value.run_id == first.result_run_id and caught.value.workflow_id == "w"
    same = await start(working, id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    assert same.result_run_id == first.result_run_id
    other = await start(working, id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    assert other.result_run_id != first.result_run_id
    with pytest.raises(WorkflowFailureError) as ended:
        await first.result()
    assert isinstance(ended.value.cause, TerminatedError)
    await other.signal(Fulfil.ship)
    await other.result()
    with pytest.raises(WorkflowAlreadyStartedError):
        await start(working, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)


async def test_one_of_the_starts_with_a_key_counts(client: Client) -> None:
    key = Deduplication("customer-7", ttl=timedelta(hours=1))
    first = await start(client, deduplication=key)
    with pytest.raises(WorkflowAlreadyStartedError, match="held by workflow 'w'") as caught:
        await start(client, id="another", deduplication=key)
    assert (caught.value.workflow_id, caught.value.run_id) == ("w", first.result_run_id)
    met = await start(client, id="another", deduplication=replace(key, policy=DeduplicationPolicy.USE_EXISTING))
    assert (met.id, met.result_run_id) == ("w", first.result_run_id)
    with pytest.raises(TypeError, match="deduplication must be a Deduplication, not str"):
        await start(client, deduplication="customer-7")
    with pytest.raises(ValueError, match="key is empty"):
        Deduplication("")
    with pytest.raises(TypeError, match="policy cannot be of type str"):
        Deduplication("k", policy="FAIL")  # type: ignore[arg-type]


async def test_callbacks_go_with_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPWELL_CALLBACK_ADDRESSES", "http://127.0.0.1:1, https://*.example.com")
    async with await Client.connect("sqlite://:memory:") as client:
        handle = await start(client, callbacks=[CompletionCallback("https://a.example.com/", {"Authorization": "x"})])
        use = WorkflowIDConflictPolicy.USE_EXISTING
        await start(client, id_conflict_policy=use, callbacks=[CompletionCallback("http://127.0.0.1:1")])
        described = await handle.describe()
        assert [told.url for told in described.callbacks] == ["https://a.example.com/", "http://127.0.0.1:1"]
        with pytest.raises(RPCError, match="not among the addresses"):
            await start(client, id="other", callbacks=[CompletionCallback("https://a.example.net/")])
        with pytest.raises(TypeError, match="callbacks holds str"):
            await start(client, id="other", callbacks=["https://a.example.com/"])
        with pytest.raises(TypeError, match="names and values are text"):
            CompletionCallback("https://a.example.com/", {"a": 1})  # type: ignore[dict-item]
    monkeypatch.setenv("STEPWELL_CALLBACK_ADDRESSES", "example.com")
    with pytest.raises(RPCError, match=r"'example.com' is no address of callbacks"):
        await Client.connect("sqlite://:memory:")


async def test_failure_keeps_type_details_and_message(working: Client) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await working.execute_workflow(refuse, "no", id="w", task_queue="q")
    cause = caught.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type, list(cause.details)) == ("no", "Refused", [{"a": 1}])


async def test_terminate_and_timeout(client: Client) -> None:
    handle = await start(client)
    await handle.terminate("detail", reason="cleaning up")
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, TerminatedError)
    assert caught.value.cause.message == "cleaning up" and list(caught.value.cause.details) == ["detail"]
    with pytest.raises(RPCError) as closed:
        await handle.signal(Fulfil.ship)
    assert closed.value.code == "WORKFLOW_EXECUTION_CLOSED"
    await handle.cancel()
    late = await start(client, "late", run_timeout=timedelta(milliseconds=50))
    with pytest.raises(WorkflowFailureError) as timed_out:
        await asyncio.wait_for(late.result(), 30)
    assert isinstance(timed_out.value.cause, TimeoutError)


async def test_describe_list_and_query_reject(working: Client) -> None:
    handle = await start(working, memo={"note": "gift"})
    await handle.query(Fulfil.status, True)
    description = await handle.describe()
    assert description.status is WorkflowExecutionStatus.RUNNING and description.workflow_type == "Fulfil"
    assert await description.memo() == {"note": "gift"}
    await handle.signal(Fulfil.ship)
    await handle.result()
    with pytest.raises(WorkflowQueryRejectedError) as caught:
        await handle.query(Fulfil.status, True, reject_condition=QueryRejectCondition.NOT_OPEN)
    assert caught.value.status is WorkflowExecutionStatus.COMPLETED
    for index in range(5):
        await start(working, f"w{index}")
    listed = [row.id async for row in working.list_workflows(page_size=2)]
    assert sorted(listed) == ["w", "w0", "w1", "w2", "w3", "w4"]
    assert sorted([row.id async for row in working.scan_workflows(page_size=2)]) == sorted(listed)
    assert [row.id async for row in working.scan_workflows("WorkflowId = 'w3'", limit=1)] == ["w3"]
    with pytest.raises(RPCError, match="a scan comes in no order; leave it out, or list"):
        await anext(working.scan_workflows("ORDER BY StartTime"))
    completed = [row.id async for row in working.list_workflows(status=WorkflowExecutionStatus.COMPLETED)]
    assert completed == ["w"]
    assert len([row async for row in working.list_workflows(limit=3, page_size=2)]) == 3
    for limit in (0, -1):
        with pytest.raises(ValueError, match=f"limit is {limit}; use 1 or more, or leave it out to have all"):
            working.list_workflows(limit=limit)
        with pytest.raises(ValueError, match=f"limit is {limit}"):
            working.scan_workflows(limit=limit)
    found = [
        row.id async for row in working.list_workflows("WorkflowId IN ('w1', 'w3') ORDER BY StartTime", page_size=1)
    ]
    assert found == ["w1", "w3"]
    counted = await working.count_workflows("WorkflowId STARTS_WITH 'w' GROUP BY ExecutionStatus")
    assert (counted.count, [(group.count, group.group_values) for group in counted.groups]) == (
        6,
        [(5, ("RUNNING",)), (1, ("COMPLETED",))],
    )
    with pytest.raises(RPCError, match="query, line 1, column 1: there is no search attribute 'Workflow'"):
        await working.count_workflows("Workflow = 'a'")


async def test_history_round_trip(working: Client) -> None:
    handle = await start(working)
    await handle.signal(Fulfil.ship)
    await handle.result()
    history = await handle.fetch_history()
    again = WorkflowHistory.from_json("w", history.to_json())
    assert again == history and again.run_id == handle.result_run_id
    paged = [event async for event in handle.fetch_history_events(page_size=2)]
    assert tuple(paged) == history.events
    for page_size in (None, 1, 2):
        newest = [event async for event in handle.fetch_history_events(page_size=page_size, reverse=True)]
        assert tuple(newest[::-1]) == history.events
    with pytest.raises(RPCError, match="leave out wait_new_event"):
        await anext(handle.fetch_history_events(reverse=True, wait_new_event=True))


async def test_result_waits_for_one_run_only(working: Client) -> None:
    first = await start(working)
    await first.signal(Fulfil.ship)
    assert await first.result() == Order("o", 1)
    await working.start_workflow(Fulfil.run, Order("second", 2), id="w", task_queue="q")
    assert await first.result() == Order("o", 1)


class _Naming(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[object]:
        input.id = f"prefix-{input.id}"
        return await self.next.start_workflow(input)


class _Named(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Naming(next)


async def test_interceptor() -> None:
    async with await DevEnvironment.start(interceptors=[_Named()]) as env:
        assert (await start(env.client)).id == "prefix-w"


async def test_clients_of_one_file_share_the_engine_and_find_it_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with (
        await Client.connect("sqlite:///orders.db") as one,
        await Client.connect(f"sqlite:///{tmp_path}/orders.db") as two,
    ):
        await start(one)
        assert (await two.get_workflow_handle("w").describe()).workflow_type == "Fulfil"
    async with await Client.connect(f"sqlite:///{tmp_path}/orders.db") as again:
        assert [row.id async for row in again.list_workflows()] == ["w"]
        assert (await again.system_info()).server_version


async def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello " * 1000)
    with pytest.raises(RPCError) as caught:
        await Client.connect(f"sqlite:///{path}")
    assert caught.value.code == "FAILED_PRECONDITION"
    assert path.read_text().startswith("hello")


async def test_identity_is_pid_at_host(client: Client) -> None:
    assert client.identity.startswith(f"{os.getpid()}@")


async def test_each_call_has_its_own_request_id(client: Client) -> None:
    handle = await start(client)
    for _ in range(3):
        await handle.signal(Fulfil.ship)
    async with Worker(client, task_queue="q", workflows=[Fulfil]):
        await handle.result()
    events = (await handle.fetch_history()).events
    messages = (WorkflowExecutionStarted, WorkflowExecutionSignaled)
    ids = [event.attributes.request_id for event in events if isinstance(event.attributes, messages)]
    assert len(ids) == len(set(ids)) == 4 and all(uuid.UUID(hex=request_id) for request_id in ids)


async def test_a_deleted_workflow_is_gone(working: Client) -> None:
    first = await working.start_workflow(Fulfil.run, Order("7", 1), id="order-7", task_queue="orders")
    second = working.get_workflow_handle("order-7", run_id="another")
    with pytest.raises(RPCError) as refused:
        await second.delete()
    assert refused.value.code == "NOT_FOUND"
    await first.delete()
    for call in (first.describe, first.terminate, first.result):
        with pytest.raises(RPCError) as refused:
            await call()
        assert refused.value.code == "NOT_FOUND"
