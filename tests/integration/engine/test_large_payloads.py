"""Large payloads through an engine whose log offloads them: each is put once, whatever becomes of it in its run, and
copied once into each further run; readers see it whole.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution, StartChildWorkflowExecution
from stepwell.api.payloads import Payload

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings
from stepwell_server.history.engine import Engine
from stepwell_server.history.offload import REFERENCE, OffloadingLog
from stepwell_server.history.run_blobs import Owner, RunBlobs
from tests.support.blobs import CountedBlobs, noise
from tests.support.counting import CountingStore
from tests.support.engine import QUEUE, Driver, activity

LARGE = 100_000


class Offloading(Driver):
    blobs: CountedBlobs

    @property
    def puts(self) -> int:
        return self.blobs.counts["put"]

    async def runs_with_blobs(self) -> dict[str, int]:
        """The number of blobs by the run that they belong to."""
        found: dict[str, int] = {}
        for key in await self.blobs.keys():
            run = key.split("/")[3]
            found[run] = found.get(run, 0) + 1
        return found


@asynccontextmanager
async def running() -> AsyncIterator[Offloading]:
    backend = embedded_backend(":memory:")
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    blobs = CountedBlobs()
    log = OffloadingLog(store, RunBlobs(blobs, backend.clock), backend.clock)  # type: ignore[arg-type]
    engine = Engine(
        log=log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=EngineSettings(),
    )
    await engine.start()
    driver = Offloading(engine, store)
    driver.blobs = blobs
    try:
        yield driver
    finally:
        await engine.stop()
        await backend.close()


@pytest.fixture
async def driver() -> AsyncIterator[Offloading]:
    async with running() as driver:
        yield driver


async def test_small_ones_ask_for_nothing(driver: Offloading) -> None:
    await driver.start(input=(noise(1_000),))
    task = await driver.take()
    response = await driver.complete(task.task_token, activity("a"), slots=1)
    await driver.done(*response.leases)
    await driver.finish(await driver.take())
    assert not driver.blobs.counts


async def test_a_signal_that_waits_is_put_once(driver: Offloading) -> None:
    """It rests in the state while a task is outstanding, rides in each commit, and becomes an event."""
    said = noise(LARGE)
    await driver.start()
    task = await driver.take()
    await driver.signal(input=(said,))
    await driver.signal(name="small")
    assert driver.puts == 1
    response = await driver.complete(task.task_token)
    assert response.outcome == "ACCEPTED"
    shown = await driver.take()
    assert any(getattr(event.attributes, "input", ()) == (said,) for event in shown.events)
    await driver.finish(shown)
    assert driver.puts == 1 and not driver.blobs.counts["get"]
    assert any(getattr(event.attributes, "input", ()) == (said,) for event in await driver.history())


async def test_a_result_of_a_queued_activity_is_put_once(driver: Offloading) -> None:
    """From the activity's item into the history. Progress is its own."""
    result, progress = noise(LARGE), noise(LARGE, 1)
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("a", eager=False, heartbeat_timeout=timedelta(seconds=60)))
    (given,) = await driver.poll_activities()
    await driver.engine.record_activity_heartbeat(
        r.RecordActivityHeartbeatRequest(task_token=given.task_token, details=(progress,))
    )
    assert driver.puts == 1
    await driver.report(r.ActivityCompleted(task_token=given.task_token, result=(result,)))
    shown = await driver.take()
    assert any(getattr(event.attributes, "result", ()) == (result,) for event in shown.events)
    await driver.finish(shown)
    assert driver.puts == 2


async def test_what_passes_on_to_the_next_run_is_copied(driver: Offloading) -> None:
    passed, memo = noise(LARGE), noise(LARGE, 1)
    first = await driver.start(input=(passed,), memo={"note": memo})
    task = await driver.take()
    given = task.events[0].attributes.input  # type: ignore[union-attr]
    await driver.complete(
        task.task_token,
        ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE, input=given),
    )
    second = (await driver.describe()).info.execution.run_id
    assert second != first
    assert await driver.runs_with_blobs() == {first: 2, second: 2}
    # Erasing the first takes nothing from the second.
    prefix = Owner(driver.store.commits[0].key, first).prefix
    await driver.blobs.delete([key for key in await driver.blobs.keys() if key.startswith(prefix)])
    await driver.finish(await driver.take())
    begun = (await driver.history(run_id=second))[0].attributes
    assert begun.input == (passed,) and begun.memo == {"note": memo}  # type: ignore[union-attr]


async def test_a_child_has_its_own(driver: Offloading) -> None:
    passed = noise(LARGE)
    parent = await driver.start(input=(passed,))
    task = await driver.take()
    await driver.complete(
        task.task_token,
        StartChildWorkflowExecution(
            workflow_id="child",
            workflow_type="order",
            task_queue=QUEUE,
            input=task.events[0].attributes.input,  # type: ignore[union-attr]
        ),
    )
    child = await driver.take()
    assert child.events[0].attributes.input == (passed,)  # type: ignore[union-attr]
    assert await driver.runs_with_blobs() == {parent: 1, child.execution.run_id: 1}


async def test_a_reset_run_has_its_own(driver: Offloading) -> None:
    passed = noise(LARGE)
    first = await driver.start(input=(passed,))
    await driver.finish(await driver.take())
    second = await driver.reset()
    assert await driver.runs_with_blobs() == {first: 1, second: 1}
    await driver.finish(await driver.take())
    assert (await driver.history(run_id=second))[0].attributes.input == (passed,)  # type: ignore[union-attr]


async def test_a_payload_that_looks_like_a_reference_is_only_a_payload(driver: Offloading) -> None:
    await driver.start(input=(noise(LARGE),))
    name = (await driver.blobs.keys())[0].rpartition("/")[2]
    forged = Payload(metadata={"encoding": "json/plain", REFERENCE: name}, data=b'"x"')
    await driver.signal(input=(forged,))
    await driver.finish(await driver.take())
    assert any(getattr(event.attributes, "input", ()) == (forged,) for event in await driver.history())
    assert driver.puts == 2
