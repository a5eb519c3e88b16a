"""The simulation's own loop: seeded, on virtual time, and a kill that runs nothing more of what it killed."""

import asyncio
import threading
from random import Random

import pytest

from tests.simulation.loop import Process, SimulatedLoop, no_threads


def _order_of_wakes(seed: int) -> list[int]:
    loop = SimulatedLoop(Random(seed))
    order: list[int] = []

    async def sleeper(number: int) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        order.append(number)

    async def main() -> None:
        await asyncio.gather(*(sleeper(number) for number in range(8)))

    try:
        loop.run_until_complete(main())
    finally:
        loop.bury()
        loop.close()
    return order


def test_one_seed_is_one_schedule() -> None:
    assert _order_of_wakes(7) == _order_of_wakes(7)
    assert len({tuple(_order_of_wakes(seed)) for seed in range(20)}) > 10


def test_an_idle_loop_jumps_to_the_next_timer() -> None:
    loop = SimulatedLoop(Random(1), pause=0.0)

    async def main() -> float:
        began = loop.time()
        await asyncio.sleep(86_400)
        return loop.time() - began

    assert loop.run_until_complete(main()) == pytest.approx(86_400)
    loop.close()


def test_a_killed_process_runs_no_cleanup() -> None:
    loop = SimulatedLoop(Random(1))
    cleaned: list[str] = []

    async def victim() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            cleaned.append("too late")

    async def main() -> None:
        process = Process("victim")
        process.spawn(victim())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(100)
        assert cleaned == []

    loop.run_until_complete(main())
    loop.bury()
    loop.close()


def test_threads_and_executors_are_refused() -> None:
    loop = SimulatedLoop(Random(1))

    async def main() -> None:
        with pytest.raises(RuntimeError, match="one thread"):
            await asyncio.get_running_loop().run_in_executor(None, print)
        with no_threads(), pytest.raises(RuntimeError, match="one thread"):
            threading.Thread(target=print).start()

    loop.run_until_complete(main())
    loop.close()
