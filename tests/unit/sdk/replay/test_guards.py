"""Guards: the clock, randomness, files, network and threads, however they were imported (PM-24, PM-25)."""

# ruff: noqa: DTZ001, DTZ003, DTZ005, DTZ007, DTZ011, E721 - naive times are among the cases

from __future__ import annotations

import asyncio
import datetime as datetime_module
import gc
import logging
import os
import queue
import random
import secrets
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from random import choice
from time import time as seconds
from typing import Any
from zoneinfo import ZoneInfo

import pydantic
import pytest
from stepwell import activity, workflow
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

FORBIDDEN: dict[str, tuple[Callable[[], Any], str]] = {
    "time": (lambda: time.time(), "workflow.now"),
    "time_by_name": (lambda: seconds(), "workflow.now"),
    "monotonic": (lambda: time.monotonic(), "workflow.time"),
    "localtime": (lambda: time.localtime(), "workflow.now"),
    "sleep": (lambda: time.sleep(5), "workflow.sleep"),
    "datetime_now": (lambda: datetime.now(), "workflow.now"),
    "datetime_utcnow": (lambda: datetime_module.datetime.utcnow(), "workflow.now"),
    "date_today": (lambda: date.today(), "workflow.now"),
    "random": (lambda: random.random(), "workflow.random"),
    "choice_by_name": (lambda: choice([1, 2]), "workflow.random"),
    "unseeded": (lambda: random.Random(), "workflow.new_random"),
    "uuid4": (lambda: uuid.uuid4(), "workflow.uuid4"),
    "secrets": (lambda: secrets.token_hex(), "in an activity"),
    "urandom": (lambda: os.urandom(4), "workflow.random"),
    "environ": (lambda: os.environ["PATH"], "pass it as an argument"),
    "environ_get": (lambda: os.environ.get("X"), "pass it as an argument"),
    "getenv": (lambda: os.getenv("X"), "pass it as an argument"),
    "setenv": (lambda: os.environ.update(X="1"), "pass it as an argument"),
    "open": (lambda: open(__file__), "in an activity"),
    "listdir": (lambda: os.listdir("."), "in an activity"),
    "exists": (lambda: os.path.exists("."), "in an activity"),
    "socket": (lambda: socket.create_connection(("127.0.0.1", 1)), "in an activity"),
    "resolve": (lambda: socket.gethostbyname("localhost"), "in an activity"),
    "subprocess": (lambda: subprocess.run(["true"], check=True), "in an activity"),
    "thread": (lambda: threading.Thread(target=print).start(), "asyncio tasks"),
    "queue": (lambda: queue.Queue[int]().get(), "asyncio.Queue"),
    "event": (lambda: threading.Event().wait(), "asyncio.Event"),
}


@workflow.defn
async def swallows(case: str) -> str:
    """Catching the error does not help."""
    try:
        FORBIDDEN[case][0]()
    except Exception:
        return "caught"
    return "allowed"


@workflow.defn(sandboxed=False)
async def unguarded(case: str) -> str:
    FORBIDDEN[case][0]()
    return "allowed"


@workflow.defn
async def in_a_block(case: str) -> str:
    with workflow.unsafe.sandbox_unrestricted():
        FORBIDDEN[case][0]()
    return "allowed"


@pytest.mark.parametrize("case", sorted(FORBIDDEN))
def test_forbidden(case: str) -> None:
    with pytest.raises(WorkflowTaskError, match="workflow code cannot use") as caught:
        Driver(swallows, case).task()
    assert FORBIDDEN[case][1] in caught.value.failure.message
    assert "test_guards" in caught.value.failure.stack_trace


@pytest.mark.parametrize("definition", [unguarded, in_a_block])
def test_lifted(definition: Any) -> None:
    d = Driver(definition, "time")
    d.task()
    assert d.value() == "allowed"


