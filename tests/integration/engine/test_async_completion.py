"""Attempts that go on after their function has returned (AC-21): ended by token or ids, through restarts and losses."""

from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import RequestCancelActivityTask
from stepwell.api.common import ProcessIdentity, RetryPolicy, WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound, Unavailable, WorkflowExecutionClosed

from stepwell_server.history.liveness import machine_id
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import FAST_RETRY, SHORT, Driver, activity, failure, payload, running, types

GONE = ProcessIdentity(machine=machine_id(), pid=2**22 + 1, started="1")
ORDER = WorkflowExecution(workflow_id="order-1")


async def leased(driver: Driver, **options: object) -> r.ActivityLease:
    await driver.start()
    task = await driver.take()
    (lease,) = (await driver.complete(task.task_token, activity("1", **options), slots=1)).leases
    return lease


async def polled(driver: Driver, **options: object) -> r.ActivityTask:
    await driver.start()
    task = await driver.take()
    await driver.complete(task.task_token, activity("1", eager=False, **options))
    (attempt,) = await driver.poll_activities()
    return attempt


async def goes_on(driver: Driver, token: bytes) -> None:
    (reply,) = await driver.report(r.ActivityPending(task_token=token))
    assert reply.error_code == "", reply.message


async def by_id(driver: Driver, outcome: r.ActivityOutcome, **more: str) -> None:
    request = r.RespondActivityByIdRequest(execution=ORDER, outcome=outcome, **({"activity_id": "1"} | more))
    await driver.engine.respond_activity_by_id(request)


async def finish(driver: Driver, *ends: str) -> None:
    task = await driver.take()
    assert types(task.events)[1 : 1 + len(ends)] == list(ends)
    await driver.finish(task)


@pytest.mark.parametrize("start", [leased, polled])
async def test_completed_by_token_and_by_ids(start) -> None:
    async with running() as driver:
        attempt = await start(driver)
        await goes_on(driver, attempt.task_token)
        assert (await driver.describe()).pending_activities[0].state == "STARTED"
        (reply,) = await driver.done(attempt)
        assert reply.error_code == ""
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")
    async with running() as driver:
        attempt = await start(driver)
        await goes_on(driver, attempt.task_token)
        await by_id(driver, r.ActivityCompleted(task_token=b"", result=payload("done")))
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


@pytest.mark.parametrize("start", [leased, polled])
async def test_a_failure_is_tried_again_by_the_policy(start) -> None:
    async with running() as driver:
        attempt = await start(driver, retry_policy=FAST_RETRY)
        await goes_on(driver, attempt.task_token)
        await by_id(driver, r.ActivityFailed(task_token=b"", failure=failure("no")))
        (again,) = await driver.poll_activities()
        assert again.attempt == 2
        (late,) = await driver.done(attempt)
        assert late.error_code == "NOT_FOUND"
        await driver.done(again)
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


@pytest.mark.parametrize("start", [leased, polled])
async def test_heartbeats_tell_of_cancellation_and_the_end_may_be_a_cancellation(start) -> None:
    async with running() as driver:
        attempt = await start(driver)
        await goes_on(driver, attempt.task_token)
        await driver.signal()
        task = await driver.take()
        scheduled = (await driver.describe()).pending_activities[0].scheduled_event_id
        beat = r.RecordActivityHeartbeatRequest(task_token=attempt.task_token, details=payload("half"))
        assert not (await driver.engine.record_activity_heartbeat(beat)).cancel_requested
        assert (await driver.describe()).pending_activities[0].heartbeat_details == payload("half")
        await driver.complete(task.task_token, RequestCancelActivityTask(scheduled_event_id=scheduled))
        ask = r.RecordActivityHeartbeatByIdRequest(execution=ORDER, activity_id="1")
        assert (await driver.engine.record_activity_heartbeat_by_id(ask)).cancel_requested
        await by_id(driver, r.ActivityCanceled(task_token=b""))
        task = await driver.take()
        assert "ActivityTaskCanceled" in types(task.events)
        await driver.finish(task)


@pytest.mark.parametrize("start", [leased, polled])
async def test_start_to_close_ends_what_nobody_ends(start) -> None:
    """Also when the process died between the two writes of a detached attempt: there is no item then."""
    async with running() as driver:
        attempt = await start(driver, seconds=0.3, retry_policy=FAST_RETRY)
        await goes_on(driver, attempt.task_token)
        (again,) = await driver.poll_activities(timeout=timedelta(seconds=5))
        assert again.attempt == 2
        with pytest.raises(NotFound):
            await driver.engine.record_activity_heartbeat(
                r.RecordActivityHeartbeatRequest(task_token=attempt.task_token)
            )


@pytest.mark.parametrize("start", [leased, polled])
async def test_a_restart_forgets_nothing_and_offers_nothing_again(tmp_path: Path, start) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        attempt = await start(driver)
        await goes_on(driver, attempt.task_token)
    async with running(path) as driver:
        assert await driver.poll_activities(timeout=SHORT) == ()
        assert (await driver.describe()).pending_activities[0].state == "STARTED"
        await driver.done(attempt)
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


@pytest.mark.parametrize("start", [leased, polled])
async def test_the_end_of_its_process_is_not_the_end_of_the_attempt(tmp_path: Path, start) -> None:
    """ADR 0004 ends what a process holds; this one has let go."""
    path = tmp_path / "orders.db"
    async with running(path, liveness_interval=timedelta(milliseconds=20)) as driver:
        attempt = await start(driver)
        await goes_on(driver, attempt.task_token)
        state = await driver.engine._executions.read(next(iter(driver.store.commits)).key)
        (pending,) = state.activities.values()
        assert pending.lease is None
        if pending.detached is not None:
            assert pending.detached.holder is None and pending.detached.started_time
        else:
            (item,) = await driver.engine._items.read(driver.store.commits[0].key, state.run_id, state.activities)
            assert item.holder is None and item.worker_key == ""


