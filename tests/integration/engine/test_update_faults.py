"""Updates where the engine dies or loses an answer between any two of its writes; late, repeated and lost messages
(MS-27).
"""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import Unavailable
from stepwell.api.events import WorkflowExecutionUpdateAccepted, WorkflowExecutionUpdateCompleted
from stepwell.api.updates import UpdateOutcome

from stepwell_server.history.codec import encode_commit
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import Driver, ShiftedClock, payload, running, types
from tests.support.updates import ADMITTED, accepted, completed, idle, poll, rejected, update

DOWN = "the store is out of reach"


async def once(driver: Driver) -> None:
    """It has one acceptance and one outcome."""
    bodies = [event.attributes for event in await driver.history()]
    assert sum(isinstance(body, WorkflowExecutionUpdateAccepted) for body in bodies) == 1
    assert sum(isinstance(body, WorkflowExecutionUpdateCompleted) for body in bodies) == 1
    assert (await poll(driver)).outcome == UpdateOutcome(success=payload("result"))


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("crash", ["behind the claim", "answer of the claim lost", "answer of the commit lost"])
async def test_a_crash_at_each_write_of_the_admission(tmp_path: Path, crash: str, restart: bool) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await idle(driver)
        store = driver.store
        store.reset()
        faults = {
            "behind the claim": store.refuse,
            "answer of the claim lost": store.lose_marker,
            "answer of the commit lost": store.lose_answer,
        }
        faults[crash].append(StoreUnavailable(DOWN))
        with pytest.raises(Unavailable, match=DOWN):
            await update(driver, stage=ADMITTED)
        assert store.counts["put_marker"] == 1
        if not restart:
            await _goes_on(driver)
    if restart:
        async with running(path) as driver:
            await _goes_on(driver)


async def _goes_on(driver: Driver) -> None:
    asking = [asyncio.create_task(update(driver)) for _ in range(3)]
    task = await driver.take()
    assert len(task.updates) == 1
    await driver.complete(task.task_token, accepted(), completed())
    for each in asking:
        assert (await each).outcome == UpdateOutcome(success=payload("result"))
    await once(driver)


async def test_what_is_admitted_outlives_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
    async with running(path) as driver:
        task = await driver.take()
        assert [shown.request.input.args for shown in task.updates] == [payload("u")]
        await driver.complete(task.task_token, accepted(), completed())
        await once(driver)


async def test_a_task_that_was_handed_out_before_a_restart_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        held = await driver.take()
    async with running(path) as driver:
        again = await driver.take()
        reply = await driver.complete(held.task_token, accepted(), completed())
        assert reply.outcome is CompletionOutcome.ACCEPTED
        late = await driver.complete(again.task_token, accepted(), completed())
        assert late.outcome is CompletionOutcome.STALE
        await once(driver)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("outcome", [CompletionOutcome.ACCEPTED, CompletionOutcome.DROPPED])
async def test_the_answer_to_the_completion_is_lost(tmp_path: Path, outcome: CompletionOutcome, restart: bool) -> None:
    path = tmp_path / "orders.db"
    commands = (accepted(), completed()) if outcome is CompletionOutcome.ACCEPTED else (rejected(),)
    async with running(path) as driver:
        await idle(driver)
        before = types(await driver.history())
        await update(driver, stage=ADMITTED)
        task = await driver.take()
        driver.store.lose_answer.append(StoreUnavailable(DOWN))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, *commands, nonce="same")
        if not restart:
            assert (await driver.complete(task.task_token, *commands, nonce="same")).outcome is outcome
    async with running(path) as driver:
        assert (await driver.complete(task.task_token, *commands, nonce="same")).outcome is outcome
        if outcome is CompletionOutcome.ACCEPTED:
            await once(driver)
        else:
            assert types(await driver.history()) == before


