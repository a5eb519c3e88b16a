"""Pause, unpause, reset and other options of pending activities (AC-25, AC-26): leased, polled, waiting, of a type."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import RequestCancelActivityTask
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound, Unavailable, WorkflowExecutionClosed

from tests.support.engine import FAST_RETRY, SHORT, Driver, ShiftedClock, activity, failure, payload, running, types

ORDER = WorkflowExecution(workflow_id="order-1")
SLOW_RETRY = RetryPolicy(initial_interval=timedelta(hours=1))
ONE_ATTEMPT = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=1)


async def leased(driver: Driver, **options: Any) -> r.ActivityLease:
    await driver.start()
    task = await driver.take()
    (lease,) = (await driver.complete(task.task_token, activity("1", **options), slots=1)).leases
    return lease


async def polled(driver: Driver, **options: Any) -> r.ActivityTask:
    await waiting(driver, **options)
    (attempt,) = await driver.poll_activities()
    return attempt


async def waiting(driver: Driver, **options: Any) -> None:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("1", eager=False, **options))


async def pause(driver: Driver, **more: Any) -> tuple[str, ...]:
    request = r.PauseActivityRequest(**({"execution": ORDER, "activity_id": "1", "identity": "ann"} | more))
    return (await driver.engine.pause_activity(request)).activity_ids


async def unpause(driver: Driver, **more: Any) -> tuple[str, ...]:
    request = r.UnpauseActivityRequest(**({"execution": ORDER, "activity_id": "1"} | more))
    return (await driver.engine.unpause_activity(request)).activity_ids


async def reset(driver: Driver, **more: Any) -> tuple[str, ...]:
    request = r.ResetActivityRequest(**({"execution": ORDER, "activity_id": "1"} | more))
    return (await driver.engine.reset_activity(request)).activity_ids


async def options(driver: Driver, **change: Any) -> r.PendingActivityInfo:
    request = r.UpdateActivityOptionsRequest(
        execution=ORDER, activity_id="1", options=r.ActivityOptionsChange(**change)
    )
    await driver.engine.update_activity_options(request)
    return await pending(driver)


async def pending(driver: Driver) -> r.PendingActivityInfo:
    return (await driver.describe()).pending_activities[0]


async def beat(driver: Driver, token: bytes) -> r.RecordActivityHeartbeatResponse:
    request = r.RecordActivityHeartbeatRequest(task_token=token, details=payload("half"))
    return await driver.engine.record_activity_heartbeat(request)


async def ends(driver: Driver, kind: str = "ActivityTaskCompleted") -> None:
    task = await driver.take()
    assert kind in types(task.events)
    await driver.finish(task)


# --- pause --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [leased, polled])
async def test_an_attempt_that_runs_may_end_well(start: Any) -> None:
    async with running() as driver:
        attempt = await start(driver)
        assert await pause(driver, reason="looking into it") == ("1",)
        info = await pending(driver)
        assert (info.state, info.paused_by, info.pause_reason) == ("PAUSE_REQUESTED", "ann", "looking into it")
        assert (await beat(driver, attempt.task_token)).paused
        (reply,) = await driver.done(attempt)
        assert reply.error_code == ""
        await ends(driver)


@pytest.mark.parametrize("start", [leased, polled])
async def test_a_failure_while_paused_waits_and_costs_no_attempt(start: Any) -> None:
    async with running() as driver:
        attempt = await start(driver, retry_policy=ONE_ATTEMPT)
        await pause(driver)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
        info = await pending(driver)
        assert (info.state, info.attempt) == ("PAUSED", 1) and info.last_failure is not None
        assert await driver.poll_activities(timeout=SHORT) == ()
        await unpause(driver)
        (again,) = await driver.poll_activities()
        assert again.attempt == 1 and again.task_token != attempt.task_token
        (late,) = await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("late")))
        assert late.error_code == "NOT_FOUND", "its number is current again, but it is another attempt"
        await driver.report(r.ActivityFailed(task_token=again.task_token, failure=failure("for good")))
        await ends(driver, "ActivityTaskFailed")


async def test_an_end_for_the_pause_counts_as_none_though_it_is_over() -> None:
    async with running() as driver:
        attempt = await polled(driver, retry_policy=ONE_ATTEMPT)
        await pause(driver)
        await unpause(driver)
        stopped = r.ActivityFailed(task_token=attempt.task_token, failure=failure("stopped"), uncounted=True)
        await driver.report(stopped)
        (again,) = await driver.poll_activities()
        assert again.attempt == 1
        await driver.done(again)
        await ends(driver)


async def test_one_that_waits_is_not_handed_out_until_it_is_unpaused() -> None:
    async with running() as driver:
        await waiting(driver)
        await pause(driver)
        await pause(driver)
        assert (await pending(driver)).state == "PAUSED"
        assert (await driver.describe()).unpolled_task_queues == ()
        assert await driver.poll_activities(timeout=SHORT) == ()
        await unpause(driver)
        (attempt,) = await driver.poll_activities()
        await unpause(driver)
        await driver.done(attempt)
        await ends(driver)


async def test_unpause_leaves_one_alone_that_was_never_paused_nor_begun() -> None:
    async with running() as driver:
        await waiting(driver)
        assert await unpause(driver, reset_attempts=True, reset_heartbeat=True) == ("1",)
        (attempt,) = await driver.poll_activities()
        await driver.done(attempt)
        await ends(driver)


async def test_unpause_ends_a_backoff_and_may_reset() -> None:
    async with running() as driver:
        attempt = await polled(driver, retry_policy=SLOW_RETRY)
        await beat(driver, attempt.task_token)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
        await pause(driver)
        await unpause(driver)
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 2 and attempt.heartbeat_details == payload("half")
        await pause(driver)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
        await unpause(driver, reset_attempts=True, reset_heartbeat=True, jitter=timedelta(milliseconds=50))
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 1 and attempt.heartbeat_details == ()


async def test_schedule_to_start_stops_and_schedule_to_close_runs_on() -> None:
    clock = ShiftedClock()
    async with running(clock=clock) as driver:
        await waiting(
            driver, schedule_to_start_timeout=timedelta(seconds=10), schedule_to_close_timeout=timedelta(hours=1)
        )
        await pause(driver)
        clock.shift += timedelta(minutes=1)
        await driver.signal()
        await driver.complete((await driver.take()).task_token)
        assert (await pending(driver)).state == "PAUSED"
        clock.shift += timedelta(hours=1)
        await driver.signal()
        task = await driver.take(timedelta(seconds=5))
        while "ActivityTaskTimedOut" not in types(task.events):
            await driver.complete(task.task_token)
            task = await driver.take(timedelta(seconds=5))


async def test_a_paused_activity_is_cancelled_at_once() -> None:
    async with running() as driver:
        await waiting(driver)
        await pause(driver)
        await driver.signal()
        task = await driver.take()
        scheduled = (await pending(driver)).scheduled_event_id
        await driver.complete(task.task_token, RequestCancelActivityTask(scheduled_event_id=scheduled))
        await ends(driver, "ActivityTaskCanceled")


@pytest.mark.parametrize("start", [leased, polled])
async def test_a_restart_keeps_what_is_paused(tmp_path: Path, start: Any) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        attempt = await start(driver, retry_policy=FAST_RETRY)
        await pause(driver)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
    async with running(path) as driver:
        assert await driver.poll_activities(timeout=SHORT) == ()
        assert (await pending(driver)).state == "PAUSED"
        await unpause(driver)
        (attempt,) = await driver.poll_activities()
        await driver.done(attempt)
        await ends(driver)


async def test_a_start_to_close_timeout_while_paused_is_no_attempt() -> None:
    async with running() as driver:
        await leased(driver, seconds=0.2, retry_policy=ONE_ATTEMPT)
        await pause(driver)
        async with asyncio.timeout(30):
            while (await pending(driver)).state != "PAUSED":
                await asyncio.sleep(0.01)
        assert await driver.poll_activities(timeout=SHORT) == ()


async def test_of_a_type_all_that_are_pending() -> None:
    """One commit for those that are leased, and one put each; what came in between is as asked for already."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        commands = [activity(str(number)) for number in range(1, 251)]
        await driver.complete(task.task_token, *commands, slots=100)
        driver.store.reset()
        named = {"activity_id": "", "activity_type": "charge"}
        assert len(await pause(driver, **named)) == 250
        assert driver.store.writes["append"] == 1 and driver.store.writes["put_activity"] == 250
        assert await driver.poll_activities(timeout=SHORT) == ()
        driver.store.reset()
        assert len(await pause(driver, **named)) == 250
        assert driver.store.writes == {}
        assert len(await unpause(driver, **named)) == 250
        assert len(await driver.poll_activities(maximum=100)) == 100


