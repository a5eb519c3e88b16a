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
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from random import choice
from time import time as seconds
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest
from stepwell import activity, workflow
from stepwell.api.failures import Failure
from stepwell.converter import DataConverter, DefaultFailureConverter, PayloadConverter
from stepwell.exceptions import ApplicationError
from stepwell.replay.errors import WorkflowTaskError
from stepwell.replay.run import WorkflowRun
from stepwell.workflow.definition import WorkflowDefinition

from tests.support.histories import Driver
from tests.unit.sdk.replay import guarded_helpers, guarded_models
from tests.unit.sdk.replay.guarded_helpers import Stamps

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
    "helper_datetime": (lambda: guarded_helpers.now(), "workflow.now"),
    "helper_utcnow": (lambda: Stamps.utcnow(), "workflow.now"),
    "helper_time": (lambda: Stamps().seconds, "workflow.now"),
    "helper_randint": (lambda: guarded_helpers.dice(), "workflow.random"),
    "helper_of_a_helper": (lambda: guarded_helpers.indirectly(), "workflow.now"),
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


def test_a_request_is_the_network_though_it_looks_for_a_proxy_first() -> None:
    @workflow.defn
    async def requests() -> None:
        urllib.request.urlopen("http://127.0.0.1:1/")

    with pytest.raises(WorkflowTaskError, match="cannot use the network"):
        Driver(requests).task()


def test_helper_modules_work_as_before_outside_of_workflows() -> None:
    Driver(swallows, "time")
    assert type(guarded_helpers.now()) is type(guarded_helpers.indirectly()) is type(datetime(2026, 1, 1))
    assert guarded_helpers.dice() in range(1, 7) and Stamps().seconds > 0


def test_a_module_imported_by_workflow_code_is_guarded_from_the_next_run_on() -> None:
    @workflow.defn
    async def imports_late() -> None:
        guarded_helpers.imported_late()

    Driver(imports_late).task()
    with pytest.raises(WorkflowTaskError, match=r"datetime.now\(\)"):
        Driver(imports_late).task()


def test_modules_with_annotations_only_keep_the_real_datetime() -> None:
    Driver(swallows, "time")
    assert "__stepwell_guarded__" not in vars(vars(guarded_models)["datetime"])
    assert msgspec.json.decode(b'{"at":"2026-01-01T00:00:00"}', type=guarded_models.Order).at == datetime(2026, 1, 1)


_EARLY_BOUND = """
from datetime import datetime
from random import randint
from time import time

def at(): return datetime.utcnow()
def dice(): return randint(1, 6)
def seconds(): return time()
"""
_USES_THEM = """
import asyncio
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError
from stepwell.replay.run import WorkflowRun
from stepwell.workflow.definition import WorkflowDefinition
from tests.support.histories import Driver
import helpers
from helpers import dice
with workflow.unsafe.imports_passed_through():
    from passed import at as passed_at, dice as passed_dice, seconds as passed_seconds

@workflow.defn
async def run(case: str) -> str:
    {"at": helpers.at, "dice": dice, "seconds": lambda: helpers.seconds()}.get(case, globals().get(case))()
    return "allowed"

for case in ("at", "dice", "seconds", "passed_at", "passed_dice", "passed_seconds"):
    try:
        Driver(run, case).task()
        print(case, "allowed")
    except WorkflowTaskError as error:
        print(case, error.failure.message.partition(",")[0])
assert helpers.seconds() > 0 and dice() > 0 and helpers.at()
"""


def test_helper_modules_imported_before_the_guards_were_put_up(tmp_path: Path) -> None:
    """In a process of its own, since the guards are up in this one before anything is imported."""
    (tmp_path / "helpers.py").write_text(_EARLY_BOUND)
    (tmp_path / "passed.py").write_text(_EARLY_BOUND)
    (tmp_path / "main.py").write_text(_USES_THEM)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, tmp_path / "main.py"], env=variables, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "at workflow code cannot use datetime.utcnow()",
        "dice workflow code cannot use random.randint()",
        "seconds workflow code cannot use time.time()",
        "passed_at allowed",
        "passed_dice allowed",
        "passed_seconds allowed",
    ], done.stderr


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


def test_a_failure_is_encoded_with_the_guards_lifted() -> None:
    class ReadsFiles(DefaultFailureConverter):
        def to_failure(self, exception: BaseException, payload_converter: PayloadConverter) -> Failure:
            Path(__file__).read_text()
            return super().to_failure(exception, payload_converter)

    @workflow.defn
    async def fails() -> None:
        raise ApplicationError("no", type="No")

    d = Driver(fails)
    d.run = WorkflowRun(
        WorkflowDefinition.must_of(fails),
        namespace="default",
        workflow_id="w",
        run_id="r",
        task_queue="q",
        converter=DataConverter(failure_converter_class=ReadsFiles),
    )
    d.task()
    assert d.run.closed


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