async def test_the_completion_is_never_written(tmp_path: Path) -> None:
    async with running(tmp_path / "orders.db") as driver:
        await idle(driver)
        asking = asyncio.create_task(update(driver))
        task = await driver.take()
        driver.store.refuse.append(StoreUnavailable(DOWN))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, accepted(), completed(), nonce="one")
        assert not asking.done()
        await driver.complete(task.task_token, accepted(), completed(), nonce="one")
        assert (await asking).outcome == UpdateOutcome(success=payload("result"))
        await once(driver)


async def test_a_dispatch_that_is_lost_is_made_up_for_by_the_deadline(tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with running(tmp_path / "orders.db", clock) as driver:
        await idle(driver)
        await update(driver, stage=ADMITTED)
        lost = await driver.take()
        driver.engine._handed_out.discard(driver.store.commits[-1].key)  # as if nobody had got it
        clock.shift = timedelta(seconds=31)
        armed = driver.store.commits[-1].deadline
        assert armed is not None and armed <= clock.now(), "it is armed for this"
        await driver.engine._fire(driver.store.commits[-1].key, armed)
        task = await driver.take(timedelta(seconds=5))
        assert task.attempt == lost.attempt and len(task.updates) == 1
        await driver.complete(task.task_token, accepted(), completed())
        await once(driver)


async def test_callers_that_go_away_leave_an_update_that_is_taken() -> None:
    async with running() as driver:
        await idle(driver)
        for turns in range(6):
            calling = asyncio.ensure_future(update(driver, f"u{turns}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
            await update(driver, f"u{turns}", ADMITTED)
        task = await driver.take()
        assert [shown.request.meta.update_id for shown in task.updates] == [f"u{turns}" for turns in range(6)]


async def test_two_at_once_with_one_id_are_one() -> None:
    async with running() as driver:
        await idle(driver)
        asking = [asyncio.create_task(update(driver)) for _ in range(5)]
        task = await driver.take()
        assert len(task.updates) == 1
        await driver.complete(task.task_token, accepted(), completed())
        for each in asking:
            assert (await each).outcome == UpdateOutcome(success=payload("result"))
        await once(driver)


# --- budgets (design section 12) ---


async def test_an_update_is_one_admission_with_its_marker_and_one_completion() -> None:
    async with running() as driver:
        await idle(driver)
        driver.store.reset()
        asking = asyncio.create_task(update(driver))
        await driver.complete((await driver.take()).task_token, accepted(), completed())
        await asking
        assert driver.store.writes["append"] == 2 and driver.store.writes["put_marker"] == 1
        driver.store.reset()
        await asyncio.gather(*(update(driver) for _ in range(5)))
        assert driver.store.writes == {}, "a repeat writes nothing"


async def test_a_rejected_update_costs_the_same_and_leaves_no_event() -> None:
    async with running() as driver:
        await idle(driver)
        driver.store.reset()
        asking = asyncio.create_task(update(driver))
        await driver.complete((await driver.take()).task_token, rejected())
        await asking
        assert driver.store.writes["append"] == 2
        assert [event for commit in driver.store.commits for event in commit.events] == []


async def test_the_hundred_and_fiftieth_update_costs_what_an_earlier_one_did() -> None:
    """What is remembered of ended updates is bounded."""
    async with running() as driver:
        await idle(driver)
        costs: list[tuple[int, int, int]] = []
        for number in range(150):
            driver.store.reset()
            asking = asyncio.create_task(update(driver, f"update {number:05}"))
            task = await driver.take()
            name = task.updates[0].request.meta.update_id
            await driver.complete(task.task_token, accepted(name), completed(name))
            await asking
            counts = driver.store.counts
            sizes = [len(encode_commit(commit).head) for commit in driver.store.commits]
            costs.append((counts["append"] + counts["put_marker"], counts["get"] + counts["get_marker"], sum(sizes)))
        writes, reads, sizes = zip(*costs, strict=True)
        assert set(writes) == {3}
        assert max(reads[100:]) <= max(reads[64:100]) <= 2
        assert max(sizes[100:]) < 1.1 * max(sizes[70:100])
