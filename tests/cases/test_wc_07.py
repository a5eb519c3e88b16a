"""WC-07: progress lost because heartbeats were throttled."""

import asyncio
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import ActivityTaskCanceled
from stepwell.client import WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.exceptions import CancelledError

from tests.support.cases import ATTEMPT, EVERYWHERE, QUEUE, Case, attributes, events_of, until
from tests.support.processes import running

LAST = 50
WORKER = Path(__file__).with_name("progress_worker.py")


@workflow.defn
class Work:
    """Runs ``report`` until it ends, also when it is to be cancelled."""

    @workflow.run
    async def run(self, queue: str, heartbeat_timeout: float) -> int:
        return await workflow.execute_activity(
            "report",
            result_type=int,
            task_queue=queue,
            start_to_close_timeout=ATTEMPT,
            heartbeat_timeout=timedelta(seconds=heartbeat_timeout) if heartbeat_timeout else None,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=50)),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


def found() -> int:
    details = activity.info().heartbeat_details
    return details[0] if details else 0


def raising(threaded: bool) -> Any:
    """Attempt 1 reports 1 to 50 within half a second, then raises; attempt 2 returns the progress that it finds."""

    @activity.defn(name="report")
    def in_thread() -> int:
        if activity.info().attempt > 1:
            return found()
        for progress in range(1, LAST + 1):
            activity.heartbeat(progress)
            time.sleep(0.005)
        raise RuntimeError("attempt 1 fails")

    @activity.defn(name="report")
    async def on_loop() -> int:
        if activity.info().attempt > 1:
            return found()
        for progress in range(1, LAST + 1):
            activity.heartbeat(progress)
            await asyncio.sleep(0.005)
        raise RuntimeError("attempt 1 fails")

    return in_thread if threaded else on_loop


@pytest.mark.parametrize("heartbeat_timeout", [30.0, 0.0], ids=["30 s", "no timeout"])
@pytest.mark.parametrize("threaded", [False, True], ids=["async", "thread"])
async def test_a_raise_keeps_the_last_progress(case: Case, threaded: bool, heartbeat_timeout: float) -> None:
    """Tried: heartbeat timeout 30 s (then none at all: the throttle is 30 s as well); attempt 1 reports 1 to 50 within
    half a second and raises; attempt 2 returns what it finds.

    Right: 50, although the throttle let only the first one through.
    """
    async with case.worker([Work], [raising(threaded)]):
        handle = await case.start(Work.run, QUEUE, heartbeat_timeout, id="work-1")
        assert await handle.result() == LAST


def waiting(reported: asyncio.Event) -> Any:
    """Reports 1 to 50, then waits to be stopped, still reporting 50. A later attempt returns what it finds."""

    @activity.defn(name="report")
    async def report() -> int:
        if activity.info().attempt > 1:
            return found()
        for progress in range(1, LAST + 1):
            activity.heartbeat(progress)
            await asyncio.sleep(0.005)
        reported.set()
        while True:
            activity.heartbeat(LAST)
            await asyncio.sleep(0.02)

    return report


async def test_a_cancel_keeps_the_last_progress(case: Case) -> None:
    """Tried: as before, and the workflow is cancelled instead of a raise; it waits until the activity has ended.

    Right: the activity's end in the history carries 50, and the run is cancelled.
    """
    reported = asyncio.Event()
    throttle = timedelta(milliseconds=300)
    async with case.worker([Work], [waiting(reported)], max_heartbeat_throttle_interval=throttle):
        handle = await case.start(Work.run, QUEUE, 30.0, id="work-2")
        await asyncio.wait_for(reported.wait(), 20)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    (canceled,) = attributes(await events_of(handle), ActivityTaskCanceled)
    assert [payload.data for payload in canceled.details] == [str(LAST).encode()]


async def test_a_workers_shutdown_keeps_the_last_progress(case: Case) -> None:
    """Tried: as before, and the attempt is cancelled by its worker's shutdown, whose grace time is zero; another worker
    takes the next attempt.

    Right: attempt 2 finds 50.
    """
    reported = asyncio.Event()
    async with case.worker([Work]):
        async with case.worker((), [waiting(reported)], task_queue="busy", graceful_shutdown_timeout=timedelta(0)):
            handle = await case.start(Work.run, "busy", 30.0, id="work-3")
            await asyncio.wait_for(reported.wait(), 20)
        async with case.worker((), [waiting(reported)], task_queue="busy"):
            assert await handle.result() == LAST


THROTTLE = 0.3
ALIVE = 2.0
"""Seconds from the first report to the kill; several throttle intervals and the slack below."""

SLACK = 1.0
"""For a busy machine."""


@pytest.mark.parametrize("setting", EVERYWHERE[2:], ids=str, indirect=True)
async def test_a_kill_loses_at_most_one_interval(case: Case, tmp_path: Path) -> None:
    """Tried: a worker process reports progress every 10 ms, with a throttle of 0.3 s, and is killed 2 s after its first
    report. Attempt 2, in another process, returns what it finds.

    Right: a value that was really reported, and not older than the throttle interval (with 1 s of slack) at the kill.
    """
    log = tmp_path / "reported"
    with running([sys.executable, WORKER, case.address, "doomed", log, str(THROTTLE)], tmp_path) as process:
        async with case.worker([Work]):
            handle = await case.start(Work.run, "doomed", 3.0, id="work-4")

            async def has_reported() -> bool:
                return log.exists() and log.stat().st_size > 0

            await until(has_reported)
            await asyncio.sleep(ALIVE)
            process.process.kill()
            async with case.worker((), [waiting(asyncio.Event())], task_queue="doomed"):
                progress = await handle.result()
    lines = (line.split() for line in log.read_text().splitlines())
    reported = {int(number): float(at) for number, at in lines}
    assert progress in reported, "made up"
    # Not the time of the kill: a process that stood still for lack of a processor reported nothing meanwhile.
    assert max(reported.values()) - reported[progress] < THROTTLE + SLACK
