"""Two containers over the same tables whose clocks are minutes apart: nothing is lost or doubled, and what is early or
late is so by no more than that (docs/architecture/failure-model.md)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from stepwell.api import events as e
from stepwell.client import Client
from stepwell.worker import Worker

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.system import SystemClock
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.engine import Engine
from tests.kill.workload import SIGNALS, TASK_QUEUE, KillTestWorkflow, add, expected_total, flaky
from tests.support.aws.cells import Cell
from tests.support.aws.clock import StandingClock
from tests.support.aws.containers import served_container
from tests.support.counting import CountingStore
from tests.support.engine import Driver, types
from tests.support.sample_commits import EPOCH

APART = timedelta(minutes=4)
KEY = ExecutionKey("default", "order-1")
_ENDS = (e.ActivityTaskCompleted, e.ActivityTaskFailed, e.ActivityTaskTimedOut)


class OffClock(SystemClock):
    def __init__(self, by: timedelta) -> None:
        super().__init__()
        self._by = by

    def now(self) -> datetime:
        return super().now() + self._by


class Apart:
    def __init__(self, slow: Driver, fast: Driver, clocks: list[StandingClock]) -> None:
        self.slow, self.fast, self._clocks = slow, fast, clocks

    def go(self, by: timedelta) -> None:
        for clock in self._clocks:
            clock.go(by)


@pytest.fixture
async def apart(cell: Cell) -> AsyncIterator[Apart]:
    clocks = [StandingClock(EPOCH), StandingClock(EPOCH + APART)]
    backends = [await aws_backend(AwsSettings(cell.names.cell), clients=AwsClients(), clock=clock) for clock in clocks]
    drivers = []
    for backend in backends:
        engine = Engine(
            log=backend.log,
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=EngineSettings(process=ProcessKind.ONE_OF_MANY, sweeps=False),
        )
        await engine.start()
        drivers.append(Driver(engine, CountingStore(backend.log)))  # type: ignore[arg-type]
    yield Apart(*drivers, clocks)
    for driver, backend in zip(drivers, backends, strict=True):
        await driver.engine.stop()
        await backend.close()


async def test_a_run_times_out_early_by_no_more_than_the_clocks_are_apart(apart: Apart) -> None:
    timeout = timedelta(minutes=5)
    await apart.slow.start(workflow_run_timeout=timeout)
    apart.go(timeout - APART - timedelta(seconds=1))
    assert await apart.fast.engine.fire(KEY, EPOCH + timeout)
    assert "WorkflowExecutionTimedOut" not in types(await apart.fast.history())
    apart.go(timedelta(seconds=1))
    assert await apart.fast.engine.fire(KEY, EPOCH + timeout)
    assert types(await apart.slow.history())[-1] == "WorkflowExecutionTimedOut"


async def test_and_late_by_no_more(apart: Apart) -> None:
    timeout = timedelta(minutes=5)
    await apart.fast.start(workflow_run_timeout=timeout)
    apart.go(timeout + APART - timedelta(seconds=1))
    assert await apart.slow.engine.fire(KEY, EPOCH + APART + timeout)
    assert "WorkflowExecutionTimedOut" not in types(await apart.fast.history())
    apart.go(timedelta(seconds=1))
    assert await apart.slow.engine.fire(KEY, EPOCH + APART + timeout)
    assert types(await apart.slow.history())[-1] == "WorkflowExecutionTimedOut"


async def test_time_within_a_run_never_goes_back(apart: Apart) -> None:
    """A task that the fast one hands out is answered at the slow one, whose token is minutes from the future."""
    await apart.fast.start()
    await apart.slow.signal(name="one")
    task = await apart.fast.take()
    await apart.slow.signal(name="two")
    assert (await apart.slow.complete(task.task_token)).outcome == "ACCEPTED"
    await apart.fast.signal(name="three")
    assert (await apart.slow.complete((await apart.slow.take()).task_token)).outcome == "ACCEPTED"
    events = await apart.slow.history()
    assert types(events).count("WorkflowExecutionSignaled") == 3
    assert all(before.event_time <= after.event_time for before, after in pairwise(events))
    assert events == await apart.fast.history()


def _check(number: int, result: dict[str, object], events: list[e.HistoryEvent]) -> None:
    assert result["total"] == expected_total(number)
    assert result["signals"] == [f"{number}-{index}" for index in range(SIGNALS)]
    assert [event.event_id for event in events] == list(range(1, len(events) + 1))
    assert all(before.event_time <= after.event_time for before, after in pairwise(events))
    scheduled = [event.event_id for event in events if isinstance(event.attributes, e.ActivityTaskScheduled)]
    ended = Counter(event.attributes.scheduled_event_id for event in events if isinstance(event.attributes, _ENDS))
    assert all(ended[event_id] == 1 for event_id in scheduled)


@pytest.mark.slow
async def test_runs_of_containers_that_are_apart_come_to_their_right_end(cell: Cell) -> None:
    """Each serves callers and workers of its own; the leases of timers are shared and stay where they are. They are
    apart by more than a lease lasts, and little more: a timer of the fast one may be fired by the slow one."""
    half = timedelta(seconds=8)
    functions = {"workflows": [KillTestWorkflow], "activities": [add, flaky]}
    async with (
        asyncio.timeout(170),
        served_container(cell, "slow", clock=OffClock(-half)) as slow,
        served_container(cell, "fast", clock=OffClock(half)) as fast,
        await Client.connect(slow.address) as one,
        await Client.connect(fast.address) as two,
        Worker(one, task_queue=TASK_QUEUE, **functions),  # type: ignore[arg-type]
        Worker(two, task_queue=TASK_QUEUE, **functions),  # type: ignore[arg-type]
    ):

        async def one_run(number: int) -> None:
            here, there = (one, two) if number % 2 else (two, one)
            run = KillTestWorkflow.run
            handle = await here.start_workflow(run, number, id=f"apart-{number}", task_queue=TASK_QUEUE)
            for index in range(SIGNALS):
                await there.get_workflow_handle(f"apart-{number}").signal("note", f"{number}-{index}")
            _check(number, await handle.result(), list((await handle.fetch_history()).events))

        await asyncio.gather(*(one_run(number) for number in range(6)))
        leases = TimerLeases(slow.container.parts.clients.service("dynamodb"), cell.names.ctl_table)
        while {lease.owner for lease in await leases.held(1)} != {"slow", "fast"}:
            await asyncio.sleep(0.5)
        before = {lease.partition: lease for lease in await leases.held(1)}
        while any(lease.counter < before[lease.partition].counter + 1 for lease in await leases.held(1)):
            await asyncio.sleep(0.5)
        assert {lease.partition: lease.owner for lease in await leases.held(1)} == {
            partition: lease.owner for partition, lease in before.items()
        }
