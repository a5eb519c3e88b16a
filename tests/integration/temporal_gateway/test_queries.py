"""Queries by the unmodified SDK: of open and closed runs, refused and failed."""

import asyncio
from datetime import timedelta
from typing import NoReturn

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "queries"


@workflow.defn
class Asked:
    def __init__(self) -> None:
        self.over = False

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.over)
        return "done"

    @workflow.signal
    def end(self) -> None:
        self.over = True

    @workflow.query
    def is_over(self) -> bool:
        return self.over

    @workflow.query
    def bad(self) -> NoReturn:
        raise ApplicationError("query fail", 456)


async def test_queries_of_open_and_closed_runs(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Asked], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Asked.run, id="w", task_queue=QUEUE)
        for over in (False, True):
            assert await handle.query(Asked.is_over) is over
            with pytest.raises(WorkflowQueryFailedError, match="query fail"):
                await handle.query(Asked.bad)
            with pytest.raises(WorkflowQueryFailedError, match="expected but not found"):
                await handle.query("unknown")
            if not over:
                await handle.signal(Asked.end)
                assert await handle.result() == "done"
        with pytest.raises(WorkflowQueryRejectedError):
            await handle.query(Asked.is_over, reject_condition=QueryRejectCondition.NOT_OPEN)


async def test_a_query_waits_for_a_worker_that_has_just_started(client: Client) -> None:
    handle = await client.start_workflow(Asked.run, id="w", task_queue=QUEUE)
    asked = asyncio.create_task(handle.query(Asked.is_over))
    async with Worker(client, task_queue=QUEUE, workflows=[Asked], workflow_runner=UnsandboxedWorkflowRunner()):
        assert await asked is False


async def test_a_query_behind_a_worker_that_stopped_is_late_and_not_refused(client: Client) -> None:
    """Its worker may be starting again, so to ask once more helps."""
    async with Worker(client, task_queue=QUEUE, workflows=[Asked], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.start_workflow(Asked.run, id="w", task_queue=QUEUE)
        assert await handle.query(Asked.is_over) is False
    with pytest.raises(RPCError) as late:
        await handle.query(Asked.is_over, rpc_timeout=timedelta(seconds=0.5))
    assert late.value.status in (RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED)
