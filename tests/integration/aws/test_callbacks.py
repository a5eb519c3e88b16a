"""Completion callbacks on DynamoDB: taken in and posted by the sweeper of a container, and by functions (LC-10)."""

import asyncio

import pytest
from stepwell.api import requests as r
from stepwell.api.callbacks import Callback
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import CallbackState

from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.callback_addresses import parse_addresses
from stepwell_server.history.callback_delivery import Callbacks
from tests.integration.aws.test_wake_ups import delivered, process, swept
from tests.integration.engine.test_callbacks import receiving
from tests.support.aws.cells import Cell
from tests.support.engine import QUEUE, Driver


@pytest.mark.parametrize("functions", [False, True])
async def test_the_end_is_posted(cell: Cell, functions: bool) -> None:
    async with receiving() as receiver, process(cell, functions=functions) as parts:
        allowed = parse_addresses([receiver.url.removesuffix("/done")])
        parts.engine._addresses = parts.engine.attached(Callbacks)._addresses = allowed
        driver = Driver(parts.engine, None)  # type: ignore[arg-type]
        async with delivered(parts, drop=False) if functions else swept(parts):
            request = r.StartWorkflowRequest(
                workflow_id="a",
                workflow_type="order",
                task_queue=QUEUE,
                completion_callbacks=(Callback(url=receiver.url),),
            )
            started = await HANDLERS["StartWorkflow"](parts.engine, request)
            execution = WorkflowExecution(workflow_id="a")
            await HANDLERS["TerminateWorkflow"](parts.engine, r.TerminateWorkflowRequest(execution=execution))
            async with asyncio.timeout(90):
                while (await driver.describe("a")).callbacks[0].state is not CallbackState.SUCCEEDED:
                    await asyncio.sleep(0.1)
        assert {got["run_id"] for got in receiver.got} == {started.run_id}
