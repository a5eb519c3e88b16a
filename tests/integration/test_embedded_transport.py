"""The engine in the user's process: shared by file, let go of when unused, refused in words."""

import asyncio
import gc
import sqlite3
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import FailedPrecondition, Internal, InvalidArgument, NotFound, Unavailable

from stepwell_server.adapters.embedded.ownership import Ownership
from stepwell_server.entrypoints import hosting
from stepwell_server.entrypoints.embedded import open_transport
from stepwell_server.entrypoints.retention_loop import keep_retention

START = r.StartWorkflowRequest(workflow_id="order-1", workflow_type="Order", task_queue="q")
EXECUTION = WorkflowExecution(workflow_id="order-1")


async def _ids(transport: Any) -> list[str]:
    listed = await transport.call(o.LIST_WORKFLOWS, r.ListWorkflowsRequest())
    return [info.execution.workflow_id for info in listed.executions]


def _is_free(path: Path) -> bool:
    Ownership(path).release()
    return True


async def test_clients_of_one_file_share_one_engine(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    first, second = await asyncio.gather(open_transport(path), open_transport(tmp_path / "." / "a.db"))
    await first.call(o.START_WORKFLOW, START)
    assert await _ids(second) == ["order-1"]
    await first.close()
    await first.close()
    assert await _ids(second) == ["order-1"]
    await second.close()
    assert _is_free(path)


async def test_a_closed_client_says_so(tmp_path: Path) -> None:
    transport = await open_transport(":memory:")
    await transport.close()
    with pytest.raises(Unavailable, match="connect again"):
        await _ids(transport)


async def test_closing_and_opening_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    transport = await open_transport(path)
    await transport.call(o.START_WORKFLOW, START)
    for _ in range(5):
        _, transport = await asyncio.gather(transport.close(), open_transport(path))
        assert await _ids(transport) == ["order-1"]
    await transport.close()
    assert _is_free(path)


async def test_opening_that_is_given_up_lets_the_file_go(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    opening = asyncio.create_task(open_transport(path))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait((opening,))
    transport = await open_transport(path)
    await transport.close()
    assert _is_free(path)


async def test_memory_is_everybodys_own() -> None:
    first, second = await open_transport(":memory:"), await open_transport(":memory:")
    await first.call(o.START_WORKFLOW, START)
    assert await _ids(second) == []
    await first.close()
    await second.close()


def test_a_file_of_a_loop_that_ended_without_closing_can_be_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    async def forgetful() -> None:
        transport = await open_transport(path)
        await transport.call(o.START_WORKFLOW, START)

    async def careful() -> None:
        transport = await open_transport(path)
        assert await _ids(transport) == ["order-1"]
        await transport.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asyncio.run(forgetful())
        asyncio.run(careful())
        gc.collect()
    assert _is_free(path)


async def test_a_second_loop_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    transport = await open_transport(path)
    with pytest.raises(FailedPrecondition, match="another event loop"):
        await asyncio.to_thread(asyncio.run, open_transport(path))
    await transport.close()


async def test_requests_are_checked_as_over_http() -> None:
    transport = await open_transport(":memory:")
    with pytest.raises(InvalidArgument, match="workflow_id is empty"):
        await transport.call(
            o.START_WORKFLOW, r.StartWorkflowRequest(workflow_id="", workflow_type="Order", task_queue="q")
        )
    await transport.close()


async def test_a_fault_of_ours_is_an_internal_error() -> None:
    transport = await open_transport(":memory:")
    with pytest.raises(Internal, match="StartWorkflow"):
        await transport.call(o.START_WORKFLOW, object())
    await transport.close()


async def test_files_that_are_not_ours(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but text of some length " * 30)
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    for name, read_only in (
        ("text", False),
        ("foreign.db", False),
        ("foreign.db", True),
        ("none/x.db", False),
        (".", False),
    ):
        with pytest.raises(FailedPrecondition, match=str(tmp_path)):
            await open_transport(tmp_path / name, read_only=read_only)


async def test_looking_beside_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    owner = await open_transport(path)
    await owner.call(o.START_WORKFLOW, START)
    reader = await open_transport(path, read_only=True)
    assert await _ids(reader) == ["order-1"]
    described = await reader.call(o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(execution=EXECUTION))
    assert described.unpolled_task_queues == ()
    assert described.pending_workflow_task is not None
    page = await reader.call(
        o.GET_HISTORY, r.GetHistoryRequest(execution=EXECUTION, wait_new_event=True, close_event_only=True)
    )
    assert page.next_page_token
    await owner.call(o.TERMINATE_WORKFLOW, r.TerminateWorkflowRequest(execution=EXECUTION, reason="seen by the reader"))
    page = await reader.call(
        o.GET_HISTORY,
        r.GetHistoryRequest(
            execution=EXECUTION, wait_new_event=True, close_event_only=True, next_page_token=page.next_page_token
        ),
    )
    assert [event.attributes.reason for event in page.events] == ["seen by the reader"]
    with pytest.raises(FailedPrecondition, match="reading only"):
        await reader.call(o.START_WORKFLOW, START)
    with pytest.raises(NotFound):
        await reader.call(
            o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(execution=WorkflowExecution(workflow_id="nobody"))
        )
    await reader.close()
    await owner.close()
    assert _is_free(path)


async def test_retention_deletes_what_is_old_and_the_engine_forgets_it() -> None:
    hosted = await hosting.HostedEngine.start(":memory:")
    await hosted.engine.start_workflow(START)
    terminate = r.TerminateWorkflowRequest(execution=EXECUTION)
    await hosted.engine.terminate_workflow(terminate)
    sweeping = asyncio.create_task(
        keep_retention(
            hosted.backend, hosted.engine, timedelta(0), first=timedelta(0), interval=timedelta(milliseconds=10)
        )
    )
    async with asyncio.timeout(30):
        while (await hosted.engine.list_workflows(r.ListWorkflowsRequest())).executions:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    with pytest.raises(NotFound):
        await hosted.engine.describe_workflow(r.DescribeWorkflowRequest(execution=EXECUTION))
    assert (await hosted.engine.start_workflow(START)).started
    sweeping.cancel()
    await asyncio.wait((sweeping,))
    await hosted.stop()


async def test_activities_without_a_workflow_beside_their_owner(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    owner = await open_transport(path)
    limit = timedelta(minutes=1)
    start = r.StartActivityRequest(activity_id="a", activity_type="t", task_queue="q", start_to_close_timeout=limit)
    await owner.call(o.START_ACTIVITY, start)
    reader = await open_transport(path, read_only=True)
    described = await reader.call(o.DESCRIBE_ACTIVITY, r.DescribeActivityRequest(activity_id="a"))
    assert described.info.activity_type == "t"
    asked = r.PollActivityRequest(activity_id="a", timeout=limit)
    assert (await reader.call(o.POLL_ACTIVITY, asked)).outcome is None
    await owner.call(o.TERMINATE_ACTIVITY, r.TerminateActivityRequest(activity_id="a"))
    outcome = (await reader.call(o.POLL_ACTIVITY, asked)).outcome
    assert outcome is not None and outcome.status is WorkflowExecutionStatus.TERMINATED
    listed = await reader.call(o.LIST_ACTIVITIES, r.ListActivitiesRequest())
    assert [each.status for each in listed.executions] == [outcome.status]
    assert (await reader.call(o.COUNT_ACTIVITIES, r.CountActivitiesRequest())).count == 1
