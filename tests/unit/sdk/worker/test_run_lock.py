"""The lock of a run: in order, and never lost with one that gave up waiting."""

import asyncio

from stepwell.worker.run_lock import RunLock


async def test_those_who_wait_have_it_in_their_order_and_nobody_comes_in_between() -> None:
    lock, had = RunLock(), list[str]()

    async def have(name: str) -> None:
        await lock.take()
        had.append(name)
        lock.release()

    assert lock.try_take()
    waiting = [asyncio.create_task(have(name)) for name in ("first", "second")]
    await asyncio.sleep(0)
    assert not lock.try_take()
    lock.release()
    assert not lock.locked
    assert not lock.try_take(), "free, but somebody waits for it"
    await asyncio.gather(*waiting)
    assert had == ["first", "second"]
    assert lock.try_take()


async def test_a_turn_that_is_cancelled_is_the_next_ones() -> None:
    lock = RunLock()
    await lock.take()
    waiting = [asyncio.create_task(lock.take()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    lock.release()
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert [task.cancelled() for task in waiting] == [True, True, False]
    assert lock.locked
    lock.release()
    assert lock.try_take()