@pytest.mark.parametrize("start", [leased, polled])
async def test_said_twice_late_and_behind_the_end(start) -> None:
    """The token is out before the function returns: the end may overtake the word that the attempt goes on."""
    async with running() as driver:
        attempt = await start(driver, retry_policy=FAST_RETRY)
        await goes_on(driver, attempt.task_token)
        await goes_on(driver, attempt.task_token)
        await by_id(driver, r.ActivityFailed(task_token=b"", failure=failure("no")))
        await driver.report(r.ActivityPending(task_token=attempt.task_token))
        (again,) = await driver.poll_activities()
        assert again.attempt == 2
        await driver.done(again)
        await driver.report(r.ActivityPending(task_token=again.task_token))
        assert types(await driver.history()).count("ActivityTaskCompleted") == 1
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


async def test_a_lost_answer_about_the_detaching_is_repeated() -> None:
    async with running() as driver:
        lease = await leased(driver)
        driver.store.lose_kinds.add("Detach")
        with pytest.raises(Unavailable):
            await driver.report(r.ActivityPending(task_token=lease.task_token))
        await goes_on(driver, lease.task_token)
        await by_id(driver, r.ActivityCompleted(task_token=b""))
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


async def test_a_death_before_the_detaching_leaves_the_lease(tmp_path: Path) -> None:
    """The end by token counts all the same: the log is the authority then."""
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        lease = await leased(driver)
        driver.store.refuse.append(StoreUnavailable("the process dies before the write"))
        with pytest.raises(Unavailable):
            await driver.report(r.ActivityPending(task_token=lease.task_token))
    async with running(path) as driver:
        await driver.done(lease)
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


async def test_a_death_between_the_end_and_its_wake_up(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        lease = await leased(driver)
        await goes_on(driver, lease.task_token)
        driver.store.refuse_kinds.add("RecordFinishedActivities")
        with pytest.raises(Unavailable):
            await driver.done(lease)
    async with running(path) as driver:
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


async def test_an_end_that_travels_with_a_step_goes_to_the_item() -> None:
    """Another process said that the attempt goes on, and its worker ends it in a fused step."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        await goes_on(driver, answer.leases[0].task_token)
        step = await driver.fused(answer, now=answer.commit_time)  # type: ignore[arg-type]
        assert step.outcome == "STALE" and [reply.error_code for reply in step.activity_replies] == [""]
        await finish(driver, "ActivityTaskStarted", "ActivityTaskCompleted")


async def test_by_ids_one_that_waits_can_be_completed_and_not_failed() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False), activity("2", eager=False))
        with pytest.raises(NotFound):
            await by_id(driver, r.ActivityFailed(task_token=b"", failure=failure("no")))
        with pytest.raises(NotFound):
            await driver.engine.record_activity_heartbeat_by_id(
                r.RecordActivityHeartbeatByIdRequest(execution=ORDER, activity_id="1")
            )
        await by_id(driver, r.ActivityCompleted(task_token=b"", result=payload("by hand")), identity="ann")
        (attempt,) = await driver.poll_activities(maximum=5)
        assert attempt.activity_id == "2"
        events = await driver.history()
        started = next(event.attributes for event in events if event.event_type == "ActivityTaskStarted")
        assert started.identity == "ann"  # type: ignore[union-attr]


async def test_what_ids_do_not_name() -> None:
    async with running() as driver:
        completed = r.ActivityCompleted(task_token=b"")
        with pytest.raises(NotFound, match="not open"):
            await by_id(driver, completed)
        await polled(driver)
        with pytest.raises(NotFound, match="'2' is not pending"):
            await by_id(driver, completed, activity_id="2")
        await by_id(driver, completed)
        with pytest.raises(NotFound):
            await by_id(driver, completed)
        await driver.finish(await driver.take())
        with pytest.raises(WorkflowExecutionClosed):
            await by_id(driver, completed)


async def test_that_an_attempt_goes_on_does_not_travel_with_a_workflow_task() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        pending = r.ActivityPending(task_token=answer.leases[0].task_token)
        with pytest.raises(InvalidArgument, match="goes on"):
            await driver.fused(answer, now=answer.commit_time, outcomes=(pending,))  # type: ignore[arg-type]


async def test_attempts_run_out_without_their_worker() -> None:
    async with running() as driver:
        lease = await leased(driver, retry_policy=RetryPolicy(maximum_attempts=1))
        await goes_on(driver, lease.task_token)
        await by_id(driver, r.ActivityFailed(task_token=b"", failure=failure("no")))
        await finish(driver, "ActivityTaskStarted", "ActivityTaskFailed")


async def test_budget() -> None:
    """A leased attempt: one commit when it goes on, its item and the wake-up when it ends. A polled one: a put each."""
    async with running() as driver:
        lease = await leased(driver)
        driver.store.reset()
        await goes_on(driver, lease.task_token)
        assert driver.store.writes == {"append": 1}
        driver.store.reset()
        await driver.done(lease)
        assert driver.store.writes == {"append": 1, "put_activity": 1}
    async with running() as driver:
        attempt = await polled(driver)
        driver.store.reset()
        await goes_on(driver, attempt.task_token)
        assert driver.store.writes == {"put_activity": 1}
