"""WC-35: restarting the dev server on its data file. ``tests/e2e/test_dev_server.py`` has the short form; here are five
rounds, looked at right after each restart."""

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from stepwell.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    WorkflowHandle,
)
from stepwell.common import SearchAttributeKey

from tests.support.cases_b import until, within
from tests.support.processes import Running, free_port, running

STEPWELL = Path(sys.executable).with_name("stepwell")
WORKER = Path(__file__).parents[1] / "e2e" / "echo_worker.py"
TEAM = SearchAttributeKey.for_keyword("Team")
NOMINAL = SearchAttributeKey.for_datetime("StepwellScheduledStartTime")
EVERY = timedelta(seconds=1)
NOISE = ("Traceback", "ERROR", "WARNING", "CRITICAL", "Task exception")


@contextmanager
def _server(folder: Path, port: int) -> Iterator[Running]:
    with running([STEPWELL, "dev", "--port", str(port), "--db", "data.db"], folder) as server:
        server.wait_for("is running")
        assert str(folder / "data.db") in server.wait_for("Data"), "the banner says where data is kept"
        server.wait_for("In a terminal")
        yield server


async def _start(
    client: Client, workflow_type: str, workflow_id: str, *args: Any, team: str = ""
) -> WorkflowHandle[Any]:
    found_by = [TEAM.value_set(team)] if team else []
    return await client.start_workflow(
        workflow_type, args=args, id=workflow_id, task_queue="echo", search_attributes=found_by
    )


async def _first_round(client: Client, awaited: Path) -> None:
    await client.create_schedule(
        "ticks",
        Schedule(
            action=ScheduleActionStartWorkflow("Echo", args=[1], id="tick", task_queue="echo"),
            spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(EVERY)]),
            policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.BUFFER_ALL),
        ),
    )
    closed = await _start(client, "Echo", "closed", 1, team="red")
    assert await within(30, closed.result()) == [1]
    await _start(client, "Echo", "waits", "wait", team="red")
    await _start(client, "Echo", "new", team="blue")
    retries = await _start(client, "Needy", "retries", str(awaited), 0)
    while not any(pending.last_failure for pending in (await retries.describe()).pending_activities):
        await asyncio.sleep(0.02)
    sleeps = await _start(client, "Sleeper", "sleeps", 6)
    while not (await sleeps.describe()).pending_timers:  # a server stopped before its first task is another case
        await asyncio.sleep(0.02)


async def _look(client: Client, round: int, attempts: list[int], asleep: bool) -> None:
    """Everything is listed with the right state, and starts, signals and retries work at once."""
    query = "NOT WorkflowId STARTS_WITH 'new' AND StepwellScheduledById IS NULL"
    states = {found.id: str(found.status) async for found in client.list_workflows(query)}
    sleeps = "RUNNING" if asleep else states["sleeps"]
    assert states == {"closed": "COMPLETED", "sleeps": sleeps, "waits": "RUNNING", "retries": "RUNNING"}
    assert {found.id async for found in client.list_workflows("Team = 'red'")} == {"closed", "waits"}
    (pending,) = (await client.get_workflow_handle("retries").describe()).pending_activities
    assert pending.last_failure is not None and "is missing" in pending.last_failure.message
    attempts.append(pending.attempt)
    assert not asleep or (await client.get_workflow_handle("sleeps").describe()).pending_timers
    assert await within(30, client.get_workflow_handle("closed").result()) == [1]
    await client.get_workflow_handle("waits").signal("add", round)
    new = await _start(client, "Echo", f"new-{round}", round)
    assert await within(30, new.result()) == [round], "the worker did not reconnect"


