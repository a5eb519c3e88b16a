"""A signal counts once, however late, often and beside whatever else it is repeated (MS-10, MS-16)."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import NotFound, Unavailable, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionSignaled

from stepwell_server.history.ports import StoreUnavailable
from tests.integration.engine.test_two_engines import drivers
from tests.support.engine import SHORT, Driver, running

__all__ = ["drivers"]
DOWN = "the store is out of reach"
REST = timedelta(seconds=0.5)


async def count(driver: Driver, name: str = "once", run_id: str = "") -> int:
    """Signals of that name in the history, after all that is buffered was numbered."""
    task = await driver.poll_workflow(SHORT)
    while task is not None:
        if task.execution.run_id == run_id or not run_id:
            await driver.complete(task.task_token)
            break
        task = await driver.poll_workflow(SHORT)
    events = [event.attributes for event in await driver.history(run_id=run_id)]
    return sum(isinstance(event, WorkflowExecutionSignaled) and event.signal_name == name for event in events)


async def many(driver: Driver, number: int = 200) -> None:
    """Other signals in between, with the workflow tasks that they need."""
    for _ in range(number // 50):
        await asyncio.gather(*(driver.signal(name="other") for _ in range(50)))
        await driver.complete((await driver.take()).task_token)


async def once(driver: Driver, key: str = "payment-17", **more: str) -> None:
    await driver.signal(name="once", idempotency_key=key, **more)


# --- a client's own repeats ---


async def test_a_repeat_behind_many_others_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        await driver.signal(name="once", request_id="same")
        await many(driver)
        await driver.signal(name="once", request_id="same")
    async with running(path) as driver:  # which has not kept it in memory
        await asyncio.gather(*(driver.signal(name="once", request_id="same") for _ in range(3)))
        await many(driver)
        await driver.signal(name="once", request_id="same")
        assert await count(driver) == 1


async def test_a_repeat_at_another_engine_adds_nothing(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    await one.start()
    await one.signal(name="once", request_id="same")
    await many(one, 100)
    await two.signal(name="once", request_id="same")
    await many(two, 100)
    await one.signal(name="once", request_id="same")
    await two.signal(name="once", request_id="same")
    assert await count(one) == 1


async def test_a_repeat_for_a_run_that_is_over_succeeds_and_does_not_reach_the_next() -> None:
    async with running() as driver:
        first = await driver.start()
        await driver.signal(name="once", request_id="same", run_id=first)
        await many(driver)
        await driver.signal(name="last")
        await driver.finish(await driver.take())
        await driver.signal(name="once", request_id="same")
        second = await driver.start()
        await driver.signal(name="once", request_id="same", run_id=first)
        await driver.signal(name="once", request_id="same")
        assert (await count(driver, run_id=second), await count(driver, run_id=first)) == (0, 1)


async def test_a_signal_costs_no_reads() -> None:
    async with running() as driver:
        await driver.start()
        await many(driver)
        await driver.signal()
        driver.store.reset()
        await many(driver)
        assert driver.store.counts["get"] == driver.store.counts["get_marker"] == driver.store.counts["put_marker"] == 0


async def test_a_start_is_recognised_behind_any_number_of_signals() -> None:
    """WC-03 (c): also one of an earlier run of the id."""
    async with running() as driver:
        first = await driver.start(request_id="first")
        await many(driver)
        assert await driver.start(request_id="first") == first
        await driver.signal()
        await driver.finish(await driver.take())
        second = await driver.start(request_id="second")
        await driver.take()
        await many_at_once(driver)
        assert await driver.start(request_id="first") == first
        assert await driver.start(request_id="second") == second


async def many_at_once(driver: Driver) -> None:
    await asyncio.gather(*(driver.signal(name="other") for _ in range(90)))


# --- a key of the sender's own ---


async def test_a_key_counts_once_behind_many_others_and_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        driver.store.reset()
        await once(driver)
        assert driver.store.writes == {"append": 1, "put_marker": 1}
        await once(driver)
        assert driver.store.writes == {"append": 1, "put_marker": 1}
        await many(driver)
        await once(driver)
    async with running(path) as driver:
        await once(driver)
        await once(driver, "payment-18")
        await many(driver)
        await asyncio.gather(*(once(driver, f"payment-{number}") for number in (17, 18, 19) for _ in range(5)))
        assert await count(driver) == 3
        await driver.start("order-2")
        await driver.signal("order-2", "once", idempotency_key="payment-17")
        described = await driver.describe("order-2")
        assert described.pending_workflow_task is not None


async def test_a_key_counts_once_for_all_runs_of_the_id() -> None:
    async with running() as driver:
        first = await driver.start()
        await once(driver, run_id=first)
        await many(driver)
        await driver.signal(name="last")
        await driver.finish(await driver.take())
        await once(driver)
        second = await driver.start()
        await once(driver)
        await once(driver, run_id=first)
        await once(driver, run_id=second)
        assert (await count(driver, run_id=second), await count(driver, run_id=first)) == (0, 1)
        assert driver.store.counts["put_marker"] == 1


async def test_a_run_that_replaces_another_does_not_get_its_repeats() -> None:
    """The commit that ends the one begins the other."""
    async with running() as driver:
        first = await driver.start(request_id="first")
        await driver.signal(name="once", request_id="same")
        await once(driver)
        second = await driver.start(workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
        await many(driver)
        await driver.signal(name="once", request_id="same")
        await once(driver)
        assert await driver.start(request_id="first") == first != second
        assert await count(driver, run_id=second) == 0


@pytest.mark.parametrize("others", [0, 200])
@pytest.mark.parametrize("crash", ["behind the claim", "answer of the claim lost", "answer of the commit lost"])
@pytest.mark.parametrize("restart", [False, True])
async def test_a_crash_at_each_write(tmp_path: Path, crash: str, others: int, restart: bool) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        store = driver.store
        faults: dict[str, list[StoreUnavailable]] = {
            "behind the claim": store.refuse,
            "answer of the claim lost": store.lose_marker,
            "answer of the commit lost": store.lose_answer,
        }
        faults[crash].append(StoreUnavailable(DOWN))
        with pytest.raises(Unavailable, match=DOWN):
            await once(driver)
        assert store.counts["put_marker"] == 1
        await many(driver, others)
        if not restart:
            await asyncio.gather(*(once(driver) for _ in range(3)))
            await many(driver, others)
            await once(driver)
            assert await count(driver) == 1
    if restart:
        async with running(path) as driver:
            await asyncio.gather(*(once(driver) for _ in range(3)))
            await many(driver, others)
            await once(driver)
            assert await count(driver) == 1
            assert driver.store.counts["put_marker"] == 0


async def test_a_caller_that_goes_away_leaves_a_claim_that_is_taken_over() -> None:
    async with running() as driver:
        await driver.start()
        for turns in range(6):
            calling = asyncio.ensure_future(once(driver, f"key {turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
            await once(driver, f"key {turns}")
        assert await count(driver) == 6


async def test_of_many_at_once_one_counts(drivers: tuple[Driver, Driver]) -> None:
    one, two = drivers
    await one.start()
    await asyncio.gather(*(once(driver) for _ in range(20) for driver in drivers))
    await many(one, 50)
    await many(two, 50)
    await asyncio.gather(*(once(driver) for driver in drivers))
    assert await count(one) == 1


async def test_a_claim_holds_for_the_time_of_the_retention() -> None:
    async with running(default_retention=REST) as driver:
        await driver.start()
        await once(driver)
        await many(driver)
        await once(driver)
        there = await driver.describe()
        while driver.engine._executions._clock.now() <= there.info.start_time + 3 * REST:
            await asyncio.sleep(0.05)
        await once(driver)
        await once(driver)
        assert await count(driver) == 2
        assert driver.store.counts["put_marker"] == 2


async def test_what_is_refused_claims_nothing() -> None:
    async with running() as driver:
        with pytest.raises(NotFound):
            await once(driver)
        first = await driver.start()
        with pytest.raises(NotFound):
            await once(driver, run_id="no-such-run")
        await driver.finish(await driver.take())
        with pytest.raises(WorkflowExecutionClosed):
            await once(driver)
        assert driver.store.counts["put_marker"] == 0
        await driver.start()
        with pytest.raises(WorkflowExecutionClosed):
            await once(driver, run_id=first)
        await once(driver)
        assert await count(driver) == 1


async def test_a_store_that_cannot_be_read_is_unavailable() -> None:
    async with running() as driver:
        await driver.start()
        await once(driver)
        await many(driver)
        driver.store.fail_get.append(StoreUnavailable(DOWN))
        with pytest.raises(Unavailable, match=DOWN):
            await once(driver)
        await once(driver)
        assert await count(driver) == 1
