"""DynamoDB takes no item over 400 KB: what would need one is refused by name before anything is written, or ends what
would otherwise try it again for ever.
"""

import random
from collections.abc import AsyncIterator

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.errors import PayloadTooLarge
from stepwell.api.payloads import Payload

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.engine import Engine
from tests.support.aws.cells import Cell
from tests.support.counting import CountingStore
from tests.support.engine import Driver, activity, types

LARGE = (Payload(metadata={"encoding": "binary/plain"}, data=random.Random(1).randbytes(450_000)),)


@pytest.fixture
async def driver(cell: Cell) -> AsyncIterator[Driver]:
    backend = await aws_backend(AwsSettings(cell.names.cell), clients=AwsClients())
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    engine = Engine(
        log=store,  # type: ignore[arg-type]
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False),
    )
    await engine.start()
    yield Driver(engine, store)
    await engine.stop()
    await backend.close()


async def test_a_start_is_refused(driver: Driver) -> None:
    with pytest.raises(PayloadTooLarge, match="DynamoDB takes 400000"):
        await driver.start(input=LARGE)
    await driver.start()
    assert (await driver.describe()).info.history_length == 2


async def test_a_result_is_refused_and_a_smaller_one_is_taken(driver: Driver) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("1", eager=False))
    (attempt,) = await driver.poll_activities()
    (reply,) = await driver.report(r.ActivityCompleted(task_token=attempt.task_token, result=LARGE))
    assert reply.error_code == "PAYLOAD_TOO_LARGE"
    assert "activity '1' of workflow 'order-1'" in reply.message
    await driver.done(attempt)
    following = await driver.take()
    assert "ActivityTaskCompleted" in types(following.events)


async def test_a_completion_that_can_never_be_written_ends_its_run(driver: Driver) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, CompleteWorkflowExecution(result=LARGE))
    last = (await driver.history())[-1]
    assert last.event_type == "WorkflowExecutionTerminated" and "DynamoDB takes" in last.attributes.reason
