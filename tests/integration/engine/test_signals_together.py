"""A burst of signals to one workflow: few commits, all of them recorded, in the order of arrival."""

import asyncio

from stepwell.api.errors import NotFound, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionSignaled

from tests.support.engine import Driver, running


async def _signal_names(driver: Driver) -> list[str]:
    events = [event.attributes for event in await driver.history()]
    return [event.signal_name for event in events if isinstance(event, WorkflowExecutionSignaled)]


async def test_signals_that_wait_for_a_commit_share_the_next_one() -> None:
    async with running() as driver:
        await driver.start()
        driver.store.reset()
        await asyncio.gather(*[driver.signal(name=f"s{number}") for number in range(50)])
        assert driver.store.writes == {"append": 2}, "the first alone, the other 49 together"
        await driver.finish(await driver.take())
        assert await _signal_names(driver) == [f"s{number}" for number in range(50)]


async def test_a_refused_signal_does_not_hold_up_its_neighbours() -> None:
    async with running() as driver:
        run_id = await driver.start()
        results = await asyncio.gather(
            driver.signal(name="first"),
            driver.signal(name="other run", run_id="no-such-run"),
            driver.signal(name="once", request_id="same"),
            driver.signal(name="once", request_id="same"),
            driver.signal(name="last", run_id=run_id),
            return_exceptions=True,
        )
        assert isinstance(results[1], NotFound)
        assert [results[number] for number in (0, 2, 3, 4)] == [None] * 4
        await driver.finish(await driver.take())
        assert await _signal_names(driver) == ["first", "once", "last"]


async def test_a_run_that_closes_refuses_all_that_wait() -> None:
    async with running() as driver:
        await driver.start()
        await driver.finish(await driver.take())
        results = await asyncio.gather(*[driver.signal(name="late") for _ in range(5)], return_exceptions=True)
        assert [type(result) for result in results] == [WorkflowExecutionClosed] * 5


async def test_a_caller_that_goes_away_leaves_the_others() -> None:
    async with running() as driver:
        await driver.start()
        calls = [asyncio.ensure_future(driver.signal(name=f"s{number}")) for number in range(4)]
        await asyncio.sleep(0)
        calls[2].cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [results[number] for number in (0, 1, 3)] == [None] * 3
        await driver.finish(await driver.take())
        assert [name for name in await _signal_names(driver) if name != "s2"] == ["s0", "s1", "s3"]