def test_outside_of_workflows_nothing_changes() -> None:
    Driver(swallows, "time")
    assert abs(seconds() - time.time()) < 5
    assert isinstance(datetime.now(), datetime_module.datetime) and type(datetime.now()) is not datetime
    assert isinstance(datetime(2026, 1, 1), datetime) and issubclass(datetime, date)
    assert datetime == type(datetime.now())
    assert {datetime: 1}[type(datetime.now())] == 1
    assert datetime.fromisoformat("2026-01-01") == datetime.strptime("2026", "%Y")
    assert date.today() == datetime_module.date.today()
    assert random.random() < 1 and os.environ.get("PATH")


@workflow.defn
async def allowed() -> str:
    import wave  # first import of a module, which reads files

    logging.getLogger("x").warning("logging reads the clock")
    try:
        raise ValueError("a traceback reads source files")
    except ValueError:
        logging.getLogger("x").exception("caught")
    late = datetime(2026, 6, 1, tzinfo=ZoneInfo("Europe/Berlin")) + timedelta(days=1)
    assert time.localtime(0).tm_year in (1969, 1970)
    assert 0 <= random.Random(7).random() < 1
    print("printing is a side effect, but not a decision")  # noqa: T201
    return f"{wave.__name__} {late.isoformat()}"


def test_what_stays_allowed() -> None:
    d = Driver(allowed)
    d.task()
    assert d.value() == "wave 2026-06-02T00:00:00+02:00"


@dataclass
class Parcel:
    sent: datetime | None
    days: list[date]


class Model(pydantic.BaseModel):
    at: datetime


@activity.defn
async def forward(parcel: Parcel, when: datetime) -> datetime:
    return when


@workflow.defn
async def typed(parcel: Parcel, model: Model) -> list[datetime]:
    when = await workflow.execute_activity(forward, parcel, model.at, start_to_close_timeout=timedelta(seconds=1))
    return [when, model.at]


def test_annotations_with_exchanged_classes() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=datetime_module.UTC)
    d = Driver(typed, Parcel(moment, [date(2026, 1, 1)]), Model(at=moment))
    d.task()
    d.history.activity_completed("forward", moment)
    d.task()
    assert d.value() == [moment, moment]
    assert all(type(value) is type(datetime.now()) for value in d.value())


def test_a_violation_in_a_background_task_fails_the_task() -> None:
    @workflow.defn
    async def background() -> None:
        async def looks() -> None:
            time.time()

        asyncio.ensure_future(looks())  # noqa: RUF006
        await workflow.sleep(1)

    with pytest.raises(WorkflowTaskError, match=r"time.time\(\)"):
        Driver(background).task()


def test_collector_and_signal_handlers_run_in_between_and_are_let_be() -> None:
    seen: list[float] = []

    class Finalized:
        def __del__(self) -> None:
            seen.append(time.time())

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(time.perf_counter())

    def on_signal(number: int, frame: Any) -> None:
        seen.append(time.time())

    @workflow.defn
    async def interrupted() -> str:
        garbage: list[Any] = [Finalized()]
        garbage.append(garbage)
        del garbage
        gc.collect()
        signal.raise_signal(signal.SIGUSR1)
        return "not disturbed"

    before = signal.signal(signal.SIGUSR1, on_signal)
    gc.callbacks.append(note)
    try:
        d = Driver(interrupted)
        d.task()
    finally:
        gc.callbacks.remove(note)
        signal.signal(signal.SIGUSR1, before)
    assert d.value() == "not disturbed"
    assert len(seen) >= 4


def test_other_threads_are_not_affected() -> None:
    results: list[float] = []
    go, done = threading.Event(), threading.Event()

    def other() -> None:
        go.wait()
        results.append(time.time())
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    @workflow.defn
    async def lets_run() -> None:
        with workflow.unsafe.sandbox_unrestricted():
            go.set()
            done.wait()

    Driver(lets_run).task()
    thread.join()
    assert results
