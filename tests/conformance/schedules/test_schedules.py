"""LC-25 to LC-42: workflows that a schedule starts, by time and by order."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from stepwell.client import (
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
)
from stepwell.exceptions import CancelledError, TerminatedError

from tests.conformance.schedules.workflow import Waits, adds_up, fails, says_when
from tests.support.cases import until
from tests.support.conformance import Feature

DAY = datetime(2027, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = ScheduleSpec(cron_expressions=["@hourly"], start_at=DAY)


async def made(
    feature: Feature, workflow: Any, *args: Any, spec: ScheduleSpec = HOURLY, **policy: Any
) -> ScheduleHandle:
    action = ScheduleActionStartWorkflow(workflow, args=args, id=feature.id_of("run"), task_queue=feature.task_queue)
    schedule = Schedule(action, spec, SchedulePolicy(**policy))
    return await feature.client.create_schedule(feature.id_of("schedule"), schedule)


async def run_of(feature: Feature, time: datetime, name: str) -> WorkflowHandle[Any]:
    """The one that was started for this time, as soon as it is there."""
    handle = feature.client.get_workflow_handle(f"{feature.id_of('run')}-{time:%Y-%m-%dT%H:%M:%SZ}")

    async def there() -> bool:
        listed = feature.client.list_workflows()
        return handle.id in [run.id async for run in listed]

    await until(there)
    await feature.follow(handle, name)
    return handle


async def test_runs_by_time_have_the_last_result(feature: Feature) -> None:
    async with feature.worker([adds_up]):
        schedule = await made(feature, adds_up, 5, spec=ScheduleSpec(cron_expressions=["@every 1s"]))

        async def three() -> bool:
            return len((await schedule.describe()).info.recent_actions) >= 3

        await until(three)
        await schedule.pause()
        times = [action.scheduled_at for action in (await schedule.describe()).info.recent_actions]
        assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(times))
        results = [await (await run_of(feature, time, f"run {n}")).result() for n, time in enumerate(times[:3], 1)]
        assert results == [5, 10, 15]
    await schedule.delete()


async def test_a_backfill_starts_each_time_in_order(feature: Feature) -> None:
    async with feature.worker([says_when]):
        schedule = await made(feature, says_when)
        times = [DAY + HOUR, DAY + 2 * HOUR]
        await schedule.backfill(ScheduleBackfill(DAY, DAY + 2 * HOUR, ScheduleOverlapPolicy.BUFFER_ALL))
        for number, time in enumerate(times, 1):
            run = await run_of(feature, time, f"run {number}")
            assert await run.result() == time.isoformat().replace("+00:00", "Z")
    await schedule.delete()


async def test_one_waits_and_further_ones_are_skipped(feature: Feature) -> None:
    async with feature.worker([Waits]):
        schedule = await made(feature, Waits.run, overlap=ScheduleOverlapPolicy.BUFFER_ONE)
        for number in range(3):
            await schedule.trigger(scheduled_at=DAY + number * HOUR)
        first = await run_of(feature, DAY, "first")
        info = (await schedule.describe()).info
        assert (info.num_actions, info.buffer_size, info.num_actions_skipped_overlap) == (1, 1, 1)
        await first.signal(Waits.release)
        await first.result()
        second = await run_of(feature, DAY + HOUR, "second")
        await second.signal(Waits.release)
        await second.result()
    await schedule.delete()


@pytest.mark.parametrize(
    ("overlap", "cause"),
    [
        (ScheduleOverlapPolicy.CANCEL_OTHER, CancelledError),
        (ScheduleOverlapPolicy.TERMINATE_OTHER, TerminatedError),
    ],
    ids=["cancel", "terminate"],
)
async def test_the_next_one_ends_the_one_before(
    feature: Feature, overlap: ScheduleOverlapPolicy, cause: type[BaseException]
) -> None:
    async with feature.worker([Waits]):
        schedule = await made(feature, Waits.run, overlap=overlap)
        await schedule.trigger(scheduled_at=DAY)
        first = await run_of(feature, DAY, cause.__name__)
        await feature.idle(first)
        await schedule.trigger(scheduled_at=DAY + HOUR)
        with pytest.raises(WorkflowFailureError) as end:
            await first.result()
        assert isinstance(end.value.cause, cause)
        second = await run_of(feature, DAY + HOUR, "second")
        await second.signal(Waits.release)
        await second.result()
    await schedule.delete()


async def test_a_failure_pauses_it_where_that_is_wanted(feature: Feature) -> None:
    async with feature.worker([fails]):
        schedule = await made(feature, fails, pause_on_failure=True)
        await schedule.trigger(scheduled_at=DAY)
        await run_of(feature, DAY, "run")

        async def paused() -> bool:
            return (await schedule.describe()).schedule.state.paused

        await until(paused)
        described = await schedule.describe()
        assert "no paper" in (described.schedule.state.note or "")
        (action,) = described.info.recent_actions
        assert (action.scheduled_at, action.status) == (DAY, WorkflowExecutionStatus.FAILED)
    await schedule.delete()
