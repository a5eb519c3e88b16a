"""WC-24: exceptions with unusual constructors, from an activity, from main and from handlers of updates."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from stepwell import activity, workflow
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.limits import MAX_FAILURE_CAUSES, MAX_FAILURE_MESSAGE_BYTES
from stepwell.client import Client, RPCError, WorkflowFailureError, WorkflowUpdateFailedError
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError
from stepwell.replay.replayer import Replayer

from tests.support.api_server import served_api
from tests.support.cases_b import LIMIT, QUEUE, cache_on_and_off, engine, failing_task, within, worker

MEGABYTE = 1024 * 1024


class TwoArguments(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code


class BuildsItsMessage(Exception):
    def __init__(self, *, order: str) -> None:
        super().__init__(f"order {order} is late")


class HoldsALock(Exception):
    def __init__(self) -> None:
        super().__init__("locked")
        self.lock = threading.Lock()


class BrokenText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _loop() -> Exception:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one
    return one


def _deep() -> Exception:
    error = ValueError("0")
    for number in range(1, 500):
        outer = ValueError(f"{number}")
        outer.__cause__ = error
        error = outer
    return error


def _group() -> Exception:
    return ExceptionGroup("both", [TwoArguments(7, "seven"), ExceptionGroup("inner", [BuildsItsMessage(order="9")])])


# By name: how to make it, its type and what its message begins with.
ERRORS: dict[str, tuple[Callable[[], Exception], str, str]] = {
    "two arguments": (lambda: TwoArguments(7, "seven"), "TwoArguments", "(7, 'seven')"),
    "builds its message": (lambda: BuildsItsMessage(order="o-1"), "BuildsItsMessage", "order o-1 is late"),
    "holds a lock": (HoldsALock, "HoldsALock", "locked"),
    "broken text": (BrokenText, "BrokenText", "<str() of BrokenText failed with RuntimeError>"),
    "causes in a loop": (_loop, "ValueError", "one"),
    "causes without end": (_deep, "ValueError", "499"),
    "lone surrogate": (lambda: ValueError("half \ud800 a pair"), "ValueError", "half \\ud800 a pair"),
    "a megabyte": (lambda: ValueError("é" * MEGABYTE), "ValueError", "éééé"),
    "group": (_group, "ExceptionGroup", "both (2 sub-exceptions)"),
}


@activity.defn
async def fail_in_activity(name: str) -> None:
    raise ERRORS[name][0]()


def _shape(error: BaseException | None) -> list[str]:
    """What workflow code can see of an error, down its causes."""
    shape = []
    while error is not None:
        retry_state = getattr(error, "retry_state", None)
        shape.append(f"{type(error).__name__} {getattr(error, 'type', None)} {retry_state} {error}")
        error = error.__cause__
    return shape


@workflow.defn
async def calls(name: str, types: list[str]) -> list[str]:
    """The shape of the error, noted when it came in and again at the end, behind more tasks."""
    policy = RetryPolicy(maximum_attempts=2, initial_interval=LIMIT / 3000, non_retryable_error_types=types)
    try:
        await workflow.execute_activity(fail_in_activity, name, start_to_close_timeout=LIMIT, retry_policy=policy)
    except ActivityError as error:
        await workflow.sleep(0.01)
        return _shape(error)
    return []


@workflow.defn
async def lets_through(name: str) -> None:
    policy = RetryPolicy(maximum_attempts=1)
    await workflow.execute_activity(fail_in_activity, name, start_to_close_timeout=LIMIT, retry_policy=policy)


@workflow.defn
async def fails_in_main(name: str) -> None:
    raise ERRORS[name][0]()


@workflow.defn
class FailsInUpdate:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def call(self, name: str) -> None:
        await workflow.sleep(0)
        raise ERRORS[name][0]()


@workflow.defn(failure_exception_types=[Exception])
class LetsThroughUpdate:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def call(self, name: str) -> None:
        raise ERRORS[name][0]()


WORKFLOWS = [calls, lets_through, fails_in_main, FailsInUpdate, LetsThroughUpdate]


async def test_an_activity_that_raises_it(tmp_path: Path) -> None:
    """Raise each kind of exception from an activity. The workflow gets a failure promptly, with the class name as
    type, the message and the right retry state; replay (here: a worker without cache) sees the same error as live."""
    shapes: dict[int, dict[str, list[str]]] = {}
    async with engine(tmp_path) as client:
        for cache in (1000, 0):
            async with worker(client, WORKFLOWS, [fail_in_activity], cache):
                seen = shapes[cache] = {}
                for name in ERRORS:
                    handle = await client.start_workflow(calls, args=[name, []], id=f"{name} {cache}", task_queue=QUEUE)
                    seen[name] = await within(20, handle.result())
                    await Replayer(workflows=WORKFLOWS).replay_workflow(await handle.fetch_history())
    assert shapes[0] == shapes[1000]
    for name, (_, kind, message) in ERRORS.items():
        shape = shapes[0][name]
        assert shape[0].startswith("ActivityError None MAXIMUM_ATTEMPTS_REACHED"), (name, shape)
        assert shape[1].startswith(f"ApplicationError {kind} None {kind}: {message}"), (name, shape)
        assert len(shape) <= 1 + MAX_FAILURE_CAUSES


@cache_on_and_off
async def test_rules_by_type_name_work(tmp_path: Path, cache: int) -> None:
    """A non-retryable list with the class's name ends the retries at the first attempt, for every kind."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, [fail_in_activity], cache):
        for name, (_, kind, _) in ERRORS.items():
            shape = await within(
                20, client.execute_workflow(calls, args=[name, [kind]], id=f"listed {name}", task_queue=QUEUE)
            )
            assert shape[0].startswith("ActivityError None NON_RETRYABLE_FAILURE"), (name, shape)


