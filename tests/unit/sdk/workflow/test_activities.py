"""Calling activities: options, arguments, and what mypy makes of a call."""

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.commands import ScheduleActivityTask
from stepwell.common import RetryPolicy
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver, payloads

SHORT = timedelta(seconds=10)


class Shop:
    @activity.defn(name="sell")
    async def sell(self, item: str, count: int = 1) -> int:
        return count


@pytest.mark.parametrize(
    "call",
    [workflow.execute_activity, workflow.start_activity_method, workflow.execute_activity_method],
    ids=lambda call: call.__name__,
)
def test_an_option_misspelt_is_named_with_the_function_that_was_called(call: Any) -> None:
    @workflow.defn
    async def misspells() -> None:
        await call(Shop.sell, "tea", start_to_close_timout=SHORT)

    said = rf"{call.__name__}\(\) has no option 'start_to_close_timout'; did you mean 'start_to_close_timeout'\?"
    with pytest.raises(WorkflowTaskError, match=said):
        Driver(misspells).task()


def test_all_options_reach_the_command() -> None:
    @workflow.defn
    async def calls() -> None:
        await workflow.execute_activity_method(
            Shop.sell,
            "tea",
            2,
            task_queue="other",
            schedule_to_close_timeout=timedelta(hours=1),
            schedule_to_start_timeout=timedelta(minutes=1),
            start_to_close_timeout=SHORT,
            heartbeat_timeout=timedelta(seconds=1),
            retry_policy=RetryPolicy(maximum_attempts=3, non_retryable_error_types=["X"]),
            activity_id="mine",
        )

    d = Driver(calls)
    command = d.task().commands[0]
    assert command == ScheduleActivityTask(
        activity_id="mine",
        activity_type="sell",
        task_queue="other",
        input=payloads("tea", 2),
        schedule_to_close_timeout=timedelta(hours=1),
        schedule_to_start_timeout=timedelta(minutes=1),
        start_to_close_timeout=SHORT,
        heartbeat_timeout=timedelta(seconds=1),
        retry_policy=RetryPolicy(maximum_attempts=3, non_retryable_error_types=["X"]).to_record(),
    )


def test_arguments_as_a_list_and_by_name_with_a_result_type() -> None:
    @workflow.defn
    async def calls() -> list[Any]:
        bound = await workflow.execute_activity(Shop().sell, args=["tea", 3], start_to_close_timeout=SHORT)
        named = await workflow.execute_activity("days", "x", result_type=tuple[int, ...], start_to_close_timeout=SHORT)
        return [bound, type(named).__name__]

    d = Driver(calls)
    d.task()
    d.history.activity_completed("sell", 3)
    d.task()
    d.history.activity_completed("days", [1, 2])
    d.task()
    assert d.value() == [3, "tuple"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs start_to_close_timeout"),
        ({"start_to_close_timeout": timedelta(seconds=-1)}, "start_to_close_timeout must be above zero, not -1 s"),
        ({"start_to_close_timeout": SHORT, "heartbeat_timeout": timedelta(0)}, "heartbeat_timeout must be above zero"),
        ({"start_to_close_timeout": SHORT, "args": [1]}, "not both"),
    ],
)
def test_refused_options(options: dict[str, Any], message: str) -> None:
    @workflow.defn
    async def calls() -> None:
        await workflow.execute_activity("A", 1, **options)

    with pytest.raises(WorkflowTaskError, match=message):
        Driver(calls).task()


def test_a_result_that_does_not_fit_fails_the_task() -> None:
    @workflow.defn
    async def calls() -> None:
        await workflow.execute_activity_method(Shop.sell, "tea", 1, start_to_close_timeout=SHORT)

    d = Driver(calls)
    d.task()
    d.history.activity_completed("sell", "many")
    with pytest.raises(WorkflowTaskError, match=r"result of activity 'sell': .*Expected `int`, got `str`"):
        d.task()


TYPED = """
from datetime import timedelta
from stepwell import activity, workflow

@activity.defn
async def two(a: int, b: str) -> float: ...
@activity.defn
def sync_one(a: int) -> bytes: ...
class Shop:
    @activity.defn
    async def sell(self, item: str) -> bool: ...

async def ok() -> None:
    T = timedelta(seconds=1)
    a: float = await workflow.execute_activity(two, 1, "x", start_to_close_timeout=T)
    b: bytes = await workflow.execute_activity(sync_one, 1, start_to_close_timeout=T)
    c: bool = await workflow.execute_activity_method(Shop.sell, "x", start_to_close_timeout=T)
    d: bool = await workflow.start_activity(Shop().sell, "x", start_to_close_timeout=T)
    e: float = await workflow.execute_activity(two, args=[1, "x"], start_to_close_timeout=T)
    f: int = await workflow.execute_activity("by name", 1, start_to_close_timeout=T)

@activity.defn
async def optional(a: int, b: str = "") -> float: ...
class Callable_:
    @activity.defn
    def sync(self, item: str, n: int = 1) -> bool: ...

async def defaults() -> None:
    T = timedelta(seconds=1)
    a: float = await workflow.execute_activity(optional, 1, start_to_close_timeout=T)
    b: float = await workflow.execute_activity(optional, 1, "x", start_to_close_timeout=T)
    c: bool = await workflow.execute_activity_method(Callable_.sync, "x", start_to_close_timeout=T)

async def wrong() -> None:
    T = timedelta(seconds=1)
    await workflow.execute_activity(two, "x", 1, start_to_close_timeout=T)  # E
    await workflow.execute_activity(two, 1, "x", start_to_clos_timeout=T)  # E
    x: str = await workflow.execute_activity(two, 1, "x", start_to_close_timeout=T)  # E
    await workflow.execute_activity(sync_one, start_to_close_timeout=5)  # E
"""


@pytest.mark.slow
def test_mypy_checks_the_arguments(tmp_path: Path) -> None:
    source = tmp_path / "typed.py"
    source.write_text(TYPED)
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-error-summary",
            "--disable-error-code=empty-body",
            str(source),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {int(line.split(":")[1]) for line in ran.stdout.splitlines() if "typed.py:" in line and ": error:" in line}
    expected = {number for number, line in enumerate(TYPED.splitlines(), 1) if line.endswith("# E")}
    assert found == expected, ran.stdout
