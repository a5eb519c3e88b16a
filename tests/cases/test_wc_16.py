"""WC-16: a backfill goes by its own overlap policy, its bounds hold whatever the jitter, and a repeated order is one.

The bounds (docs/semantics.md, LC-34): nominal times behind the start, up to the end, which counts.
"""

from datetime import datetime, timedelta

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.schedules import ScheduleState

from tests.support.scheduled import HOUR, T0, Scheduled, schedule, scheduled

SIX = r.BackfillRequest(start_time=T0 - 6 * HOUR, end_time=T0)
TIMES = [T0 - number * HOUR for number in range(5, -1, -1)]


async def nominal(s: Scheduled) -> list[datetime]:
    """What each run can read of its own time."""
    events = [await s.first_event(workflow_id) for workflow_id in await s.started()]
    return [
        msgspec.json.decode(event.search_attributes["StepwellScheduledStartTime"].data, type=datetime)
        for event in events
    ]


@pytest.mark.parametrize(
    "state",
    [ScheduleState(), ScheduleState(paused=True), ScheduleState(limited_actions=True)],
    ids=["open", "paused", "none left"],
)
async def test_allow_all_is_all_at_once(state: ScheduleState) -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(state=state))
        for _ in range(2):
            await s.patch(request_id="b", backfill=(msgspec.structs.replace(SIX, overlap_policy=Overlap.ALLOW_ALL),))
        assert await nominal(s) == TIMES
        assert (await s.describe()).info.action_count == 6


async def test_buffer_all_is_one_after_the_other() -> None:
    async with scheduled() as s:
        await s.create()
        await s.patch(backfill=(msgspec.structs.replace(SIX, overlap_policy=Overlap.BUFFER_ALL),))
        for number in range(1, 7):
            assert await nominal(s) == TIMES[:number]
            await s.finish()
        assert await nominal(s) == TIMES


async def test_without_a_policy_it_is_the_schedules_own() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.SKIP))
        await s.patch(backfill=(SIX,))
        assert await nominal(s) == TIMES[:1]
        assert (await s.describe()).info.overlap_skipped == 5


@pytest.mark.parametrize("jitter", [timedelta(0), timedelta(minutes=5)], ids=["exact", "jittered"])
async def test_the_bounds_do_not_depend_on_jitter(jitter: timedelta) -> None:
    """From 3:00 to 4:00."""
    definition = schedule()
    definition = msgspec.structs.replace(definition, spec=msgspec.structs.replace(definition.spec, jitter=jitter))
    three = T0.replace(hour=3)
    async with scheduled() as s:
        await s.create(schedule=definition)
        await s.patch(backfill=(r.BackfillRequest(start_time=three, end_time=three + HOUR),))
        assert await nominal(s) == [three + HOUR]
