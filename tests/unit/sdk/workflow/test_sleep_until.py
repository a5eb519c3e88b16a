"""``workflow.sleep_until``: a moment of any time zone (TM-04)."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from stepwell import workflow
from stepwell.api.commands import StartTimer
from stepwell.replay.errors import WorkflowTaskError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

from tests.support.histories import START, Driver

ROME = ZoneInfo("Europe/Rome")


@workflow.defn
async def until(instant: datetime) -> str:
    await workflow.sleep_until(instant)
    return workflow.now().isoformat()


@pytest.mark.parametrize("cache", [True, False])
def test_the_timer_is_as_long_as_the_way_to_the_moment(cache: bool) -> None:
    d = Driver(until, START + timedelta(days=40), cache=cache)
    assert d.task().commands == (StartTimer(timer_id="1", start_to_fire_timeout=timedelta(days=40)),)
    d.history.pass_time(40 * 86_400)
    d.history.timer_fired()
    d.task()
    assert d.value() == (START + timedelta(days=40)).isoformat()
    d.replay()


@workflow.defn
async def hours_of_the_day_of_change(fold: int) -> None:
    """02:30 comes twice on 25 October 2026 in Rome."""
    await workflow.sleep_until(datetime(2026, 10, 25, 2, 30, tzinfo=ROME, fold=fold))


@pytest.mark.parametrize(("fold", "moment"), [(0, "00:30"), (1, "01:30")])
def test_a_change_of_the_clock(fold: int, moment: str) -> None:
    d = Driver(hours_of_the_day_of_change, fold)
    (command,) = d.task().commands
    assert isinstance(command, StartTimer)
    due = START + command.start_to_fire_timeout
    assert due.astimezone(UTC).isoformat() == f"2026-10-25T{moment}:00+00:00"


@pytest.mark.parametrize("before", [timedelta(0), timedelta(days=1)])
def test_a_moment_that_has_passed_takes_no_timer(before: timedelta) -> None:
    d = Driver(until, START - before)
    d.task()
    assert d.value() == START.isoformat()


@workflow.defn
async def naive() -> None:
    await workflow.sleep_until(datetime(2027, 1, 1))  # noqa: DTZ001 - what is tested


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(WorkflowTaskError, match="2027-01-01T00:00:00 has no time zone; add one"):
        Driver(naive).task()


@workflow.defn
async def soon() -> bool:
    instant = (workflow.now() + timedelta(milliseconds=50)).astimezone(ROME)
    await workflow.sleep_until(instant)
    return workflow.now() >= instant


async def test_on_the_engine() -> None:
    async with await DevEnvironment.start() as env:
        async with Worker(env.client, task_queue="q", workflows=[soon]):
            assert await env.client.execute_workflow(soon, id="w", task_queue="q") is True
