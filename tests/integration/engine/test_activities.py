"""Attempts of activities: leased and item-held, retried, timed out, cancelled, given back."""

import asyncio
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import RequestCancelActivityTask
from stepwell.api.common import ProcessIdentity, RetryPolicy, WorkflowExecution
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import NotFound

from stepwell_server.history.liveness import machine_id
from stepwell_server.matching.service import QueueName
from tests.support.engine import FAST_RETRY, SHORT, Driver, activity, failure, payload, running, types


async def _scheduled(driver: Driver, *commands: object, slots: int = 0) -> r.RespondWorkflowTaskCompletedResponse:
    await driver.start()
    task = await driver.take()
    return await driver.complete(task.task_token, *commands, slots=slots)  # type: ignore[arg-type]


async def test_a_leased_attempt_that_fails_is_tried_again_through_the_queue() -> None:
    async with running() as driver:
        answer = await _scheduled(driver, activity("1", retry_policy=FAST_RETRY), slots=1)
        (lease,) = answer.leases
        (reply,) = await driver.report(r.ActivityFailed(task_token=lease.task_token, failure=failure("once")))
        assert reply.error_code == ""
        pending = (await driver.describe()).pending_activities[0]
        assert pending.attempt == 2 and pending.last_failure is not None and pending.last_failure.message == "once"
        assert pending.last_started_time == pending.scheduled_time, "it had no item, and began with its scheduling"
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 2
        (late,) = await driver.report(r.ActivityCompleted(task_token=lease.task_token))
        assert late.error_code == "NOT_FOUND"
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("twice")))
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 3
        await driver.done(attempt)
        task = await driver.take()
        started = task.events[1].attributes
        assert types(task.events)[1:3] == ["ActivityTaskStarted", "ActivityTaskCompleted"]
        assert started.attempt == 3 and started.last_failure.message == "twice"  # type: ignore[union-attr]


async def test_repeated_and_late_completions() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False))
        (attempt,) = await driver.poll_activities()
        assert (await driver.done(attempt))[0].error_code == ""
        assert (await driver.done(attempt))[0].error_code == ""
        task = await driver.take()
        await driver.complete(task.task_token)
        assert (await driver.done(attempt))[0].error_code == ""
        (other,) = await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("late")))
        assert other.error_code == "NOT_FOUND"
        assert types(await driver.history()).count("ActivityTaskCompleted") == 1


async def test_a_final_failure_ends_the_activity() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False))
        (attempt,) = await driver.poll_activities()
        failed = r.ActivityFailed(task_token=attempt.task_token, failure=failure("no", non_retryable=True))
        await driver.report(failed)
        task = await driver.take()
        assert types(task.events)[1:3] == ["ActivityTaskStarted", "ActivityTaskFailed"]


async def test_worker_shutdown_is_retried_at_once() -> None:
    """WC-32 (b)."""
    async with running() as driver:
        slow = RetryPolicy(initial_interval=timedelta(hours=1))
        await _scheduled(driver, activity("1", eager=False, retry_policy=slow))
        (attempt,) = await driver.poll_activities()
        await driver.report(
            r.ActivityFailed(task_token=attempt.task_token, failure=failure("stopping"), worker_shutdown=True)
        )
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 2


async def test_what_a_stopping_worker_puts_back_is_no_attempt() -> None:
    """WC-32: it came in while the worker stopped. The only attempt that is allowed is still to be had."""
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False, retry_policy=RetryPolicy(maximum_attempts=1)))
        (attempt,) = await driver.poll_activities()
        back = r.ActivityFailed(
            task_token=attempt.task_token, failure=failure("stopping"), worker_shutdown=True, begun=False
        )
        for _ in range(2):
            (reply,) = await driver.report(back)
            assert reply.error_code == ""
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 1
        await driver.done(attempt)
        await driver.finish(await driver.take())


async def test_start_to_close_timeout_of_an_item_is_retried() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False, seconds=0.2, retry_policy=FAST_RETRY))
        await driver.poll_activities()
        (attempt,) = await driver.poll_activities(timeout=timedelta(seconds=3))
        assert attempt.attempt == 2
        await driver.done(attempt)
        await driver.finish(await driver.take())


