"""Schedules on DynamoDB: woken by the sweeper of a container, and by the function on the delay queue; their runs are
started once each, and the end of one lets the next begin."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.errors import NotFound

from stepwell_server.frontend.routes import HANDLERS
from tests.integration.aws.test_wake_ups import Process, delivered, process, swept
from tests.support.aws.cells import Cell
from tests.support.engine import Driver
from tests.support.scheduled import schedule


async def created(parts: Process, policy: Overlap) -> None:
    request = r.CreateScheduleRequest(schedule_id="s/1", schedule=schedule(timedelta(seconds=1), policy))
    await HANDLERS["CreateSchedule"](parts.engine, request)


async def described(parts: Process) -> r.DescribeScheduleResponse:
    request = r.DescribeScheduleRequest(schedule_id="s/1")
    return await HANDLERS["DescribeSchedule"](parts.engine, request)  # type: ignore[no-any-return]


async def until_acted(parts: Process, times: int) -> r.DescribeScheduleResponse:
    async with asyncio.timeout(90):
        while (found := await described(parts)).info.action_count < times:
            await asyncio.sleep(0.1)
    return found


def check(found: r.DescribeScheduleResponse) -> None:
    """Each time once, in their order."""
    times = [action.schedule_time for action in found.info.recent_actions]
    assert times == sorted(set(times))
    assert all(time.microsecond == 0 for time in times)


@pytest.mark.parametrize("functions", [False, True])
async def test_each_time_is_acted_on_once(cell: Cell, functions: bool) -> None:
    async with process(cell, functions=functions) as parts:
        feeder = delivered(parts, drop=False) if functions else swept(parts)
        async with feeder:
            await created(parts, Overlap.ALLOW_ALL)
            found = await until_acted(parts, 3)
            patch = r.PatchScheduleRequest(schedule_id="s/1", patch=r.SchedulePatch(pause="enough"))
            await HANDLERS["PatchSchedule"](parts.engine, patch)
            check(found)
            found = await described(parts)
            started = [action.start_workflow_result for action in found.info.recent_actions]
            assert len({run.workflow_id for run in started if run is not None}) == found.info.action_count
            for run in started:
                assert run is not None
                history = await Driver(parts.engine, None).history(run.workflow_id)  # type: ignore[arg-type]
                assert history[0].attributes.original_execution_run_id == run.run_id


async def test_the_end_of_a_run_lets_the_next_begin(cell: Cell) -> None:
    async with process(cell, functions=False) as parts, swept(parts):
        await created(parts, Overlap.BUFFER_ONE)
        async with asyncio.timeout(60):
            # A wake-up that is late finds several times at once: then one waits before the first is told to have begun.
            while not ((found := (await described(parts)).info).buffer_size and found.action_count):
                await asyncio.sleep(0.1)
        assert (found.action_count, found.buffer_size) == (1, 1)
        driver = Driver(parts.engine, None)  # type: ignore[arg-type]
        await driver.finish(await driver.take())
        check(await until_acted(parts, 2))
        await HANDLERS["DeleteSchedule"](parts.engine, r.DeleteScheduleRequest(schedule_id="s/1"))
        with pytest.raises(NotFound):
            await described(parts)
