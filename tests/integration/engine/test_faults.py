"""Restarts, lost answers, refused writes, lost workers: nothing acknowledged is lost, and everything goes on."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stepwell.api.commands import StartTimer
from stepwell.api.common import ProcessIdentity
from stepwell.api.errors import Unavailable

from stepwell_server.history.liveness import machine_id, process_started
from stepwell_server.history.ports import StoreUnavailable
from tests.support.engine import FAST_RETRY, SHORT, activity, running, types


def identity_of(pid: int) -> ProcessIdentity:
    return ProcessIdentity(machine=machine_id(), pid=pid, started=process_started(pid) or "")


@pytest.fixture
def worker_process() -> "object":
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


async def test_queues_are_rebuilt_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start("waits for a workflow task")
        await driver.start("waits for an activity")
        task = await driver.take()
        while task.execution.workflow_id != "waits for an activity":
            task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False), activity("2", eager=False))
        (running_attempt,) = await driver.poll_activities()
    async with running(path) as driver:
        task = await driver.take()
        assert task.execution.workflow_id == "waits for a workflow task"
        (attempt,) = await driver.poll_activities(maximum=10)
        assert attempt.activity_id == "2"
        assert [reply.error_code for reply in await driver.done(attempt, running_attempt)] == ["", ""]
        task = await driver.take()
        assert types(task.events).count("ActivityTaskCompleted") == 2


async def test_timers_fire_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        task = await driver.take()
        timer = StartTimer(timer_id="1", start_to_fire_timeout=timedelta(milliseconds=300))
        await driver.complete(task.task_token, timer)
    await asyncio.sleep(0.4)
    async with running(path) as driver:
        task = await driver.take()
        assert "TimerFired" in types(task.events)


async def test_tokens_and_repeats_outlive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await driver.start()
        task = await driver.take()
        first = await driver.complete(task.task_token, activity("1"), slots=1, nonce="one")
    async with running(path) as driver:
        again = await driver.complete(task.task_token, activity("1"), slots=1, nonce="one")
        assert again.leases == first.leases and again.continuation_token == first.continuation_token
        step = await driver.fused(again, activity("2"), now=first.commit_time)
        assert step.outcome == "ACCEPTED"


async def test_leases_of_a_process_that_is_gone_are_ended_on_restart(
    tmp_path: Path, worker_process: "subprocess.Popen[bytes]"
) -> None:
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        worker = driver.as_worker("doomed", identity_of(worker_process.pid))
        await driver.start()
        task = await worker.take()
        await worker.complete(task.task_token, activity("1"), activity("2", eager=False), slots=1)
        await worker.poll_activities()
    worker_process.kill()
    worker_process.wait()
    async with running(path) as driver:
        attempts = await driver.poll_activities(maximum=2)
        assert sorted((attempt.activity_id, attempt.attempt) for attempt in attempts) == [("1", 2), ("2", 2)]


async def test_what_a_killed_worker_held_is_given_to_others_at_once(
    worker_process: "subprocess.Popen[bytes]",
) -> None:
    async with running(liveness_interval=timedelta(milliseconds=50)) as driver:
        worker = driver.as_worker("doomed", identity_of(worker_process.pid))
        await driver.start("leased")
        task = await worker.take()
        await worker.complete(task.task_token, activity("1"), slots=1)
        await driver.start("handed out")
        await worker.take()
        worker_process.kill()
        worker_process.wait()
        task = await driver.take()
        assert task.execution.workflow_id == "handed out"
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 2 and attempt.execution.workflow_id == "leased"


async def test_a_connection_that_ends_makes_the_engine_look_at_once(
    worker_process: "subprocess.Popen[bytes]",
) -> None:
    async with running(liveness_interval=timedelta(hours=1)) as driver:
        killed = driver.as_worker("killed", identity_of(worker_process.pid))
        await driver.start()
        await killed.take()
        driver.engine.connection_lost(killed.worker)  # it lives: nothing is taken from it
        assert await driver.poll_workflow(timedelta(milliseconds=100)) is None
        await asyncio.sleep(0.5)
        driver.engine.connection_lost(killed.worker)
        worker_process.kill()
        worker_process.wait()
        assert await driver.poll_workflow(timedelta(seconds=5)) is not None, "only its timeout of 10 s freed it"


async def test_our_own_process_is_not_taken_for_gone() -> None:
    async with running(liveness_interval=timedelta(milliseconds=20)) as driver:
        worker = driver.as_worker("here", identity_of(os.getpid()))
        await driver.start()
        task = await worker.take()
        answer = await worker.complete(task.task_token, activity("1"), slots=1)
        await asyncio.sleep(0.1)
        assert (await worker.fused(answer, now=answer.commit_time)).outcome == "ACCEPTED"


async def test_a_refused_write_is_unavailable_and_the_repeat_succeeds() -> None:
    async with running() as driver:
        driver.store.refuse.append(StoreUnavailable("disk full"))
        with pytest.raises(Unavailable, match="disk full"):
            await driver.start(request_id="one")
        await driver.start(request_id="one")
        task = await driver.take()
        driver.store.refuse.append(StoreUnavailable("disk full"))
        with pytest.raises(Unavailable):
            await driver.complete(task.task_token, activity("1"), slots=1, nonce="n")
        answer = await driver.complete(task.task_token, activity("1"), slots=1, nonce="n")
        assert answer.outcome == "ACCEPTED"
        assert len(await driver.history()) == 5


async def test_a_write_whose_answer_was_lost_counts_once() -> None:
    async with running() as driver:
        driver.store.lose_answer.append(StoreUnavailable("connection lost"))
        with pytest.raises(Unavailable):
            await driver.start(request_id="one")
        await driver.start(request_id="one")
        assert len(await driver.history()) == 2
        assert await driver.poll_workflow() is not None  # what the write owed was handed on


async def test_a_caller_that_goes_away_during_the_write_does_not_lose_what_it_caused() -> None:
    async with running() as driver:
        driver.store.hold = asyncio.Event()
        starting = asyncio.ensure_future(driver.start())
        await asyncio.sleep(0.02)
        starting.cancel()
        driver.store.hold.set()
        driver.store.hold = None
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert await driver.poll_workflow(timedelta(seconds=1)) is not None


async def test_a_caller_that_goes_away_when_the_engine_has_stopped_leaves_no_task_behind() -> None:
    """Its write is under way: what became of it is for nobody to learn any more."""
    async with running(stop_grace=timedelta(0)) as driver:
        driver.store.hold = asyncio.Event()
        starting = asyncio.create_task(driver.start())
        while not driver.store.commits:
            await asyncio.sleep(0)
        await driver.engine.stop()
        left = asyncio.all_tasks()
        starting.cancel()
        await asyncio.wait([starting])
        assert asyncio.all_tasks() <= left


async def test_a_deadline_whose_write_is_interrupted_by_the_stop_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()
    async with running(stop_grace=timedelta(0)) as driver:
        await driver.start(workflow_run_timeout=SHORT)
        driver.store.hold = asyncio.Event()
        while driver.store.commits[-1].kind != "FireDeadline":
            await asyncio.sleep(0.01)
        await driver.engine.stop()
        assert asyncio.all_tasks() <= before | {asyncio.current_task()}


async def test_concurrent_signals_all_count() -> None:
    async with running() as driver:
        await driver.start()
        await asyncio.gather(*(driver.signal(name=str(n)) for n in range(60)))
        task = await driver.take()
        assert types(task.events).count("WorkflowExecutionSignaled") == 60
        await driver.finish(task)


async def test_an_attempt_that_fails_while_the_store_is_full_is_reported_again() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1", retry_policy=FAST_RETRY), slots=1)
        driver.store.refuse.append(StoreUnavailable("disk full"))
        with pytest.raises(Unavailable):
            await driver.done(answer.leases[0])
        (reply,) = await driver.done(answer.leases[0])
        assert reply.error_code == ""


async def test_a_stopping_engine_takes_nothing_new() -> None:
    async with running() as driver:
        await driver.engine.stop()
        with pytest.raises(Unavailable):
            await driver.start()


async def test_a_head_that_is_gone_from_the_store_is_read_again() -> None:
    """Deleted under an engine that still knows it: the next run begins a log without a gap."""
    async with running() as driver:
        await driver.start()
        await driver.finish(await driver.take())
        while (await driver.store._inner.sweep(datetime.now(UTC) + timedelta(days=1))).more:
            pass
        driver.store.commits.clear()
        await driver.start()
        await driver.finish(await driver.take())
        assert [commit.seq for commit in driver.store.commits] == [1, 2]
