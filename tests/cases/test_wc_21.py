"""WC-21: exception groups and timeouts that leave the run open forever."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import ApplicationError
from stepwell.worker import Worker

from tests.support.cases_b import (
    LIMIT,
    QUEUE,
    attributes,
    cache_on_and_off,
    engine,
    failing_task,
    kinds,
    until,
    within,
    worker,
)

siblings: list[str] = []
"""What became of the activities that would have gone on for long."""


@activity.defn
async def fails(what: str) -> None:
    raise ApplicationError(f"{what} is sold out", type="SoldOut", non_retryable=True)


@activity.defn
async def goes_on(what: str) -> None:
    try:
        for _ in range(500):
            activity.heartbeat()
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        siblings.append(f"{what} cancelled")
        raise
    siblings.append(f"{what} ended")


async def _call(what: Any, argument: str) -> None:
    await workflow.execute_activity(what, argument, start_to_close_timeout=LIMIT, heartbeat_timeout=LIMIT / 60)


async def _fail_in_workflow(what: str) -> None:
    await workflow.sleep(0.05)
    raise ApplicationError(f"{what} is sold out", type="SoldOut", non_retryable=True)


@workflow.defn
async def one_of_three() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_call(goes_on, "a"))
        group.create_task(_call(fails, "pear"))
        group.create_task(_call(goes_on, "c"))


@workflow.defn
async def child_fails(what: str) -> None:
    raise ApplicationError(f"{what} is sold out", type="SoldOut", non_retryable=True)


@workflow.defn
async def child_goes_on(what: str) -> None:
    try:
        await workflow.wait_condition(lambda: False)
    except asyncio.CancelledError:
        siblings.append(f"{what} cancelled")
        raise


@workflow.defn
async def one_of_three_children() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(workflow.execute_child_workflow(child_goes_on, "a"))
        group.create_task(workflow.execute_child_workflow(child_fails, "pear"))
        group.create_task(workflow.execute_child_workflow(child_goes_on, "c"))


@workflow.defn
async def two_of_three_children() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(workflow.execute_child_workflow(child_goes_on, "a"))
        group.create_task(workflow.execute_child_workflow(child_fails, "pear"))
        group.create_task(workflow.execute_child_workflow(child_fails, "plum"))


@workflow.defn
async def two_of_three() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_call(goes_on, "a"))
        group.create_task(_fail_in_workflow("pear"))
        group.create_task(_fail_in_workflow("plum"))


async def _bug() -> None:
    await workflow.sleep(0.05)
    raise KeyError("typo")


@workflow.defn
async def failure_and_bug() -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_fail_in_workflow("pear"))
        group.create_task(_bug())


@workflow.defn
async def wait_expires() -> None:
    await workflow.wait_condition(lambda: False, timeout=0.1)


@workflow.defn
async def timeout_expires() -> None:
    async with asyncio.timeout(0.1):
        await _call(goes_on, "a")


@workflow.defn
class Late:
    """Waits in vain, catches that, and its condition turns true later."""

    def __init__(self) -> None:
        self.ready = False
        self.waited = False

    @workflow.run
    async def run(self) -> str:
        outcome = "in time"
        try:
            await workflow.wait_condition(lambda: self.ready, timeout=0.1)
        except TimeoutError:
            outcome = "too late"
        self.waited = True
        await workflow.wait_condition(lambda: self.ready)
        return outcome

    @workflow.signal
    def be_ready(self) -> None:
        self.ready = True

    @workflow.query
    def has_waited(self) -> bool:
        return self.waited


CHILDREN = [child_fails, child_goes_on, one_of_three_children, two_of_three_children]
WORKFLOWS = [*CHILDREN, one_of_three, two_of_three, failure_and_bug, wait_expires, timeout_expires, Late]


def _worker(client: Client, cache: int) -> Worker:
    siblings.clear()
    return worker(client, WORKFLOWS, [fails, goes_on], cache)


async def _failure(client: Client, which: Any) -> tuple[WorkflowHandle[Any], BaseException]:
    """The run closes as failed within seconds, and this is its failure."""
    handle = await client.start_workflow(which, id="group", task_queue=QUEUE)
    with pytest.raises(WorkflowFailureError) as caught:
        await within(10, handle.result())
    description = await handle.describe()
    assert description.status == "FAILED"
    assert caught.value.cause is not None
    assert "WorkflowTaskFailed" not in await kinds(handle)
    return handle, caught.value.cause


@cache_on_and_off
async def test_one_of_a_task_group_fails(tmp_path: Path, cache: int) -> None:
    """(a) A task group of three activities of which one fails, uncaught: the run fails with the inner failure
    readable, and the siblings are cancelled."""
    async with engine(tmp_path) as client, _worker(client, cache):
        handle, cause = await _failure(client, one_of_three)
        assert "pear is sold out" in str(cause)
        assert "SoldOut" in _chain(cause)

        async def both_are_cancelled() -> bool:
            return sorted(siblings) == ["a cancelled", "c cancelled"]

        await until(both_are_cancelled, 10)
        assert (await kinds(handle)).count("ActivityTaskCancelRequested") == 2


@cache_on_and_off
@pytest.mark.parametrize("which", [one_of_three_children, two_of_three_children], ids=lambda which: which.__name__)
async def test_children_of_a_task_group_fail(tmp_path: Path, cache: int, which: Any) -> None:
    """(a, b) A task group of three children of which one fails, or two: the run fails with the first failure readable
    to its end, and those that go on are cancelled."""
    async with engine(tmp_path) as client, _worker(client, cache):
        _, cause = await _failure(client, which)
        assert "is sold out" in _chain(cause) and "SoldOut" in _chain(cause)

        async def the_others_are_cancelled() -> bool:
            others = ["a cancelled", "c cancelled"] if which is one_of_three_children else ["a cancelled"]
            return sorted(set(siblings)) == others

        await until(the_others_are_cancelled, 10)


def _chain(error: BaseException | None) -> str:
    """Types and messages down the causes."""
    parts = []
    while error is not None:
        parts.append(f"{getattr(error, 'type', '')} {error}")
        error = error.__cause__
    return "\n".join(parts)


@cache_on_and_off
async def test_two_of_a_task_group_fail(tmp_path: Path, cache: int) -> None:
    """(b) Two of three fail in the same turn: the run fails, and both failures are readable."""
    async with engine(tmp_path) as client, _worker(client, cache):
        _, cause = await _failure(client, two_of_three)
        assert "pear is sold out" in str(cause)
        assert "plum is sold out" in str(cause)


@cache_on_and_off
async def test_a_failure_and_a_bug_in_one_group(tmp_path: Path, cache: int) -> None:
    """(c) A group of a failure and of a plain bug: by the documented rule one bug makes it a bug, so the workflow task
    fails, visibly at once and with both errors readable, and the run stays open for fixed code."""
    async with engine(tmp_path) as client, _worker(client, cache):
        handle = await client.start_workflow(failure_and_bug, id="group", task_queue=QUEUE)
        pending = await failing_task(handle)
        assert pending.last_failure is not None
        assert "pear is sold out" in pending.last_failure.message
        assert "KeyError: 'typo'" in pending.last_failure.message
        assert (await handle.describe()).status == "RUNNING"


@cache_on_and_off
@pytest.mark.parametrize("which", [wait_expires, timeout_expires], ids=lambda which: which.__name__)
async def test_an_expired_timeout_fails_the_run(tmp_path: Path, cache: int, which: Any) -> None:
    """(d, e) A wait with a timeout that expires, and an ``asyncio.timeout`` block around an activity: uncaught, the
    run fails with a timeout; the activity is asked to stop."""
    async with engine(tmp_path) as client, _worker(client, cache):
        handle, cause = await _failure(client, which)
        assert isinstance(cause, ApplicationError) and cause.type == "TimeoutError"
        assert ("ActivityTaskCancelRequested" in await kinds(handle)) == (which is timeout_expires)


@cache_on_and_off
async def test_a_condition_that_turns_true_after_its_timeout(
    tmp_path: Path, cache: int, caplog: pytest.LogCaptureFixture
) -> None:
    """(f) A wait times out and is caught, and its condition turns true later: the run goes on without any error, log
    line or failed task."""
    caplog.set_level(logging.WARNING)
    async with engine(tmp_path) as client, _worker(client, cache):
        handle = await client.start_workflow(Late.run, id="late", task_queue=QUEUE)

        async def has_waited() -> bool:
            return await handle.query(Late.has_waited)

        await until(has_waited)
        await handle.signal(Late.be_ready)
        assert await within(10, handle.result()) == "too late"
        assert not any("Failed" in type(found).__name__ for found in await attributes(handle))
    assert caplog.text == ""
