"""What clients ask of workflows, the same over every transport."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import operations as o
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import (
    CompletionOutcome,
    WorkflowExecutionStatus,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from stepwell.api.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    WorkflowExecutionAlreadyStarted,
    WorkflowExecutionClosed,
)

from .client import SOON, ApiClient, json_payload

AWKWARD_IDS = [
    "o'brien",
    "'edge'",
    "end'",
    'say "hi"',
    "back\\slash",
    "50%_off",
    "a b",
    "日本",
    "x;--",
    "a/b?c#d",
    "a%2Fb",
    "%",
    "+",
    "é",
    "e\u0301",
    "😀",
    " leading and trailing ",
    "//",
    "a\u2028b",
    "x" * 1_000,
    "語" * 333,
]


async def test_a_started_workflow_is_described_and_listed(api: ApiClient) -> None:
    started = await api.start(input=json_payload('{"amount":12}'))
    assert started.started
    described = await api.describe()
    assert described.info.execution == WorkflowExecution(workflow_id="order-1", run_id=started.run_id)
    assert described.info.status is WorkflowExecutionStatus.RUNNING
    assert described.unpolled_task_queues
    listed = await api.call(o.LIST_WORKFLOWS)
    assert [info.execution.workflow_id for info in listed.executions] == ["order-1"]
    assert (await api.history())[0].attributes.input == json_payload('{"amount":12}')


async def test_a_repeated_start_gets_the_same_run(api: ApiClient) -> None:
    first = await api.start(request_id="once")
    second = await api.start(request_id="once")
    assert second.run_id == first.run_id


async def test_a_second_start_is_refused_and_names_the_run(api: ApiClient) -> None:
    started = await api.start()
    with pytest.raises(WorkflowExecutionAlreadyStarted) as refused:
        await api.start()
    assert refused.value.details["run_id"] == started.run_id
    joined = await api.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING)
    assert (joined.run_id, joined.started) == (started.run_id, False)


async def test_any_text_is_a_workflow_id(api: ApiClient, transport_name: str) -> None:
    """WC-28: each is found by exactly its id, never by another. A type with a slash is refused where IAM decides by
    the path."""

    def type_of(workflow_id: str) -> str:
        return workflow_id.replace("/", "-") if transport_name == "lambda" else workflow_id

    for workflow_id in AWKWARD_IDS:
        await api.start(workflow_id, workflow_type=type_of(workflow_id))
    for workflow_id in AWKWARD_IDS:
        await api.signal(workflow_id, signal_name=workflow_id)
        described = await api.describe(workflow_id)
        assert described.info.execution.workflow_id == workflow_id
        assert described.info.workflow_type == type_of(workflow_id)
        assert described.buffered_events == 1
        assert (await api.history(workflow_id))[0].attributes.workflow_id == workflow_id
        listed = await api.call(o.LIST_WORKFLOWS, workflow_type=type_of(workflow_id))
        assert [info.execution.workflow_id for info in listed.executions] == [workflow_id]


async def test_a_filter_is_a_value_and_nothing_else(api: ApiClient) -> None:
    await api.start()
    assert not (await api.call(o.LIST_WORKFLOWS, workflow_type="' OR ''='")).executions


async def test_unknown_workflows_are_not_found(api: ApiClient) -> None:
    execution = WorkflowExecution(workflow_id="nobody")
    for operation, fields in (
        (o.DESCRIBE_WORKFLOW, {}),
        (o.GET_HISTORY, {}),
        (o.SIGNAL_WORKFLOW, {"signal_name": "ship"}),
        (o.CANCEL_WORKFLOW, {}),
        (o.TERMINATE_WORKFLOW, {}),
        (o.DELETE_WORKFLOW, {}),
        (o.QUERY_WORKFLOW, {"query_type": "state"}),
    ):
        with pytest.raises(NotFound, match=r"nobody|no such workflow"):
            await api.call(operation, execution=execution, **fields)


async def test_a_closed_workflow_refuses_signals_and_takes_cancels(api: ApiClient) -> None:
    await api.start()
    execution = WorkflowExecution(workflow_id="order-1")
    await api.call(o.TERMINATE_WORKFLOW, execution=execution, reason="two\nlines")
    with pytest.raises(WorkflowExecutionClosed) as refused:
        await api.signal()
    assert refused.value.details["status"] == "TERMINATED"
    await api.call(o.CANCEL_WORKFLOW, execution=execution)
    (close,) = await api.history(close_event_only=True)
    assert (close.event_type, close.attributes.reason) == ("WorkflowExecutionTerminated", "two\nlines")


async def test_a_deleted_workflow_is_found_no_more_and_its_id_is_free(api: ApiClient) -> None:
    await api.start()
    execution = WorkflowExecution(workflow_id="order-1")
    await api.call(o.DELETE_WORKFLOW, execution=execution)
    for operation in (o.DESCRIBE_WORKFLOW, o.GET_HISTORY, o.TERMINATE_WORKFLOW):
        with pytest.raises(NotFound):
            await api.call(operation, execution=execution)
    await api.start(workflow_id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)
    assert (await api.call(o.DESCRIBE_WORKFLOW, execution=execution)).info.status == "RUNNING"


async def test_a_query_without_a_worker_is_refused(api: ApiClient) -> None:
    await api.start()
    with pytest.raises(FailedPrecondition, match="orders"):
        await api.call(
            o.QUERY_WORKFLOW, execution=WorkflowExecution(workflow_id="order-1"), query_type="state", timeout=SOON
        )


async def test_a_long_poll_ends_with_news(api: ApiClient) -> None:
    await api.start()
    execution = WorkflowExecution(workflow_id="order-1")
    waiting = asyncio.create_task(
        api.call(
            o.GET_HISTORY,
            execution=execution,
            wait_new_event=True,
            close_event_only=True,
            timeout=timedelta(seconds=10),
        )
    )
    task = await api.workflow_task()
    response = await api.complete(task, CompleteWorkflowExecution(result=json_payload('"done"')))
    assert response.outcome is CompletionOutcome.ACCEPTED
    page = await waiting
    assert [event.attributes.result for event in page.events] == [json_payload('"done"')]
    assert not page.next_page_token


async def test_a_long_poll_without_news_has_a_token_to_go_on(api: ApiClient) -> None:
    await api.start()
    execution = WorkflowExecution(workflow_id="order-1")
    page = await api.call(o.GET_HISTORY, execution=execution, wait_new_event=True, close_event_only=True, timeout=SOON)
    assert not page.events
    assert page.next_page_token


async def test_lists_are_read_by_page(api: ApiClient) -> None:
    ids = [f"order-{number}" for number in range(7)]
    for workflow_id in ids:
        await api.start(workflow_id)
    async with asyncio.timeout(20):
        while len((await api.call(o.LIST_WORKFLOWS)).executions) < len(ids):
            await asyncio.sleep(0.05)  # where the feed projects them
    seen, token = [], b""
    while True:
        page = await api.call(o.LIST_WORKFLOWS, page_size=3, next_page_token=token)
        assert len(page.executions) <= 3
        seen += [info.execution.workflow_id for info in page.executions]
        token = page.next_page_token
        if not token:
            break
    assert sorted(seen) == ids


async def test_a_foreign_page_token_is_refused(api: ApiClient) -> None:
    await api.start()
    with pytest.raises(InvalidArgument, match="next_page_token"):
        await api.call(o.LIST_WORKFLOWS, next_page_token=b"made up")


async def test_the_system_says_what_it_is(api: ApiClient) -> None:
    info = await api.call(o.GET_SYSTEM_INFO)
    assert info.server_version
    assert info.database == "memory" or info.database.startswith("dynamodb:stepwell-")
    assert info.default_retention == timedelta(days=7)
