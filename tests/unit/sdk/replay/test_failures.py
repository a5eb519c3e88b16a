"""What fails the workflow and what fails only the workflow task (ER-03, WC-21)."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.commands import FailWorkflowExecution
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.exceptions import ActivityError, ApplicationError
from stepwell.replay.errors import NondeterminismError, WorkflowTaskError

from tests.support.histories import Driver, WorkflowDefinition

SHORT = timedelta(seconds=10)


@activity.defn
async def risky(n: int) -> int:
    return n


async def call(n: int) -> int:
    return await workflow.execute_activity(risky, n, start_to_close_timeout=SHORT)


def failed(d: Driver) -> FailWorkflowExecution:
    command = d.result.commands[-1]
    assert isinstance(command, FailWorkflowExecution), d.result
    return command


def test_an_activity_failure_fails_the_workflow_with_its_causes() -> None:
    @workflow.defn
    async def plain() -> int:
        return await call(1)

    d = Driver(plain, cache=False)
    d.task()
    d.history.activity_failed("1", ValueError("no stock"))
    d.task()
    failure = failed(d).failure
    assert failure.cause is not None
    assert (failure.message, failure.cause.message) == ("activity 'risky' failed", "no stock")
    d.replay()


def test_the_error_in_the_workflow_names_the_activity_and_its_type() -> None:
    @workflow.defn
    async def catching() -> list[Any]:
        try:
            await call(1)
        except ActivityError as error:
            cause = error.cause
            assert isinstance(cause, ApplicationError)
            return [error.activity_type, error.activity_id, error.retry_state, cause.type, cause.message]
        return []

    d = Driver(catching)
    d.task()
    d.history.activity_failed("1", ValueError("no stock"))
    d.task()
    assert d.value() == ["risky", "1", "MAXIMUM_ATTEMPTS_REACHED", "ValueError", "no stock"]


def test_a_plain_bug_fails_the_task() -> None:
    @workflow.defn
    async def buggy() -> None:
        {}["x"]  # type: ignore[index]

    with pytest.raises(WorkflowTaskError) as caught:
        Driver(buggy).task()
    assert caught.value.failed_cause is WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
    assert "buggy" in caught.value.failure.stack_trace


def test_further_exception_types_may_fail_the_workflow() -> None:
    @workflow.defn(failure_exception_types=[KeyError])
    async def strict() -> None:
        raise KeyError("x")

    d = Driver(strict)
    d.task()
    assert "x" in failed(d).failure.message

    @workflow.defn
    async def by_worker() -> None:
        raise KeyError("x")

    d = Driver(by_worker, failure_types=[KeyError])
    d.task()
    assert failed(d)


def test_every_exception_fails_the_workflow_when_exception_is_listed() -> None:
    @workflow.defn(failure_exception_types=[Exception])
    async def any_bug(forbidden: bool) -> None:
        if forbidden:
            time.time()
        raise AttributeError("x")

    d = Driver(any_bug, False)
    d.task()
    assert failed(d).failure.info.failure_type == "AttributeError"  # type: ignore[union-attr]
    d = Driver(any_bug, True)
    d.task()
    assert "workflow.time()" in failed(d).failure.message


@pytest.mark.parametrize("listed", [NondeterminismError, Exception])
@pytest.mark.parametrize("by_worker", [False, True])
def test_changed_code_fails_the_workflow_when_that_is_listed(listed: type[Exception], by_worker: bool) -> None:
    types = [listed]

    @workflow.defn(name="job")
    async def first() -> None:
        await call(1)
        await call(2)

    @workflow.defn(name="job", failure_exception_types=[] if by_worker else types)
    class Changed:
        @workflow.query
        def state(self) -> str:
            return "unknown"

        @workflow.run
        async def run(self) -> None:
            await workflow.sleep(1)

    d = Driver(first, failure_types=types if by_worker else ())
    d.task()
    d.history.activity_completed("1", 1)
    d.task()
    d.run.evict()
    d.definition = WorkflowDefinition.must_of(Changed)
    d.cache = False
    d.history.activity_completed("2", 2)
    d.task()
    failure = failed(d).failure
    assert "event 5 recorded ActivityTaskScheduled" in failure.message and "StartTimer" in failure.message
    assert failure.info.failure_type == "NondeterminismError"  # type: ignore[union-attr]
    assert d.kinds() == ["FailWorkflowExecution"] and d.run.closed
    again = d.replay()
    assert again.mismatch is not None, "what failed the run is not forgotten"
    with pytest.raises(WorkflowTaskError, match="event 5 recorded"):
        again.query("state")


@workflow.defn
async def group(bug: bool) -> None:
    async def broken() -> None:
        await call(3)
        raise KeyError("a bug")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(call(1))
        tasks.create_task(call(2))
        tasks.create_task(broken() if bug else call(3))


def test_a_group_of_failures_fails_the_workflow_and_cancels_the_others() -> None:
    d = Driver(group, False, cache=False)
    d.task()
    d.history.activity_failed("1", ValueError("first"))
    d.task()
    assert d.kinds() == ["RequestCancelActivityTask", "RequestCancelActivityTask", "FailWorkflowExecution"]
    assert "[1] ActivityError: activity 'risky' failed <- ValueError: first" in failed(d).failure.message
    d.replay()


def test_two_failures_are_both_readable() -> None:
    d = Driver(group, False)
    d.task()
    d.history.activity_failed("1", ValueError("first"))
    d.history.activity_failed("3", ValueError("third"))
    d.task()
    message = failed(d).failure.message
    assert "first" in message and "third" in message


def test_a_group_with_a_bug_fails_the_task() -> None:
    d = Driver(group, True)
    d.task()
    d.history.activity_completed("3", 3)
    d.history.activity_failed("1", ValueError("first"))
    with pytest.raises(WorkflowTaskError, match="KeyError: 'a bug'"):
        d.task()


def test_a_wait_that_times_out_fails_the_workflow() -> None:
    @workflow.defn
    async def waits() -> None:
        await workflow.wait_condition(lambda: False, timeout=1)

    d = Driver(waits)
    d.task()
    d.history.timer_fired()
    d.task()
    assert "timed out waiting for a condition" in failed(d).failure.message


def test_a_timeout_block_around_an_activity_fails_the_workflow() -> None:
    @workflow.defn
    async def waits() -> None:
        async with asyncio.timeout(1):
            await call(1)

    d = Driver(waits, cache=False)
    d.task()
    d.history.pass_time(1)
    d.history.timer_fired()
    d.task()
    assert d.kinds() == ["RequestCancelActivityTask", "FailWorkflowExecution"]
    d.replay()


def test_wait_for_around_an_activity() -> None:
    @workflow.defn
    async def waits() -> str:
        try:
            await asyncio.wait_for(call(1), 1)
        except TimeoutError:
            return "late"
        return "in time"

    d = Driver(waits, cache=False)
    d.task()
    d.history.pass_time(1)
    d.history.timer_fired()
    d.task()
    assert d.value() == "late"
    d.replay()


def test_a_condition_that_turns_true_after_its_caught_timeout(caplog: pytest.LogCaptureFixture) -> None:
    @workflow.defn
    class Patient:
        ready = False

        @workflow.signal
        def go(self) -> None:
            self.ready = True

        @workflow.run
        async def run(self) -> str:
            try:
                await workflow.wait_condition(lambda: self.ready, timeout=1)
            except TimeoutError:
                await workflow.wait_condition(lambda: self.ready)
            return "done"

    d = Driver(Patient, cache=False)
    d.task()
    d.history.pass_time(1)
    d.history.timer_fired()
    d.task()
    d.history.signal("go")
    d.task()
    assert d.value() == "done"
    assert not caplog.records


def test_a_failing_signal_handler_counts_like_the_main_function() -> None:
    @workflow.defn
    class Handled:
        @workflow.signal
        async def fail(self, bug: bool) -> None:
            raise KeyError("bug") if bug else ApplicationError("asked for")

        @workflow.run
        async def run(self) -> None:
            await workflow.wait_condition(lambda: False)

    d = Driver(Handled)
    d.history.signal("fail", False)
    d.task()
    assert failed(d).failure.message == "asked for"
    d = Driver(Handled)
    d.history.signal("fail", True)
    with pytest.raises(WorkflowTaskError, match="bug"):
        d.task()
