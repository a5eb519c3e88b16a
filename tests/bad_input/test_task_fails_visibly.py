"""Workflow code that cannot go on: its task fails where everybody looks (describe, the worker's log, the command line),
and the run stays open until fixed code is deployed.

Shown elsewhere, and not repeated here:

- every single thing the guards refuse, and what stays allowed: ``unit/sdk/replay/test_guards.py``;
- every structural change that replay finds: ``unit/sdk/replay/test_nondeterminism.py``;
- the watchdog by itself: ``unit/sdk/worker/test_deadlock.py``;
- results above the limit: ``test_oversize_result_fails_the_task`` in ``unit/sdk/worker/test_worker_workflows.py``;
- activities on a task queue that nobody polls: ``test_describe_says_what_nobody_polls`` in
  ``integration/engine/test_activities.py``.
"""

# ruff: noqa: DTZ003, DTZ005 - the wrong calls are what is tested

import asyncio
import datetime as datetime_module
import logging
import os
import queue
import random
import re
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from random import random as draw
from time import time as seconds
from typing import Any
from uuid import uuid4

import pytest
from stepwell import activity, workflow
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.cli import main
from stepwell.client import Client, WorkflowHandle, WorkflowQueryFailedError
from stepwell.worker import Worker
from stepwell.worker.watchdog import Watchdog, WorkflowDeadlock

from tests.support.api_server import served_api

QUEUE = "q"
SOON = timedelta(seconds=5)
HELD = threading.Lock()


def _spin() -> None:
    while True:
        pass


def _catches_everything() -> None:
    """Ends with the second interrupt."""
    try:
        _spin()
    except BaseException:
        _spin()


def _waits_for_a_lock() -> None:
    HELD.acquire()
    HELD.acquire()


# Each with what its message must say: what is wrong, and the way out.
BROKEN: dict[str, tuple[Callable[[], object], str]] = {
    "Clock": (lambda: time.time(), r"time\.time\(\).*use workflow\.now\(\)"),
    "ClockByName": (lambda: seconds(), r"time\.time\(\).*use workflow\.now\(\)"),
    "ClockOfTheProcess": (lambda: time.thread_time(), r"thread_time\(\).*workflow\.time\(\)"),
    "Now": (lambda: datetime_module.datetime.now(), r"datetime\.now\(\).*use workflow\.now\(\)"),
    "NowByName": (lambda: datetime.utcnow(), r"datetime\.utcnow\(\).*use workflow\.now\(\)"),
    "Random": (lambda: random.random(), r"random\.random\(\).*use workflow\.random\(\)"),
    "RandomByName": (lambda: draw(), r"random\.random\(\).*use workflow\.random\(\)"),
    "Uuid": (lambda: uuid.uuid4(), r"uuid\.uuid4\(\).*use workflow\.uuid4\(\)"),
    "UuidByName": (lambda: uuid4(), r"uuid\.uuid4\(\).*use workflow\.uuid4\(\)"),
    "Environment": (lambda: os.environ["PATH"], r"os\.environ.*pass it as an argument"),
    "File": (lambda: Path(__file__).read_text(), r"files.*in an activity"),
    "Network": (lambda: socket.create_connection(("127.0.0.1", 1)), r"network.*in an activity"),
    "Sleep": (lambda: time.sleep(60), r"time\.sleep\(\).*use workflow\.sleep\(\)"),
    "Event": (lambda: threading.Event().wait(), r"blocking waits.*asyncio\.Event"),
    "Queue": (lambda: queue.Queue[int]().get(), r"blocking waits.*asyncio\.Queue"),
    "Unserialisable": (lambda: object(), r"result.*object.*cannot be encoded; use a dataclass"),
    "Sleepless": (lambda: workflow.start_activity("a", start_to_close_timeout=timedelta(seconds=-1)), r"'a'.*-1 s"),
    "Nowhere": (lambda: workflow.start_activity("a"), r"'a' needs start_to_close_timeout.*or schedule_to_close"),
    "Untyped": (lambda: workflow.start_activity("a", start_to_close_timeout=5), r"must be a timedelta, not int"),
    "Silent": (lambda: _assert_nothing(), "^$"),
    "Exits": (lambda: sys.exit("out"), "out"),
}
BLOCKING: dict[str, Callable[[], object]] = {
    "Spins": _spin,
    "SpinsOn": _catches_everything,
    "Locks": _waits_for_a_lock,
    "SimpleQueue": lambda: queue.SimpleQueue[int]().get(),
}


def _assert_nothing() -> None:
    raise AssertionError


def _broken(name: str, wrong: Callable[[], object]) -> Any:
    async def run() -> object:
        return wrong()

    return workflow.defn(name=name)(run)


