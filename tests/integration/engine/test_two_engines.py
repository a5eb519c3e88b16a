"""Two engines over one store: what keeps a log right is put-if-absent, not a lock in one process (design section 3)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import Command
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import Unavailable

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.common.settings import EngineSettings, ProcessKind
from stepwell_server.history.engine import Engine
from tests.support.counting import CountingStore
from tests.support.engine import Driver, activity, types
from tests.support.updates import accepted, completed, idle, rejected, update


@pytest.fixture
async def drivers() -> AsyncIterator[tuple[Driver, Driver]]:
    backend = embedded_backend(":memory:")
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    engines = [
        Engine(
            log=store,  # type: ignore[arg-type]
            timers=backend.timers,
            visibility=backend.visibility,
            clock=backend.clock,
            ids=backend.ids,
            token_key=backend.token_key,
            settings=EngineSettings(process=ProcessKind.ONE_OF_MANY),
        )
        for _ in range(2)
    ]
    for engine in engines:
        await engine.start()
    yield Driver(engines[0], store), Driver(engines[1], store)
    for engine in engines:
        await engine.stop()
    await backend.close()


async def test_concurrent_signals_all_count_and_one_start_wins(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    runs = await asyncio.gather(one.start(request_id="same"), two.start(request_id="same"))
    assert runs[0] == runs[1]
    outcomes = await asyncio.gather(
        *(driver.signal(name=str(n)) for n in range(25) for driver in drivers), return_exceptions=True
    )
    assert all(outcome is None or isinstance(outcome, Unavailable) for outcome in outcomes)
    acknowledged = sum(outcome is None for outcome in outcomes)
    task = await one.take()
    assert acknowledged == 50 and types(task.events).count("WorkflowExecutionSignaled") == 50
    answers = await asyncio.gather(one.complete(task.task_token), two.complete(task.task_token))
    assert sorted(answer.outcome for answer in answers) == ["ACCEPTED", "STALE"]


async def test_what_one_holds_in_memory_is_checked_against_the_store(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    await one.start()
    task = await one.take()
    answer = await one.complete(task.task_token, activity("1"), slots=1)
    await two.signal()
    stale = await one.fused(answer, activity("2"), now=answer.commit_time)
    assert stale.outcome == "STALE"
    assert len(await one.history()) == len(await two.history())
    described = await two.describe()
    assert described.pending_workflow_task is not None


async def test_an_activity_that_ends_at_one_wakes_a_workflow_that_waits_at_the_other(
    drivers: tuple[Driver, Driver],
) -> None:
    one, two = drivers
    await one.start()
    task = await one.take()
    await one.complete(task.task_token, activity("1", eager=False), activity("2", eager=False))
    attempts = await one.poll_activities(maximum=2)
    assert len(attempts) == 2
    await two.done(attempts[0])
    task = await two.take()
    # The second ends at the one engine while the other commits the answer to the task.
    two.store.hold = asyncio.Event()
    completing = asyncio.ensure_future(two.complete(task.task_token))
    await asyncio.sleep(0.01)
    await_done = asyncio.ensure_future(one.done(attempts[1]))
    await asyncio.sleep(0.01)
    two.store.hold.set()
    two.store.hold = None
    assert (await completing).outcome == "ACCEPTED"
    assert [reply.error_code for reply in await await_done] == [""]
    for _ in range(100):
        if types(await one.history()).count("ActivityTaskCompleted") == 2:
            break
        await asyncio.sleep(0.01)
    assert types(await one.history()).count("ActivityTaskCompleted") == 2
    request = r.DescribeWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"))
    assert (await two.engine.describe_workflow(request)).pending_workflow_task is not None


async def test_a_refusal_is_never_made_from_an_old_state(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    await one.start()
    await two.signal()  # now both know the open run
    await one.finish(await one.take())
    second = await two.start()
    assert (await one.describe()).info.execution.run_id == second
    await one.signal()
    assert "WorkflowExecutionSignaled" not in types(await two.history())
    task = await two.take()
    assert "WorkflowExecutionSignaled" in types(task.events)


async def test_a_wait_at_one_ends_by_what_is_committed_at_the_other(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    await one.start()
    waiting = asyncio.ensure_future(one.result(timeout=timedelta(seconds=60)))
    await asyncio.sleep(0)
    await two.finish(await one.take())
    closed = await asyncio.wait_for(waiting, 10)
    assert closed.event_type == "WorkflowExecutionCompleted"


@pytest.mark.parametrize("command", [completed, rejected])
async def test_an_update_that_waits_at_one_hears_what_the_other_committed(
    drivers: tuple[Driver, Driver], command: Callable[[], Command]
) -> None:
    """A rejection is in its commit and nowhere else."""
    one, two = drivers
    await idle(one)
    waiting = asyncio.ensure_future(update(one, timeout=timedelta(seconds=60)))
    task = await one.take()
    commands = [command()] if command is rejected else [accepted(), command()]
    await two.complete(task.task_token, *commands)
    await two.signal()
    outcome = (await asyncio.wait_for(waiting, 10)).outcome
    assert outcome is not None and (outcome.failure is not None) == (command is rejected)


async def test_a_page_that_has_the_close_of_another_process_is_the_last(drivers: tuple[Driver, Driver]) -> None:
    """The state was read before the close, the page behind it."""
    one, two = drivers
    run_id = await one.start()
    task = await one.take()
    read = one.store.read_events

    async def late(*arguments, **more):
        one.store.read_events = read
        await two.finish(task)
        return await read(*arguments, **more)

    one.store.read_events = late
    execution = WorkflowExecution(workflow_id="order-1", run_id=run_id)
    page = await one.engine.get_history(r.GetHistoryRequest(execution=execution, wait_new_event=True))
    assert types(page.events)[-1] == "WorkflowExecutionCompleted" and not page.next_page_token
