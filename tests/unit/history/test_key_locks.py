"""Locks by key: in order, free of leaks, and a waiter that goes away does not keep the lock."""

import asyncio

import pytest

from stepwell_server.history.key_locks import KeyLocks


async def test_holders_take_turns_in_order() -> None:
    locks = KeyLocks()
    order: list[int] = []

    async def hold(number: int) -> None:
        await locks.take("key")
        order.append(number)
        await asyncio.sleep(0)
        locks.release("key")

    await asyncio.gather(*(hold(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert locks.try_take("key") and not locks.try_take("key") and locks.try_take("other")


async def test_a_cancelled_waiter_is_passed_over() -> None:
    locks = KeyLocks()
    assert locks.try_take("key")
    first, second = (asyncio.ensure_future(locks.take("key")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    locks.release("key")
    await second
    locks.release("key")
    assert locks.try_take("key")


async def test_a_waiter_cancelled_as_its_turn_comes_passes_the_lock_on() -> None:
    locks = KeyLocks()
    assert locks.try_take("key")
    first, second = (asyncio.ensure_future(locks.take("key")) for _ in range(2))
    await asyncio.sleep(0)
    locks.release("key")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await asyncio.wait_for(second, 30)
