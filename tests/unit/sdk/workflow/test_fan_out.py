"""``workflow.fan_out``: so many calls at a time, and the rule that says when that is a success (PM-15)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.commands import (
    CancelWorkflowExecution,
    FailWorkflowExecution,
    RequestCancelActivityTask,
    ScheduleActivityTask,
)
from stepwell.api.failures import ApplicationFailureInfo
from stepwell.replay.errors import WorkflowTaskError

from tests.support.histories import Driver

SHORT = timedelta(seconds=10)
Status = workflow.FanOutStatus


def call(n: int, **options: Any) -> Any:
    return workflow.execute_activity("echo", n, start_to_close_timeout=SHORT, **options)


def summary(result: workflow.FanOutResult[Any]) -> list[str]:
    return [item.status.name for item in result.items]


@workflow.defn
async def in_order(count: int, width: int | None) -> list[int]:
    return (await workflow.fan_out([call(n) for n in range(count)], max_concurrency=width)).results


@workflow.defn
async def tolerant(count: int, options: dict[str, Any]) -> list[str]:
    return summary(await workflow.fan_out([call(n) for n in range(count)], **options))


def scheduled(d: Driver) -> list[str]:
    return [c.activity_id for c in d.result.commands if isinstance(c, ScheduleActivityTask)]


def failure_of(d: Driver) -> Any:
    command = d.result.commands[-1]
    assert isinstance(command, FailWorkflowExecution)
    return command.failure


@pytest.mark.parametrize("cache", [True, False])
def test_so_many_at_a_time_and_results_in_order(cache: bool) -> None:
    d = Driver(in_order, 4, 2, cache=cache)
    d.task()
    assert scheduled(d) == ["1", "2"]
    d.history.activity_completed("2", 20)
    d.task()
    assert scheduled(d) == ["3"]
    d.history.activity_completed("3", 30)
    d.history.activity_completed("1", 10)
    d.task()
    assert scheduled(d) == ["4"]
    d.history.activity_completed("4", 40)
    d.task()
    assert d.value() == [10, 20, 30, 40]
    d.replay()


def test_the_default_keeps_below_the_limit_of_pending_activities() -> None:
    d = Driver(in_order, 1200, None)
    d.task()
    ends = 0
    while not d.run.closed:
        started = scheduled(d)
        assert len(started) <= 500
        for activity_id in started:
            d.history.activity_completed(activity_id, int(activity_id))
            ends += 1
        d.task()
    assert ends == 1200
    assert d.value() == list(range(1, 1201))
    d.replay()


def test_nothing_to_do() -> None:
    d = Driver(in_order, 0, None)
    d.task()
    assert d.value() == []


@pytest.mark.parametrize("cache", [True, False])
def test_the_first_failure_is_raised_and_the_rest_is_cancelled_by_index(cache: bool) -> None:
    d = Driver(in_order, 5, 4, cache=cache)
    d.task()
    d.history.activity_failed("3", ValueError("three"))
    result = d.task()
    asked = [c.scheduled_event_id for c in result.commands if isinstance(c, RequestCancelActivityTask)]
    assert asked == [d.history.find_activity(n) for n in ("1", "2", "4")]
    assert failure_of(d).cause.message == "three"
    assert scheduled(d) == []
    d.replay()


def test_enough_have_succeeded() -> None:
    d = Driver(tolerant, 5, {"min_successful": 2, "max_concurrency": 4}, cache=False)
    d.task()
    d.history.activity_failed("1", ValueError("one"))
    d.task()
    assert scheduled(d) == ["5"]
    d.history.activity_completed("3", 3)
    d.task()
    d.history.activity_completed("2", 2)
    d.task()
    assert d.value() == ["FAILED", "SUCCEEDED", "SUCCEEDED", "CANCELLED", "CANCELLED"]
    d.replay()


def test_those_that_ended_in_the_same_batch_count_and_the_rest_never_begins() -> None:
    d = Driver(tolerant, 4, {"min_successful": 1, "max_concurrency": 2})
    d.task()
    d.history.activity_completed("2", 2)
    d.history.activity_completed("1", 1)
    d.task()
    assert d.value() == ["SUCCEEDED", "SUCCEEDED", "NOT_STARTED", "NOT_STARTED"]
    d.replay()


@pytest.mark.parametrize(
    ("options", "tolerated"),
    [
        ({"tolerated_failures": 2}, 2),
        ({"tolerated_failure_percentage": 50}, 2),
        ({"tolerated_failure_percentage": 49.9}, 1),
        ({"tolerated_failures": 3, "tolerated_failure_percentage": 25}, 1),
        ({"min_successful": 3}, 1),
        ({"min_successful": 1, "tolerated_failures": 2}, 2),
    ],
)
def test_failures_up_to_the_tolerated_number(options: dict[str, Any], tolerated: int) -> None:
    d = Driver(tolerant, 4, options, cache=False)
    d.task()
    for n in range(tolerated):
        d.history.activity_failed(str(n + 1), ValueError("x"))
        assert d.task().commands == ()
    d.history.activity_failed(str(tolerated + 1), ValueError("too much"))
    d.task()
    failure = failure_of(d)
    assert isinstance(failure.info, ApplicationFailureInfo)
    assert failure.info.failure_type == "FanOutError"
    assert failure.message == f"{tolerated + 1} of 4 calls of the fan-out failed, {tolerated} are tolerated"
    assert failure.cause.cause.message == "too much"
    d.replay()


def test_tolerated_failures_are_in_the_result() -> None:
    d = Driver(tolerant, 3, {"tolerated_failures": 1})
    d.task()
    d.history.activity_failed("2", ValueError("x"))
    d.history.activity_completed("1", 1)
    d.history.activity_completed("3", 3)
    d.task()
    assert d.value() == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


@workflow.defn
async def keeps_the_error(count: int) -> list[Any]:
    try:
        await workflow.fan_out([call(n) for n in range(count)], tolerated_failures=1, max_concurrency=2)
    except workflow.FanOutError as error:
        return [summary(error.result), error.result.results, [item.index for item in error.result.failed]]
    return []


def test_the_error_has_what_came_of_each_call() -> None:
    d = Driver(keeps_the_error, 5)
    d.task()
    d.history.activity_completed("1", 10)
    d.history.activity_failed("2", ValueError("x"))
    d.task()
    d.history.activity_failed("3", ValueError("y"))
    d.task()
    assert d.value() == [["SUCCEEDED", "FAILED", "FAILED", "CANCELLED", "NOT_STARTED"], [10], [1, 2]]
    d.replay()


@workflow.defn
async def waits_for_the_cancelled() -> list[str]:
    waiting = {"cancellation_type": workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED}
    return summary(await workflow.fan_out([call(n, **waiting) for n in range(3)], min_successful=1))


def test_the_cancelled_are_waited_for() -> None:
    d = Driver(waits_for_the_cancelled, cache=False)
    d.task()
    d.history.activity_completed("2", 2)
    assert [type(c) for c in d.task().commands] == [RequestCancelActivityTask] * 2
    d.history.activity_canceled("1")
    assert d.task().commands == ()
    d.history.activity_completed("3", 3)
    d.task()
    assert d.value() == ["CANCELLED", "SUCCEEDED", "CANCELLED"]
    d.replay()


def test_cancelling_the_workflow_cancels_what_runs() -> None:
    d = Driver(in_order, 4, 2, cache=False)
    d.task()
    d.history.cancel_requested()
    result = d.task()
    assert [type(c) for c in result.commands] == [
        RequestCancelActivityTask,
        RequestCancelActivityTask,
        CancelWorkflowExecution,
    ]
    d.replay()


@workflow.defn
async def functions(count: int) -> list[int]:
    def make(n: int) -> Any:
        return lambda: workflow.start_activity("echo", n, start_to_close_timeout=SHORT)

    return (await workflow.fan_out((make(n) for n in range(count)), max_concurrency=1)).results


def test_functions_that_make_the_calls() -> None:
    d = Driver(functions, 2)
    d.task()
    d.step("1", 10)
    d.step("2", 20)
    assert d.value() == [10, 20]
    d.replay()


@workflow.defn
async def with_a_bug(early: bool) -> Any:
    async def bug() -> None:
        if not early:
            await call(0)
        raise KeyError("bug")

    return summary(await workflow.fan_out([bug(), call(1), call(2)], tolerated_failures=3))


@pytest.mark.parametrize("early", [True, False])
def test_a_bug_is_not_tolerated(early: bool) -> None:
    d = Driver(with_a_bug, early)
    if not early:
        d.task()
        d.history.activity_completed("1", 1)
    with pytest.raises(WorkflowTaskError, match="bug"):
        d.task()


@workflow.defn
async def refused(what: str) -> str:
    handle = workflow.start_activity("echo", 0, start_to_close_timeout=SHORT)
    calls: Any = [call(1), call(2)]
    options: dict[str, Any] = {}
    match what:
        case "begun":
            calls.append(handle)
        case "nothing":
            calls.append(3)
        case "set":
            calls = set(calls)
        case _:
            name, value = what.split()
            options[name] = float(value)
    try:
        await workflow.fan_out(calls, **options)
    except (TypeError, ValueError) as error:
        return str(error)
    return "went through"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("begun", "call 2 has begun already"),
        ("nothing", "call 2 is no coroutine and no function: int"),
        ("set", "order of a set"),
        ("max_concurrency 0", "from 1 to 2000"),
        ("max_concurrency 2001", "from 1 to 2000"),
        ("min_successful 3", "from 1 to the number of calls, 2"),
        ("min_successful 0", "from 1 to the number of calls, 2"),
        ("tolerated_failures -1", "must not be negative"),
        ("tolerated_failure_percentage 101", "from 0 to 100"),
    ],
)
def test_refused_before_any_call_begins(what: str, message: str) -> None:
    d = Driver(refused, what)
    d.task()
    assert scheduled(d) == ["1"]
    assert message in d.value()


def test_an_evicted_fan_out_leaves_no_warnings() -> None:
    d = Driver(in_order, 6, 2)
    d.task()
    d.run.evict()


@workflow.defn
async def nested() -> list[int]:
    async def two(n: int) -> int:
        return int(await call(n)) + int(await call(n + 100))

    async with asyncio.timeout(60):
        return (await workflow.fan_out([two(n) for n in range(3)], max_concurrency=2)).results


def test_a_call_may_be_any_coroutine() -> None:
    d = Driver(nested, cache=False)
    d.task()
    for activity_id in "123456":
        d.history.activity_completed(activity_id, int(activity_id))
        d.task()
    assert d.value() == [4, 6, 11]
    d.replay()