def _fixed(name: str) -> Any:
    async def run() -> str:
        return "fixed"

    return workflow.defn(name=name)(run)


@asynccontextmanager
async def _served() -> AsyncIterator[Client]:
    async with served_api() as served, await Client.connect(served.address) as client:
        client.address = served.address  # type: ignore[attr-defined] # for the command line
        yield client


async def _start(client: Client, names: Sequence[str]) -> dict[str, WorkflowHandle[Any]]:
    return {name: await client.start_workflow(name, id=f"id-{name}", task_queue=QUEUE) for name in names}


async def _reason(handle: WorkflowHandle[Any]) -> str:
    """What describe shows as the reason, as soon as it does."""
    async with asyncio.timeout(20):
        while True:
            description = await handle.describe()
            assert description.status is WorkflowExecutionStatus.RUNNING
            pending = description.pending_workflow_task
            if pending is not None and pending.last_failure is not None:
                return pending.last_failure.message
            await asyncio.sleep(0.02)


async def _command_line(client: Client, capture: pytest.CaptureFixture[str], workflow_id: str) -> str:
    address: str = client.address  # type: ignore[attr-defined]
    capture.readouterr()
    await asyncio.to_thread(main, ["workflow", "describe", workflow_id, "--address", address])
    return re.sub(r"\s+", " ", capture.readouterr().out)


def _lines(caplog: pytest.LogCaptureFixture, workflow_id: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "stepwell.worker" and f"'{workflow_id}'" in record.getMessage()
    ]


async def _all_fixed(client: Client, handles: dict[str, WorkflowHandle[Any]]) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[_fixed(name) for name in handles]), asyncio.timeout(30):
        assert {name: await handle.result() for name, handle in handles.items()} == dict.fromkeys(handles, "fixed")


