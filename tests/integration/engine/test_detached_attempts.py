"""Whom an attempt belongs to once its lease is gone (ADR 0004): a released one to nobody's process, a paused one still
to its worker's; before and behind a restart, with and without its item."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api import requests as r
from stepwell.api.common import ProcessIdentity, WorkflowExecution
from stepwell.api.errors import Unavailable

from stepwell_server.history.liveness import machine_id, process_started
from tests.support.engine import FAST_RETRY, SHORT, Driver, activity, running, types

ORDER = WorkflowExecution(workflow_id="order-1")
PAUSE = r.PauseActivityRequest(execution=ORDER, activity_id="1")
UNPAUSE = r.UnpauseActivityRequest(execution=ORDER, activity_id="1")


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield started
    started.kill()
    started.wait()


def doomed(driver: Driver, process: "subprocess.Popen[bytes]") -> Driver:
    pid = process.pid
    identity = ProcessIdentity(machine=machine_id(), pid=pid, started=process_started(pid) or "")
    return driver.as_worker("doomed", identity)


async def started(driver: Driver, worker: Driver, leased: bool) -> bytes:
    await driver.start()
    task = await worker.take()
    command = activity("1", eager=leased, retry_policy=FAST_RETRY)
    answer = await worker.complete(task.task_token, command, slots=int(leased))
    return answer.leases[0].task_token if leased else (await worker.poll_activities())[0].task_token


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


@pytest.mark.parametrize("leased", [True, False])
async def test_a_released_attempt_outlives_its_process(
    tmp_path: Path, process: "subprocess.Popen[bytes]", leased: bool
) -> None:
    path = tmp_path / "orders.db"
    async with running(path, liveness_interval=timedelta(milliseconds=20)) as driver:
        worker = doomed(driver, process)
        token = await started(driver, worker, leased)
        await worker.report(r.ActivityPending(task_token=token))
        kill(process)
        assert await driver.poll_activities(timeout=timedelta(milliseconds=300)) == ()
    async with running(path, liveness_interval=timedelta(milliseconds=20)) as driver:
        assert await driver.poll_activities(timeout=timedelta(milliseconds=300)) == ()
        (reply,) = await driver.report(r.ActivityCompleted(task_token=token))
        assert reply.error_code == ""
        task = await driver.take()
        assert "ActivityTaskCompleted" in types(task.events)


@pytest.mark.parametrize("leased", [True, False])
async def test_a_paused_attempt_ends_with_its_process_and_waits(
    process: "subprocess.Popen[bytes]", leased: bool
) -> None:
    async with running(liveness_interval=timedelta(milliseconds=20)) as driver:
        token = await started(driver, doomed(driver, process), leased)
        await driver.engine.pause_activity(PAUSE)
        kill(process)
        while (await driver.describe()).pending_activities[0].state != "PAUSED":
            assert await driver.poll_activities(timeout=SHORT) == ()
        await driver.engine.unpause_activity(UNPAUSE)
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 1 and attempt.task_token != token


async def test_a_detached_attempt_without_its_item_ends_with_its_process(
    tmp_path: Path, process: "subprocess.Popen[bytes]"
) -> None:
    """The engine died between the commit that detached it and the item's put; then the worker died."""
    path = tmp_path / "orders.db"
    async with running(path) as driver:
        await started(driver, doomed(driver, process), leased=True)
        driver.store.lose_kinds.add("Detach")
        with pytest.raises(Unavailable):
            await driver.engine.pause_activity(PAUSE)
    kill(process)
    async with running(path) as driver:
        (attempt,) = await driver.poll_activities()
        assert attempt.attempt == 2