async def test_a_death_between_detaching_and_the_items(tmp_path: Path) -> None:
    """The attempt goes on as it was; the same call again pauses it."""
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        lease = await leased(driver)
        driver.store.lose_kinds.add("Detach")
        with pytest.raises(Unavailable):
            await pause(driver)
    async with running(path) as driver:
        info = await pending(driver)
        assert (info.state, info.attempt, info.last_worker_identity) == ("STARTED", 1, "worker-1")
        assert await driver.poll_activities(timeout=SHORT) == ()
        await pause(driver)
        assert (await pending(driver)).state == "PAUSE_REQUESTED"
        await driver.done(lease)
        await ends(driver)


# --- reset --------------------------------------------------------------------------------------------------------


async def test_reset_of_one_that_waits_ends_its_backoff() -> None:
    async with running() as driver:
        attempt = await polled(driver, retry_policy=SLOW_RETRY)
        await beat(driver, attempt.task_token)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
        await reset(driver, reset_heartbeat=True)
        (again,) = await driver.poll_activities()
        assert again.attempt == 1 and again.heartbeat_details == ()
        (late,) = await driver.done(attempt)
        assert late.error_code == "NOT_FOUND"
        await driver.done(again)
        await ends(driver)


@pytest.mark.parametrize("start", [leased, polled])
async def test_reset_of_one_that_runs_is_told_and_follows_its_end(start: Any) -> None:
    async with running() as driver:
        attempt = await start(driver, retry_policy=ONE_ATTEMPT)
        await reset(driver, reset_heartbeat=True)
        assert (await beat(driver, attempt.task_token)).reset
        await driver.report(
            r.ActivityFailed(
                task_token=attempt.task_token, failure=failure("no"), last_heartbeat_details=payload("most")
            )
        )
        (again,) = await driver.poll_activities()
        assert again.attempt == 1 and again.heartbeat_details == ()
        assert not (await beat(driver, again.task_token)).reset
        await driver.done(again)
        await ends(driver)