async def test_wrong_code(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    workflows = [_broken(name, wrong) for name, (wrong, _) in BROKEN.items()]
    async with _served() as client:
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            async with Worker(client, task_queue=QUEUE, workflows=workflows):
                handles = await _start(client, list(BROKEN))
                reasons = {name: await _reason(handle) for name, handle in handles.items()}
        for name, (_, said) in BROKEN.items():
            assert re.search(said, reasons[name]), (name, reasons[name])
            (line,) = _lines(caplog, f"id-{name}")
            assert "tried again until the code is fixed" in line
            assert reasons[name] in line
            assert "test_task_fails_visibly.py" in line or name == "Unserialisable"
        shown = await _command_line(client, capsys, "id-Clock")
        assert "RUNNING" in shown
        assert "WORKFLOW_WORKER_UNHANDLED_FAILURE" in shown
        assert "ForbiddenInWorkflowError: workflow code cannot use time.time()" in shown
        assert "AssertionError" in await _command_line(client, capsys, "id-Silent")
        assert "AssertionError" in _lines(caplog, "id-Silent")[0]  # an empty message alone would say nothing
        await _all_fixed(client, handles)


async def test_code_that_blocks(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and inside C code; the worker's other workflows go on behind it."""
    limit = timedelta(milliseconds=300)
    async with _served() as client:
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            workflows = [_broken(name, blocks) for name, blocks in BLOCKING.items()]
            async with Worker(
                client, task_queue=QUEUE, workflows=[*workflows, _fixed("Swift")], deadlock_timeout=limit
            ):
                handles = await _start(client, list(BLOCKING))
                for name, handle in handles.items():
                    assert "did not yield within 0.3 s" in await _reason(handle), name
                swift = await client.execute_workflow("Swift", id="swift", task_queue=QUEUE)
                assert swift == "fixed"
        for name in BLOCKING:
            (line,) = _lines(caplog, f"id-{name}")
            assert "belongs into an activity" in line
            assert "test_task_fails_visibly.py" in line, "the stack of where it stood"
        assert any("holds up its whole worker" in record.getMessage() for record in caplog.records)
        assert "[deadlock]" in await _command_line(client, capsys, "id-Locks")
        HELD.release()
        await _all_fixed(client, handles)


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signal")
def test_the_signal_belongs_to_the_program_when_it_wants_it() -> None:
    """Then, and in other threads, only Python code is interrupted."""

    def handler(number: int, frame: Any) -> None: ...

    def spins() -> None:
        watchdog = Watchdog(0.1)
        watchdog.start()
        with pytest.raises(WorkflowDeadlock), watchdog:
            _spin()
        watchdog.stop()

    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
    spins()
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
    with ThreadPoolExecutor(1) as pool:
        pool.submit(spins).result()
    signal.signal(signal.SIGURG, handler)
    try:
        spins()
        assert signal.getsignal(signal.SIGURG) is handler
    finally:
        signal.signal(signal.SIGURG, signal.SIG_DFL)


async def test_unknown_workflow_type(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    async with _served() as client:
        handles = await _start(client, ["Unknown"])
        shown = await _command_line(client, capsys, "id-Unknown")
        assert "No worker polls task queue q" in shown
        assert (await handles["Unknown"].describe()).unpolled_task_queues == ("q (workflow)",)
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            async with Worker(client, task_queue=QUEUE, workflows=[_fixed("Other")]):
                reason = await _reason(handles["Unknown"])
        assert "'Unknown' is not registered with worker" in reason
        assert reason.endswith("registered are: Other")
        assert reason in _lines(caplog, "id-Unknown")[0]
        assert "'Unknown' is not registered" in await _command_line(client, capsys, "id-Unknown")
        await _all_fixed(client, handles)


@activity.defn
async def charge() -> str:
    return "charged"


@workflow.defn(name="Order")
class Order:
    """As it was first deployed."""

    def __init__(self) -> None:
        self.shipped = False

    @workflow.run
    async def run(self) -> str:
        charged = await workflow.execute_activity(charge, start_to_close_timeout=SOON)
        await workflow.wait_condition(lambda: self.shipped)
        return charged

    @workflow.signal
    def ship(self) -> None:
        self.shipped = True


@workflow.defn(name="Order")
class ChangedOrder:
    """Somebody put a wait in front."""

    def __init__(self) -> None:
        self.shipped = False

    @workflow.run
    async def run(self) -> str:
        await workflow.sleep(1)
        return await workflow.execute_activity(charge, start_to_close_timeout=SOON)

    @workflow.signal
    def ship(self) -> None:
        self.shipped = True


async def test_non_determinism(caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    async with _served() as client:
        async with Worker(client, task_queue=QUEUE, workflows=[Order], activities=[charge]):
            handle = await client.start_workflow(Order.run, id="id-order", task_queue=QUEUE)
            async with asyncio.timeout(30):
                while (await handle.describe()).pending_activities or (await handle.describe()).history_length < 8:
                    await asyncio.sleep(0.02)
        await handle.signal(Order.ship)
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            async with Worker(client, task_queue=QUEUE, workflows=[ChangedOrder], activities=[charge]):
                reason = await _reason(handle)
        assert "ScheduleActivityTask" in reason or "ActivityTaskScheduled" in reason
        assert "StartTimer" in reason
        assert "workflow.patched" in reason, "the remedy"
        (line,) = _lines(caplog, "id-order")
        assert "NON_DETERMINISTIC_ERROR" in line
        assert "NON_DETERMINISTIC_ERROR" in await _command_line(client, capsys, "id-order")
        async with Worker(client, task_queue=QUEUE, workflows=[Order], activities=[charge]), asyncio.timeout(20):
            assert await handle.result() == "charged"


@workflow.defn(name="Asked")
class Asked:
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: False)
        return "never"

    @workflow.query
    def status(self, what: str) -> str:
        if what == "activity":
            workflow.start_activity(charge, start_to_close_timeout=SOON)
        elif what == "timer":
            asyncio.get_running_loop().call_later(1, print)
        elif what == "random":
            return str(random.random())
        elif what == "object":
            return object()  # type: ignore[return-value]
        elif what == "spin":
            _spin()
        return "open"


@pytest.mark.parametrize("cached", [1000, 0])
async def test_query_handlers_that_do_more_than_read(cached: int, caplog: pytest.LogCaptureFixture) -> None:
    limit = timedelta(milliseconds=300)
    async with _served() as client:
        with caplog.at_level(logging.WARNING, "stepwell.worker"):
            async with Worker(
                client, task_queue=QUEUE, workflows=[Asked], max_cached_workflows=cached, deadlock_timeout=limit
            ):
                handle = await client.start_workflow(Asked.run, id="id-asked", task_queue=QUEUE)
                assert await handle.query(Asked.status, "") == "open"
                before = await handle.fetch_history()
                for what, said in {
                    "activity": "calling an activity is not possible in a query",
                    "timer": "waiting is not possible in a query",
                    "random": "workflow code cannot use random.random",
                    "object": "status.*cannot be encoded",
                    "spin": "did not yield within 0.3 s",
                }.items():
                    with pytest.raises(WorkflowQueryFailedError, match=said):
                        await handle.query(Asked.status, what)
                assert await handle.query(Asked.status, "") == "open"
        assert await handle.fetch_history() == before, "a query leaves nothing in the history"
        description = await handle.describe()
        assert description.status is WorkflowExecutionStatus.RUNNING
        assert description.pending_workflow_task is None
        lines = _lines(caplog, "id-asked")
        assert sum("calling an activity" in line for line in lines) == 1