async def test_the_result_is_read_without_these_classes(tmp_path: Path) -> None:
    """The failure of a run travels over HTTP as text: type, message (shortened by the stated rule, with a marker) and
    trace are there, whatever the class was; causes are cut at the stated depth."""
    async with served_api() as api:
        async with await Client.connect(api.address) as client, worker(client, WORKFLOWS, [fail_in_activity]):
            for name, (_, kind, message) in ERRORS.items():
                with pytest.raises(WorkflowFailureError) as caught:
                    await within(20, client.execute_workflow(lets_through, name, id=name, task_queue=QUEUE))
                cause = caught.value.cause
                assert isinstance(cause, ActivityError), name
                assert isinstance(cause.cause, ApplicationError), name
                assert cause.cause.type == kind
                assert cause.cause.message.startswith(message)
                assert cause.cause.failure is not None
                assert "fail_in_activity" in cause.cause.failure.stack_trace
                _check_limits(cause.cause.failure)
                if name in ("two arguments", "lone surrogate"):
                    said = await asyncio.to_thread(_result_by_command_line, api.address, name)
                    assert f"{kind}: {message}" in said
                if name == "a megabyte":
                    assert f"[cut: {2 * MEGABYTE} bytes in all]" in cause.cause.message
                if name == "group":
                    assert "TwoArguments: (7, 'seven')" in cause.cause.message
                    assert "BuildsItsMessage: order 9 is late" in cause.cause.message


def _result_by_command_line(address: str, workflow_id: str) -> str:
    """In a process that has never heard of these classes."""
    stepwell = Path(sys.executable).with_name("stepwell")
    command = [stepwell, "workflow", "result", workflow_id, "--address", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    return done.stderr


def _check_limits(failure: Failure) -> None:
    depth, link = 0, failure
    while True:
        depth += 1
        assert len(link.message.encode()) <= MAX_FAILURE_MESSAGE_BYTES
        assert isinstance(link.info, ApplicationFailureInfo)
        if link.cause is None:
            break
        link = link.cause
    assert depth <= MAX_FAILURE_CAUSES


@cache_on_and_off
async def test_main_that_raises_it(tmp_path: Path, cache: int, caplog: pytest.LogCaptureFixture) -> None:
    """Raise each from main. A plain exception is a bug in the code by the documented rule: the task fails, visible in
    describe at once with type and message, and the worker logs it once. Where these classes are listed as failures,
    the run fails with type and message instead."""
    caplog.set_level(logging.WARNING)
    async with engine(tmp_path) as client:
        async with worker(client, WORKFLOWS, [fail_in_activity], cache, task_queue="bugs"):
            for name, (_, _, message) in ERRORS.items():
                handle = await client.start_workflow(fails_in_main, name, id=name, task_queue="bugs")
                pending = await failing_task(handle)
                assert pending.last_failure is not None, name
                assert pending.last_failure.message.startswith(message), (name, pending.last_failure.message)
                await handle.terminate()
        listed: list[type[BaseException]] = [Exception]
        async with worker(client, WORKFLOWS, [], cache, workflow_failure_exception_types=listed):
            for name, (_, kind, message) in ERRORS.items():
                with pytest.raises(WorkflowFailureError) as caught:
                    await within(20, client.execute_workflow(fails_in_main, name, id=f"{name} 2", task_queue=QUEUE))
                assert isinstance(caught.value.cause, ApplicationError)
                assert caught.value.cause.type == kind
                assert caught.value.cause.message.startswith(message)


@cache_on_and_off
async def test_an_update_handler_that_raises_it(tmp_path: Path, cache: int) -> None:
    """Where the workflow counts it as a failure, the caller gets it as the outcome, with the class name as type and the
    message; the history replays. Where it is a bug, the caller is told promptly that the workflow task keeps failing,
    and why; the workflow goes on once it is mended."""
    async with engine(tmp_path) as client, worker(client, WORKFLOWS, [], cache):
        handle = await client.start_workflow(LetsThroughUpdate.run, id="lets through", task_queue=QUEUE)
        for name, (_, kind, message) in ERRORS.items():
            with pytest.raises(WorkflowUpdateFailedError) as caught:
                await within(20, handle.execute_update(LetsThroughUpdate.call, name))
            cause = caught.value.__cause__
            assert isinstance(cause, ApplicationError) and cause.type == kind, name
            assert cause.message.startswith(message)
            assert cause.failure is not None
            _check_limits(cause.failure)
        await Replayer(workflows=WORKFLOWS).replay_workflow(await handle.fetch_history())
        stuck = await client.start_workflow(FailsInUpdate.run, id="stuck", task_queue=QUEUE)
        with pytest.raises(RPCError, match=r"keeps failing \(attempt 4, .*order o-1 is late"):
            await within(20, stuck.execute_update(FailsInUpdate.call, "builds its message", id="u"))