async def test_reset_ends_a_pause_unless_it_is_to_be_kept() -> None:
    async with running() as driver:
        await waiting(driver)
        await pause(driver)
        await reset(driver, keep_paused=True)
        assert (await pending(driver)).state == "PAUSED"
        assert await driver.poll_activities(timeout=SHORT) == ()
        await reset(driver)
        assert len(await driver.poll_activities()) == 1


async def test_a_final_failure_stays_final_behind_a_reset() -> None:
    async with running() as driver:
        attempt = await polled(driver)
        await reset(driver)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no", non_retryable=True)))
        await ends(driver, "ActivityTaskFailed")


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [leased, polled])
async def test_a_shorter_timeout_ends_the_attempt_that_runs(start: Any) -> None:
    """Armed before the item is put: nothing else would end the attempt before its hour is over."""
    async with running() as driver:
        await start(driver, seconds=3_600, retry_policy=FAST_RETRY)
        info = await options(driver, start_to_close_timeout=timedelta(milliseconds=200))
        assert info.start_to_close_timeout == timedelta(milliseconds=200)
        (again,) = await driver.poll_activities(timeout=timedelta(seconds=5))
        assert again.attempt == 2 and again.start_to_close_timeout == timedelta(milliseconds=200)


async def test_another_queue_and_back() -> None:
    async with running() as driver:
        await waiting(driver)
        assert (await options(driver, task_queue="other")).task_queue == "other"
        assert await driver.poll_activities(timeout=SHORT) == ()
        (attempt,) = await driver.poll_activities(queue="other")
        assert attempt.task_queue == "other"
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no"), begun=False))
        assert (await options(driver, restore_original=True)).task_queue == "orders"
        assert await driver.poll_activities(timeout=SHORT, queue="other") == ()
        assert len(await driver.poll_activities()) == 1


async def test_a_shorter_backoff_is_for_the_wait_that_runs() -> None:
    async with running() as driver:
        attempt = await polled(driver, retry_policy=SLOW_RETRY)
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("no")))
        info = await options(driver, retry_initial_interval=timedelta(milliseconds=20), retry_maximum_attempts=7)
        assert info.maximum_attempts == 7
        assert len(await driver.poll_activities()) == 1
        restored = await options(driver, restore_original=True)
        assert restored.retry_policy == SLOW_RETRY and restored.maximum_attempts == 0


async def test_options_are_filled_in_and_checked_as_those_of_a_schedule() -> None:
    async with running() as driver:
        await waiting(driver, schedule_to_close_timeout=timedelta(minutes=10))
        info = await options(driver, start_to_close_timeout=timedelta(hours=1), heartbeat_timeout=timedelta(hours=2))
        assert info.start_to_close_timeout == info.heartbeat_timeout == timedelta(minutes=10)
        for wrong in (
            {"retry_backoff_coefficient": 0.5},
            {"retry_maximum_attempts": -1},
            {"retry_maximum_interval": timedelta(milliseconds=1)},
        ):
            with pytest.raises(InvalidArgument, match="retry policy"):
                await options(driver, **wrong)
        before = await pending(driver)
        restored = await reset(driver, restore_original_options=True)
        assert restored == ("1",) and (await pending(driver)) != before
        assert (await pending(driver)).heartbeat_timeout is None


# --- what is refused ----------------------------------------------------------------------------------------------


async def test_what_names_no_pending_activity() -> None:
    async with running() as driver:
        for call in (pause, unpause, reset):
            with pytest.raises(NotFound, match="not open"):
                await call(driver)
        attempt = await polled(driver)
        with pytest.raises(NotFound, match="'2' is not pending"):
            await pause(driver, activity_id="2")
        with pytest.raises(NotFound, match="no activity of type 'refund'"):
            await pause(driver, activity_id="", activity_type="refund")
        await driver.done(attempt)
        with pytest.raises(NotFound):
            await pause(driver)
        await ends(driver)
        with pytest.raises(WorkflowExecutionClosed):
            await reset(driver)
