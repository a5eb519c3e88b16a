"""WC-34 on the command line: a run of 20,000 events of 2 KB that still grows. What people look for costs what it shows,
and all of it is written as it comes, in the memory that a few pages need."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import RecordMarker
from stepwell.api.limits import HISTORY_PAGE_EVENTS
from stepwell.api.payloads import Payload

from tests.support.api_server import served_api
from tests.support.engine import Driver, activity
from tests.support.processes import SOURCES, running

EVENTS = 20_000
A_TASK = 1_000
ID = "order-1"
STEPWELL = Path(sys.executable).with_name("stepwell")
MEASURED = """
import sys, tracemalloc
tracemalloc.start()
from stepwell.cli import main
try:
    main(sys.argv[1:])
finally:
    sys.stderr.write(f"peak {tracemalloc.get_traced_memory()[1]}")
"""
VALUE = 1_500
"""2 KB as JSON has it; with more the history would be over the limit of its bytes."""


class LongRun:
    """Counts the pages that are asked for."""

    def __init__(self, driver: Driver, address: str, pages: list[int]) -> None:
        self.driver = driver
        self.address = address
        self.pages = pages

    async def show(self, *arguments: str) -> tuple[list[dict[str, Any]], int]:
        """The events that are shown, and the most memory that it took."""
        command = ["workflow", "show", ID, "--address", self.address, "--output", "json", *arguments]
        process = await asyncio.create_subprocess_exec(
            *[sys.executable, "-c", MEASURED, *command],
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": SOURCES},
        )
        self.pages.clear()
        written, said = await process.communicate()
        assert process.returncode == 0, said.decode()
        return json.loads(written), int(said.decode().rpartition("peak ")[2])


async def _grown(driver: Driver) -> None:
    """Markers of 2 KB up to the 20,000th event; a task that fails is among the last ones, and an activity waits."""
    await driver.start()
    await driver.complete((await driver.take()).task_token, activity("pending", eager=False))
    left = EVENTS - 50
    marker = RecordMarker(marker_name="step", details={"of": Payload(data=b"x" * VALUE)})
    while (length := (await driver.describe()).info.history_length) < left:
        await driver.signal()
        task = await driver.take()
        await driver.complete(task.task_token, *[marker] * min(A_TASK, left - length))
    await driver.signal(name="bad")
    await driver.fail_task((await driver.take()).task_token, "this code is wrong")
    await driver.complete((await driver.take()).task_token)
    while (await driver.describe()).info.history_length < EVENTS:
        await _signalled(driver, "ship")


async def _signalled(driver: Driver, name: str) -> None:
    """Four events more."""
    await driver.signal(name=name)
    await driver.complete((await driver.take()).task_token)


@pytest.fixture
async def long_run() -> AsyncIterator[LongRun]:
    async with served_api() as served:
        engine = served.hosted.engine
        driver = Driver(engine, None)  # type: ignore[arg-type]
        await _grown(driver)
        pages: list[int] = []
        read = engine.get_history

        async def counted(request: r.GetHistoryRequest) -> r.GetHistoryResponse:
            answer = await read(request)
            pages.append(len(answer.events))
            return answer

        engine.get_history = counted  # type: ignore[method-assign]
        yield LongRun(driver, served.address, pages)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell's background job ignores Ctrl-C, and so would all that it starts."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
async def test_what_is_looked_for_costs_what_it_shows(long_run: LongRun, tmp_path: Path) -> None:
    newest, _ = await long_run.show("--tail", "20")
    assert long_run.pages == [20]
    last = newest[-1]["event_id"]
    assert last >= EVENTS and [event["event_id"] for event in newest] == list(range(last - 19, last + 1))
    reversed_, _ = await long_run.show("--reverse", "--limit", "20")
    assert long_run.pages == [20] and reversed_ == newest[::-1]
    failed, _ = await long_run.show("--failed", "--tail", "1")
    assert [event["attributes"]["type"] for event in failed] == ["WorkflowTaskFailed"]
    assert len(long_run.pages) == 1
    first, _ = await long_run.show("--limit", "300")
    assert long_run.pages == [HISTORY_PAGE_EVENTS, 300 - HISTORY_PAGE_EVENTS]
    assert [event["event_id"] for event in first] == list(range(1, 301))
    long_run.pages.clear()
    with running([STEPWELL, "workflow", "describe", ID, "--address", long_run.address], tmp_path) as described:
        await asyncio.to_thread(described.wait_for, "pending")
        assert await asyncio.to_thread(described.wait) == 0
    assert long_run.pages == [], "what waits is known without the history"


@pytest.mark.slow
async def test_all_of_it_needs_no_more_memory_than_a_part(long_run: LongRun) -> None:
    _, for_few = await long_run.show("--limit", str(3 * HISTORY_PAGE_EVENTS))
    events, for_all = await long_run.show()
    assert [event["event_id"] for event in events] == list(range(1, len(events) + 1)) and len(events) >= EVENTS
    assert max(long_run.pages) == HISTORY_PAGE_EVENTS and sum(long_run.pages) == len(events)
    assert for_all < for_few + 2 * 1024 * 1024, "of 40 MB"


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
async def test_it_is_followed_from_its_end(long_run: LongRun, tmp_path: Path) -> None:
    command = [STEPWELL, "workflow", "show", ID, "--address", long_run.address]
    with running([*command, "--tail", "1", "--follow"], tmp_path) as followed:
        await asyncio.to_thread(followed.wait_for, "Z ", 60)
        read = sum(long_run.pages)
        for number in range(3):
            await _signalled(long_run.driver, f"new-{number}")
            await asyncio.to_thread(followed.wait_for, f"new-{number}")
        assert sum(long_run.pages) <= read + 3 * 4, "what was read is not read again"
        assert await asyncio.to_thread(followed.stop, signal.SIGINT) == 130 and "Traceback" not in followed.text


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
async def test_it_is_left_at_any_time(long_run: LongRun) -> None:
    """What nobody reads is not fetched either."""
    command = ["workflow", "show", ID, "--address", long_run.address, "--full"]
    process = await asyncio.create_subprocess_exec(
        *[STEPWELL, *command],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )
    assert process.stdout is not None
    for _ in range(10):
        assert await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, said = await process.communicate()
    assert (process.returncode, said.strip()) == (130, b"")
    assert len(long_run.pages) < 5