async def _every_time_was_acted_on(client: Client) -> None:
    """Each once and in order, those at which there was no server too."""

    async def times() -> list[datetime]:
        query = "StepwellScheduledById = 'ticks' ORDER BY StepwellScheduledStartTime"
        return [found.typed_search_attributes[NOMINAL] async for found in client.list_workflows(query)]

    up_to_now = datetime.now(UTC) - EVERY

    async def caught_up() -> bool:
        return (await times())[-1] > up_to_now

    await until(caught_up, 60)
    found = await times()
    assert {later - earlier for earlier, later in pairwise(found)} == {EVERY}
    info = (await client.get_schedule_handle("ticks").describe()).info
    assert info.num_actions_missed_catchup_window == 0


async def test_five_restarts_under_a_running_worker(tmp_path: Path) -> None:
    """With a data file: a closed run, one in a sleep, one that waits for a signal, an activity in retry backoff, a
    schedule that makes up for what it missed, and a search attribute.
    Stop the server with Ctrl-C, SIGTERM and a kill, five times, and restart it each time with the worker process still
    running. After each restart everything is listed in the right state, new starts work, the worker reconnects by
    itself and the retries go on; in the end the timer has fired, the signals are all there, and the retried activity
    succeeds. Both logs are clean."""
    port = free_port()
    awaited = tmp_path / "awaited"
    attempts: list[int] = []
    stops = (signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
    with running([sys.executable, WORKER, f"http://127.0.0.1:{port}"], tmp_path) as worker:
        with _server(tmp_path, port) as server:
            worker.wait_for("ready")
            async with await Client.connect(f"http://127.0.0.1:{port}") as client:
                await _first_round(client, awaited)
            started = time.monotonic()
            assert await asyncio.to_thread(server.stop, signal.SIGTERM) == 0
            assert not any(noise in server.text for noise in NOISE), server.text
        for round, number in enumerate(stops):
            with _server(tmp_path, port) as server:
                async with await Client.connect(f"http://127.0.0.1:{port}") as client:
                    asleep = time.monotonic() - started < 3  # later it may be awake
                    await _look(client, round, attempts, asleep)
                code = await asyncio.to_thread(server.stop, number)
                assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0), server.text
                assert not any(noise in server.text for noise in NOISE), server.text
        with _server(tmp_path, port) as server:
            awaited.touch()
            async with await Client.connect(f"http://127.0.0.1:{port}") as client:
                await _every_time_was_acted_on(client)
                assert await within(20, client.get_workflow_handle("sleeps").result()) == "awake"
                assert await within(20, client.get_workflow_handle("retries").result()) == "found"
                waits = client.get_workflow_handle("waits")
                await waits.signal("finish")
                assert await within(20, waits.result()) == [[round] for round in range(len(stops))]
                history = json.loads((await waits.fetch_history()).to_json())
                assert [event["event_id"] for event in history["events"]] == list(range(1, len(history["events"]) + 1))
            assert await asyncio.to_thread(server.stop, signal.SIGINT) == 0
        await asyncio.to_thread(worker.stop)
    assert len(attempts) == len(stops) and attempts == sorted(attempts)
    assert worker.text.count("Traceback") == worker.text.count("Activity needs_file failed"), worker.text


async def test_a_timer_that_fell_due_while_the_server_was_down(tmp_path: Path) -> None:
    """The server is killed, and a sleep ends while it is down. After the restart the timer fires promptly, and the
    result is there without anybody asking for it to go on."""
    port = free_port()
    with running([sys.executable, WORKER, f"http://127.0.0.1:{port}"], tmp_path) as worker:
        with _server(tmp_path, port) as server:
            worker.wait_for("ready")
            async with await Client.connect(f"http://127.0.0.1:{port}") as client:
                handle = await _start(client, "Sleeper", "overdue", 1)
                while not (await handle.describe()).pending_timers:
                    await asyncio.sleep(0.02)
            await asyncio.to_thread(server.stop, signal.SIGKILL)
        await asyncio.sleep(1.2)
        with _server(tmp_path, port) as server:
            async with await Client.connect(f"http://127.0.0.1:{port}") as client:
                assert await within(10, client.get_workflow_handle("overdue").result()) == "awake"
            await asyncio.to_thread(server.stop)
