"""The promise of the timers under faults, by seed: a write that has landed is fired, whoever dies at whichever await,
however slow and unreliable the store is, wherever the clock jumps. On virtual time."""

import asyncio
from datetime import timedelta

import pytest

from tests.simulation.loop import Process
from tests.support.timer_world import TimerWorld


def _arming(
    world: TimerWorld, count: int, *, near: bool = False, deaths: tuple[str, ...] = ("before", "behind")
) -> None:
    """Writers of all kinds, over a minute."""

    async def one(number: int) -> None:
        random = world.random
        await asyncio.sleep(random.random() * 60)
        pause = random.choice([0, 0, 0.01, 1, 4, 20, 50])
        # One that dies right behind a write that took longer than this is the stream's to find.
        dies = random.choice(["", "", "", *deaths])
        if dies == "behind" and pause >= 50:
            dies = ""
        await world.write(number, random.choice([0, 0.2, 1, 3, 9.9, 25]), pause=pause, dies=dies, near=near)

    for number in range(count):
        world.spawn(one(number))


@pytest.mark.parametrize("seed", range(6))
def test_sweepers_that_die_and_steal_lose_nothing(seed: int) -> None:
    world = TimerWorld(seed, pause=0.002)

    async def main() -> None:
        world.trouble.longest, world.trouble.chance = 0.05, 0.03
        processes = [world.sweeper(name)[0] for name in "ab"]
        _arming(world, 120)
        for turn in range(6):
            await asyncio.sleep(world.random.random() * 20)
            processes.pop(world.random.randrange(len(processes))).kill()
            processes.append(world.sweeper(f"c{turn}")[0])
        world.trouble.chance = 0.0
        await asyncio.sleep(120)

    world.run(main)
    assert len(world.landed) > 60
    assert world.lags()[-1] < 60


@pytest.mark.parametrize("seed", range(4))
def test_a_clock_that_jumps_loses_nothing(seed: int) -> None:
    world = TimerWorld(seed)

    async def main() -> None:
        world.sweeper("a")
        for _ in range(4):
            _arming(world, 20, deaths=("before",))
            await asyncio.sleep(45)
            world.clock.jump(timedelta(seconds=world.random.choice([-3_000, -20, -1, 1, 20, 3_000])))
        world.trouble.chance = 0.0
        await asyncio.sleep(130)
        # What was due by a clock that has gone back is due when the clock is there again.
        latest = max(world.landed.values())
        if latest > world.clock.now():
            world.clock.jump(latest - world.clock.now())
        await asyncio.sleep(130)

    world.run(main)
    assert set(world.landed) == set(world.fired)


def _ticks(world: TimerWorld, *, doubled: bool = False) -> Process:
    """The minute's function: late at times, called twice at times, killed at times."""
    process = Process("tick")

    async def minutes() -> None:
        while True:
            tick = world.tick()
            for _ in range(2 if doubled and world.random.random() < 0.3 else 1):
                running = Process("call")
                running.spawn(tick.run())
                if doubled and world.random.random() < 0.2:
                    world.loop.call_later(world.random.random() * 0.5, running.kill)
            await asyncio.sleep(60 + world.random.random() * 5)

    process.spawn(minutes())
    return process


@pytest.mark.parametrize("seed", range(5))
def test_the_idle_feeder_loses_nothing(seed: int) -> None:
    world = TimerWorld(seed)

    async def main() -> None:
        world.queue.repeats = 0.1
        world.trouble.longest, world.trouble.chance = 0.05, 0.02
        _ticks(world, doubled=True)
        _arming(world, 80, near=True)
        for number in range(1_000, 1_040):
            world.spawn(world.write(number, 400 + world.random.random() * 300, near=True))
        await asyncio.sleep(800)
        world.trouble.chance = 0.0
        await asyncio.sleep(600)

    world.run(main)
    assert len(world.landed) > 70
    assert world.lags()[-1] < 130


def test_the_idle_feeder_is_within_about_a_second() -> None:
    world = TimerWorld(1)

    async def main() -> None:
        _ticks(world)
        await asyncio.sleep(5)
        for number in range(200):
            await world.write(number, world.random.random() * 700, near=True)
            await asyncio.sleep(0.7)
        await asyncio.sleep(720)

    world.run(main)
    lags = world.lags()
    assert len(lags) == 200 and lags[-1] < 1.2
    assert all(len(times) == 1 for times in world.fired.values())


@pytest.mark.parametrize("seed", range(4))
def test_what_sweepers_leave_behind_the_idle_feeder_finds_and_the_other_way_round(seed: int) -> None:
    """A container is killed for good, with deadlines in the table that nobody sent; later another one comes."""
    world = TimerWorld(seed)

    async def main() -> None:
        _ticks(world)
        for turn in range(2):
            process, sweeper = world.sweeper(f"s{turn}")
            await sweeper.ready()
            for number in range(40):
                world.spawn(world.write(turn * 100 + number, world.random.random() * 200))
            await asyncio.sleep(world.random.random() * 100)
            process.kill()
            await asyncio.sleep(world.random.random() * 100)
        await asyncio.sleep(400)

    world.run(main)
    assert len(world.landed) == 80
    assert world.lags()[-1] < 15 + 65 + 5


@pytest.mark.parametrize("skew", [-290.0, 290.0])
@pytest.mark.parametrize("swept", [True, False])
def test_writers_whose_clocks_are_off_as_far_as_aws_allows_lose_nothing(skew: float, swept: bool) -> None:
    world = TimerWorld(1)

    async def main() -> None:
        if swept:
            _, sweeper = world.sweeper("a")
            await sweeper.ready()
        else:
            _ticks(world)
        await asyncio.sleep(400)
        for number in range(60):
            await world.write(number, number * 12, near=not swept, skew=skew)
            await asyncio.sleep(1)
        await asyncio.sleep(1_100)

    world.run(main)
    assert len(world.landed) == 60
    # A delayed message waits as long as its writer meant, whatever the clock.
    assert world.lags()[-1] < (65 if swept else 295)


@pytest.mark.parametrize(("seed", "feeder"), [(0, "swept"), (1, "ticked"), (2, "both")])
def test_a_table_that_grows_loses_nothing_and_makes_nothing_late(seed: int, feeder: str) -> None:
    """Twice, under load, with writers that have not heard of it for as long as the test takes."""
    world = TimerWorld(seed)

    async def main() -> None:
        if feeder != "ticked":
            _, sweeper = world.sweeper("a")
            await sweeper.ready()
        if feeder != "swept":
            _ticks(world)
        for number in range(240):
            if number in (30, 130):
                world.grow(5 if number == 30 else 9)
            world.spawn(world.write(number, world.random.choice([0.2, 40, 900]), near=feeder != "swept"))
            await asyncio.sleep(10)
        await asyncio.sleep(1_000)

    world.run(main)
    assert len(world.landed) == 240
    assert world.lags()[-1] < 2.5
    versions = {int(key.partition("#")[0]) for key, rows in world.rows.rows.items() if rows}
    assert versions == {1, 2, 3}