async def test_start_to_close_timeout_of_a_lease_is_retried() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", seconds=0.2, retry_policy=FAST_RETRY), slots=1)
        (attempt,) = await driver.poll_activities(timeout=timedelta(seconds=3))
        assert attempt.attempt == 2


async def test_schedule_to_start_timeout_is_final() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False, schedule_to_start_timeout=timedelta(milliseconds=200)))
        task = await driver.take(timedelta(seconds=3))
        assert types(task.events)[1] == "ActivityTaskTimedOut"
        assert await driver.poll_activities(timeout=timedelta(milliseconds=50)) == ()


async def test_heartbeat_timeout_and_details_for_the_next_attempt() -> None:
    async with running() as driver:
        command = activity("1", heartbeat_timeout=timedelta(milliseconds=300), retry_policy=FAST_RETRY)
        answer = await _scheduled(driver, command, slots=1)
        assert answer.leases == ()
        (attempt,) = await driver.poll_activities()
        for _ in range(3):
            await asyncio.sleep(0.15)
            beat = r.RecordActivityHeartbeatRequest(task_token=attempt.task_token, details=payload("half"))
            assert not (await driver.engine.record_activity_heartbeat(beat)).cancel_requested
        (again,) = await driver.poll_activities(timeout=timedelta(seconds=3))
        assert again.attempt == 2 and again.heartbeat_details == payload("half")
        with pytest.raises(NotFound):
            await driver.engine.record_activity_heartbeat(beat)


async def test_cancellation_reaches_a_running_attempt_by_heartbeat() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False))
        (attempt,) = await driver.poll_activities()
        await driver.signal()
        task = await driver.take()
        scheduled = (await driver.describe()).pending_activities[0].scheduled_event_id
        await driver.complete(task.task_token, RequestCancelActivityTask(scheduled_event_id=scheduled))
        beat = r.RecordActivityHeartbeatRequest(task_token=attempt.task_token)
        assert (await driver.engine.record_activity_heartbeat(beat)).cancel_requested
        # At once: the item may not have been told yet, and what the heartbeat said counts.
        await driver.report(r.ActivityCanceled(task_token=attempt.task_token))
        task = await driver.take()
        assert "ActivityTaskCanceled" in types(task.events)


async def test_cancellation_of_one_that_nobody_took_ends_it() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False))
        await driver.signal()
        task = await driver.take()
        scheduled = (await driver.describe()).pending_activities[0].scheduled_event_id
        await driver.complete(task.task_token, RequestCancelActivityTask(scheduled_event_id=scheduled))
        task = await driver.take()
        assert "ActivityTaskCanceled" in types(task.events)
        assert await driver.poll_activities(timeout=timedelta(milliseconds=50)) == ()


async def test_attempts_started_for_a_poll_that_was_cancelled_go_back() -> None:
    """WC-32: a task handed to a poll that is being closed must go back."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        poll = asyncio.ensure_future(driver.poll_activities(timeout=timedelta(seconds=5)))
        await asyncio.sleep(0.01)
        driver.store.hold_puts = asyncio.Event()
        await driver.complete(task.task_token, activity("1", eager=False))
        await asyncio.sleep(0.01)
        poll.cancel()
        driver.store.hold_puts.set()
        driver.store.hold_puts = None
        with pytest.raises(asyncio.CancelledError):
            await poll
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 1
        assert (await driver.done(attempt))[0].error_code == ""


async def test_undelivered_answers_go_back() -> None:
    async with running() as driver:
        await driver.start()
        request = r.PollWorkflowTaskRequest(task_queue="orders", worker=driver.worker)
        await driver.engine.undelivered(await driver.engine.poll_workflow_task(request))
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        ask = r.PollActivityTaskRequest(task_queue="orders", worker=driver.worker)
        await driver.engine.undelivered(await driver.engine.poll_activity_task(ask))
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 1
        await driver.done(attempt)
        await driver.finish(await driver.take())


async def test_polls_of_a_worker_that_shuts_down_end_empty_and_it_gets_nothing_more() -> None:
    async with running() as driver:
        other = driver.as_worker("worker-2")
        polls = [asyncio.ensure_future(other.poll_workflow()), asyncio.ensure_future(other.poll_activities())]
        await asyncio.sleep(0.01)
        await driver.engine.shutdown_worker(r.ShutdownWorkerRequest(task_queue="orders", worker=other.worker))
        assert await asyncio.gather(*polls) == [None, ()]
        await driver.start()
        assert await other.poll_workflow() is None
        assert await driver.poll_workflow() is not None


async def test_describe_says_what_nobody_polls() -> None:
    async with running() as driver:
        await driver.start()
        assert (await driver.describe()).unpolled_task_queues == ("orders (workflow)",)
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False, queue="billing"))
        described = await driver.describe()
        assert described.unpolled_task_queues == ("billing (activity)",)
        assert [poller.identity for poller in described.workflow_task_pollers] == ["worker-1"]
        assert described.info.execution == WorkflowExecution(workflow_id="order-1", run_id=task.execution.run_id)


async def test_a_poll_of_a_process_that_is_gone_is_given_no_attempt() -> None:
    """Its connection's end may be noticed later than the end of the process; the attempt would be lost, and count."""
    gone = ProcessIdentity(machine=machine_id(), pid=2**22 + 1, started="1")
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        assert not await driver.as_worker("killed", process=gone).poll_activities(timeout=SHORT)
        (attempt,) = await driver.as_worker("alive").poll_activities(timeout=timedelta(seconds=5))
        assert attempt.attempt == 1


