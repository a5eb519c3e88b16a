"""What is left to the background is waited for, also what it leaves there itself; behind the end nothing is begun."""

import asyncio

from stepwell_server.common.background import Background
from stepwell_server.common.principals import acting, current


async def test_what_tasks_spawn_is_waited_for_as_well() -> None:
    background, done = Background(), asyncio.Event()

    async def second() -> None:
        await asyncio.sleep(0)
        done.set()

    async def first() -> None:
        await asyncio.sleep(0)
        background.spawn(second())

    background.spawn(first())
    await background.drain(30.0)
    assert done.is_set()


async def test_what_is_spawned_for_a_caller_is_not_the_callers() -> None:
    background, known = Background(), []

    async def says() -> None:
        known.append(current())

    with acting("alice"):
        background.spawn(says())
        assert current() == "alice"
    await background.drain(30.0)
    assert known == [""]


async def test_what_a_cancelled_task_spawns_ends_as_well() -> None:
    """A write that is interrupted is left to the background again."""
    background = Background()
    begun: list[str] = []

    async def waits(name: str) -> None:
        begun.append(name)
        await asyncio.Event().wait()

    async def interrupted() -> None:
        try:
            await waits("write")
        except asyncio.CancelledError:
            background.spawn(waits("what became of it"))
            raise

    background.spawn(interrupted())
    await asyncio.sleep(0)
    await background.drain(0.0)
    assert begun[0] == "write"
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_behind_the_end_nothing_is_begun() -> None:
    background = Background()
    begun: list[str] = []

    async def work() -> None:
        begun.append("work")

    await background.drain(0.0)
    background.spawn(work())
    await asyncio.sleep(0)
    assert begun == [] and asyncio.all_tasks() == {asyncio.current_task()}
