"""What a firing says of the write that its deadline was armed for, and that a repeat costs no commit where deadlines
may fire twice."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api.commands import CompleteWorkflowExecution, StartTimer

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.history.engine import Engine
from tests.support.counting import CountingStore
from tests.support.engine import Driver, activity, payload

KEY = ExecutionKey("default", "order-1")
SETTINGS = EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False)


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    backend = embedded_backend(":memory:")
    yield backend
    await backend.close()


@pytest.fixture
async def engine(backend: Backend) -> AsyncIterator[Engine]:
    engine = Engine(
        log=backend.log,
        timers=backend.timers,
        visibility=backend.visibility,
        clock=backend.clock,
        ids=backend.ids,
        token_key=backend.token_key,
        settings=SETTINGS,
    )
    await engine.start()
    yield engine
    await engine.stop()


async def seq_of(backend: Backend) -> int:
    head = await backend.log.head(KEY)
    assert head is not None
    return head.seq


async def test_a_start_that_has_not_landed_is_waited_for(engine: Engine, backend: Backend) -> None:
    now = backend.clock.now()
    assert not await engine.fire(KEY, now, Awaited(1))
    await Driver(engine, CountingStore(backend.log)).start()
    assert await engine.fire(KEY, now, Awaited(1))


async def test_of_a_closed_run_the_seq_decides(engine: Engine, backend: Backend) -> None:
    driver = Driver(engine, CountingStore(backend.log))
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("done")))
    now, seq = backend.clock.now(), await seq_of(backend)
    assert await engine.fire(KEY, now, Awaited(1)) and await engine.fire(KEY, now, Awaited(seq))
    assert not await engine.fire(KEY, now, Awaited(seq + 1))  # of the next start
    assert await seq_of(backend) == seq


async def test_a_repeat_of_a_firing_commits_nothing(engine: Engine, backend: Backend) -> None:
    driver = Driver(engine, CountingStore(backend.log))
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, StartTimer(timer_id="t", start_to_fire_timeout=timedelta(hours=1)))
    head = await backend.log.head(KEY)
    assert head is not None and head.state.armed is not None
    armed = head.state.armed
    assert await engine.fire(KEY, armed - timedelta(seconds=1), Awaited(head.seq))
    assert await seq_of(backend) == head.seq
    # The armed one itself always commits its re-arm, also when a clock went back.
    assert await engine.fire(KEY, armed, Awaited(head.seq))
    rearmed = await backend.log.head(KEY)
    assert rearmed is not None and rearmed.seq == head.seq + 1
    assert rearmed.state.armed is not None and rearmed.state.armed >= armed


async def test_an_item_that_has_not_landed_is_waited_for(engine: Engine, backend: Backend) -> None:
    driver = Driver(engine, CountingStore(backend.log))
    run_id = await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("a", eager=False))
    head = await backend.log.head(KEY)
    assert head is not None
    (scheduled,) = head.state.activities
    now = backend.clock.now()
    assert not await engine.fire(KEY, now, Awaited(0, run_id, scheduled, 1))
    await driver.poll_activities()
    assert await engine.fire(KEY, now, Awaited(0, run_id, scheduled, 1))
    assert not await engine.fire(KEY, now, Awaited(0, run_id, scheduled, 2))
    assert await engine.fire(KEY, now, Awaited(0, "another run", scheduled, 2))
