"""The table of what things cost on AWS, counted: for the tests of budgets, and for ``docs/cost.md``."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from tests.support.aws.cells import Cell
from tests.support.aws.meter import Counted
from tests.support.aws.metered import MeteredCell, metered_container, metered_functions
from tests.support.aws.metered_runs import MeteredRun, activity, marker, timer, warm

MODES = ("fused", "eager", "queued")
PLACES: dict[str, Callable[[Cell], Any]] = {"functions": metered_functions, "container": metered_container}


@asynccontextmanager
async def warmed(cell: Cell, place: str) -> AsyncIterator[MeteredCell]:
    async with PLACES[place](cell) as metered:
        await warm(metered)
        yield metered


async def whole_run(cell: MeteredCell, mode: str, activities: int) -> Counted:
    """From its start until nothing of it is left to do: the feed, its retention, and its deadlines as well."""
    run = MeteredRun(cell, f"{mode}-{activities}")
    with cell.measured() as cost:
        await getattr(run, mode)(activities)
        await cell.fire()
        await cell.feed()
    return cost()


async def start(cell: MeteredCell) -> Counted:
    with cell.measured() as cost:
        await MeteredRun(cell, "start").start()
    return cost()


async def steps(cell: MeteredCell, mode: str, count: int) -> list[Counted]:
    """Each of the steps between the first and the close, without the feed's own work behind the close."""
    run = MeteredRun(cell, f"{mode}-steps-{count}")
    costs = []
    task = await run.workflow_task(run.start())
    last: Any = await run.complete(task.task_token, activity(0, eager=True), slots=1) if mode == "fused" else task
    await cell.feed()
    for number in range(1, count + 1):
        with cell.measured() as cost:
            last = await getattr(run, f"{mode}_step")(last, number)
            await cell.feed()
        costs.append(cost())
    await (run.fused_close(last) if mode == "fused" else run.close(last.task_token))
    return costs


async def signal(cell: MeteredCell) -> tuple[Counted, Counted]:
    """The signal, and the workflow task that it causes."""
    run = MeteredRun(cell, "signal")
    task = await run.workflow_task(run.start())
    await run.complete(task.task_token)
    await cell.feed()
    with cell.measured() as whole:
        with cell.measured() as sent:
            task = await run.workflow_task(run.signal())
        await run.complete(task.task_token)
        await cell.feed()
    total = whole()
    signalled = sent()
    return signalled, total.minus(signalled)


async def timed(cell: MeteredCell) -> Counted:
    """A timer: set, fired, and what the workflow does about it; and before, the deadline of the start, which finds
    nothing to do and arms that of the timer."""
    run = MeteredRun(cell, "timer")
    task = await run.workflow_task(run.start())
    await cell.feed()
    with cell.measured() as cost:
        await run.complete(task.task_token, timer(timedelta(minutes=5)))
        await cell.feed()
        task = await run.workflow_task(cell.fire(timedelta(minutes=5, seconds=1)))
        await run.complete(task.task_token)
        await cell.feed()
    return cost()


async def local(cell: MeteredCell, count: int) -> Counted:
    """A workflow task with so many local activities, compared with one that has none."""
    costs = []
    for markers in (0, count):
        run = MeteredRun(cell, f"local-{markers}")
        task = await run.workflow_task(run.start())
        with cell.measured() as cost:
            await run.complete(task.task_token, *(marker() for _ in range(markers)))
            await cell.feed()
        costs.append(cost())
    return costs[1].minus(costs[0])


async def fan_out(cell: MeteredCell, activities: int) -> Counted:
    run = MeteredRun(cell, f"fan-out-{activities}")
    with cell.measured() as cost:
        await run.fan_out(activities)
    return cost()


FAN_OUTS = (10, 30)
LONG = 60
"""Steps after which numbers in a step's item are as long as they get in most runs."""


async def operations(new_cell: Callable[[], Cell], place: str) -> dict[str, Counted]:
    """By name. In cells of their own where something stays behind that others would meet."""
    alone: dict[str, Callable[[MeteredCell], Awaitable[Counted]]] = {"start": start, "timer": timed}
    found: dict[str, Counted] = {}
    for name, count in alone.items():
        async with warmed(new_cell(), place) as cell:
            found[name] = await count(cell)
    async with warmed(new_cell(), place) as cell:
        for mode in MODES:
            found[f"{mode} step"] = (await steps(cell, mode, 2))[-1]
        late = (await steps(cell, "fused", LONG))[-10:]
        found["late fused step"] = max(late, key=lambda cost: cost.stored["exec put_item"])
        for size in FAN_OUTS:
            found[f"fan-out of {size}"] = await fan_out(cell, size)
        found["local activity"] = await local(cell, 1)
        found["signal"], found["task of a signal"] = await signal(cell)
    return found


async def runs(cell: Cell, place: str, activities: tuple[int, ...]) -> dict[str, Counted]:
    """Whole runs by mode and number of activities, such as ``fused 10``."""
    async with warmed(cell, place) as metered:
        return {f"{mode} {count}": await whole_run(metered, mode, count) for mode in MODES for count in activities}