async def _cancels(driver: Driver) -> None:
    """The workflow asks for the cancellation of its one activity, in a task that another worker completes."""
    await driver.signal()
    other = driver.as_worker("workflow worker")
    task = await other.take()
    scheduled = (await driver.describe()).pending_activities[0].scheduled_event_id
    await other.complete(task.task_token, RequestCancelActivityTask(scheduled_event_id=scheduled))


def _ask(driver: Driver, seconds: float = 5) -> r.PollActivityTaskRequest:
    return r.PollActivityTaskRequest(
        task_queue="orders", worker=driver.worker, maximum_tasks=5, timeout=timedelta(seconds=seconds)
    )


@pytest.mark.parametrize("slots", [0, 1])
async def test_cancellation_comes_with_the_open_poll_of_the_worker_that_runs_it(slots: int) -> None:
    """AC-20: at once, item-held and leased, and to no other worker."""
    async with running() as driver:
        leases = (await _scheduled(driver, activity("1", eager=bool(slots)), slots=slots)).leases
        token = leases[0].task_token if leases else (await driver.poll_activities())[0].task_token
        bystander = driver.as_worker("bystander")
        polls = [asyncio.ensure_future(one.engine.poll_activity_task(_ask(one))) for one in (bystander, driver)]
        await asyncio.sleep(0)
        await _cancels(driver)
        answer = await asyncio.wait_for(polls[1], 30)
        assert (answer.tasks, answer.cancel_requested) == ((), (token,))
        assert not polls[0].done()
        polls[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await polls[0]
        await driver.report(r.ActivityCanceled(task_token=token))
        assert "ActivityTaskCanceled" in types((await driver.take()).events)


async def test_cancellation_waits_for_the_next_poll_and_comes_once() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False), activity("2", eager=False))
        (attempt,) = await driver.poll_activities()
        await _cancels(driver)
        async with asyncio.timeout(30):
            while not (answer := await driver.engine.poll_activity_task(_ask(driver))).cancel_requested:
                await driver.done(*answer.tasks)
        assert answer.cancel_requested == (attempt.task_token,)
        assert (await driver.engine.poll_activity_task(_ask(driver, 0.02))).cancel_requested == ()


async def test_a_poll_that_was_cancelled_keeps_what_was_pushed_for_the_next() -> None:
    async with running() as driver:
        await _scheduled(driver, activity("1", eager=False))
        (attempt,) = await driver.poll_activities()
        poll = asyncio.ensure_future(driver.engine.poll_activity_task(_ask(driver)))
        await asyncio.sleep(0)
        name = QueueName("default", "orders", TaskQueueKind.ACTIVITY)
        driver.engine._matching.push(name, driver.worker.worker_key, "word")
        poll.cancel()
        with pytest.raises(asyncio.CancelledError):
            await poll
        await _cancels(driver)
        assert (await driver.engine.poll_activity_task(_ask(driver))).cancel_requested == (attempt.task_token,)
