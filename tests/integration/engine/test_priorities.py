"""Priority, fairness and rate limit, by requests: recorded, inherited, kept over a restart; eager dispatch (AC-23)."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import StartChildWorkflowExecution
from stepwell.api.common import Priority, WorkflowExecution
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import ActivityTaskScheduled, StartChildWorkflowExecutionInitiated, WorkflowExecutionStarted

from tests.support.engine import FAST_RETRY, QUEUE, SHORT, Driver, activity, failure, running

TENANT = Priority(priority_key=4, fairness_key="tenant", fairness_weight=2.0)
FIRST = Priority(priority_key=1)


async def attributes(driver: Driver, kind: type[Any], workflow_id: str = "order-1") -> list[Any]:
    return [event.attributes for event in await driver.history(workflow_id) if isinstance(event.attributes, kind)]


async def poll(driver: Driver, *, limit: float | None = None, maximum: int = 10) -> list[str]:
    """Ids of the activities that come at once."""
    request = r.PollActivityTaskRequest(
        task_queue=QUEUE, worker=driver.worker, maximum_tasks=maximum, timeout=SHORT, max_tasks_per_second=limit
    )
    return [task.activity_id for task in (await driver.engine.poll_activity_task(request)).tasks]


async def scheduled(driver: Driver, *commands: Any, **more: Any) -> r.RespondWorkflowTaskCompletedResponse:
    await driver.start(**more)
    task = await driver.take()
    return await driver.complete(task.task_token, *commands)


async def test_activities_go_out_by_priority_and_inherit_what_they_leave_open() -> None:
    async with running() as driver:
        await scheduled(
            driver,
            activity("inherits", eager=False),
            activity("last", eager=False, priority=Priority(priority_key=5, fairness_key="other")),
            activity("first", eager=False, priority=FIRST),
            priority=TENANT,
        )
        (started,) = await attributes(driver, WorkflowExecutionStarted)
        assert started.priority == TENANT
        recorded = {one.activity_id: one.priority for one in await attributes(driver, ActivityTaskScheduled)}
        assert recorded == {
            "inherits": TENANT,
            "last": Priority(priority_key=5, fairness_key="other", fairness_weight=2.0),
            "first": Priority(priority_key=1, fairness_key="tenant", fairness_weight=2.0),
        }
        tasks = await driver.poll_activities(maximum=3)
        assert [(task.activity_id, task.priority) for task in tasks] == [
            (name, recorded[name]) for name in ("first", "inherits", "last")
        ]


async def test_workflow_tasks_go_out_by_priority() -> None:
    async with running() as driver:
        for name, priority in (("a", None), ("b", Priority(priority_key=5)), ("c", FIRST)):
            await driver.start(name, priority=priority)
        assert [(await driver.take()).execution.workflow_id for _ in range(3)] == ["c", "a", "b"]


async def test_a_child_inherits_and_hands_on() -> None:
    async with running() as driver:
        child = StartChildWorkflowExecution(
            workflow_id="child", workflow_type="order", task_queue=QUEUE, priority=Priority(fairness_key="own")
        )
        await scheduled(driver, child, priority=TENANT)
        wanted = Priority(priority_key=4, fairness_key="own", fairness_weight=2.0)
        (initiated,) = await attributes(driver, StartChildWorkflowExecutionInitiated)
        assert initiated.priority == wanted
        tasks = [await driver.take(), await driver.take()]
        (task,) = [task for task in tasks if task.execution.workflow_id == "child"]
        (started,) = await attributes(driver, WorkflowExecutionStarted, "child")
        assert started.priority == wanted
        await driver.complete(task.task_token, activity("1"))
        (scheduled_event,) = await attributes(driver, ActivityTaskScheduled, "child")
        assert scheduled_event.priority == wanted


async def test_later_attempts_have_the_priority_too() -> None:
    async with running() as driver:
        await scheduled(driver, activity("first", eager=False, priority=FIRST, retry_policy=FAST_RETRY))
        (attempt,) = await driver.poll_activities()
        await driver.report(r.ActivityFailed(task_token=attempt.task_token, failure=failure("once")))
        await driver.start("order-2")
        task = await driver.take()
        await driver.complete(task.task_token, *(activity(f"{number}", eager=False) for number in range(3)))

        async def is_due() -> bool:
            described = await driver.engine.describe_task_queue(
                r.DescribeTaskQueueRequest(task_queue=QUEUE, kind=TaskQueueKind.ACTIVITY)
            )
            return described.backlog_count == 4

        async with asyncio.timeout(30):
            while not await is_due():
                await asyncio.sleep(0.02)
        assert (await driver.poll_activities(maximum=4))[0].activity_id == "first"


async def test_a_restart_keeps_priorities(tmp_path: Path) -> None:
    path = tmp_path / "engine.db"
    async with running(path) as driver:
        await scheduled(driver, activity("late", eager=False), activity("first", eager=False, priority=FIRST))
        await driver.start("order-2", priority=Priority(priority_key=5))
        await driver.start("order-3", priority=FIRST)
    async with running(path) as driver:
        assert [task.activity_id for task in await driver.poll_activities(maximum=2)] == ["first", "late"]
        assert [(await driver.take()).execution.workflow_id for _ in range(2)] == ["order-3", "order-2"]


async def test_the_rate_limit_of_the_last_worker_counts_for_all() -> None:
    async with running() as driver:
        assert await poll(driver, limit=0.001) == []
        await scheduled(driver, *(activity(f"{number}", eager=False) for number in range(4)))
        other = driver.as_worker("other")
        assert await poll(other) == ["0"], "the one token there was"
        assert await poll(driver) == []
        assert await poll(other, limit=2000.0, maximum=1) == ["1"], "a change gives no token, half a millisecond does"
        assert await poll(driver, maximum=1) + await poll(other, maximum=1) == ["2", "3"]


async def test_no_eager_dispatch_past_a_rate_limit() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        assert await poll(driver.as_worker("limits"), limit=0.001) == []
        answer = await driver.complete(task.task_token, activity("1"), activity("2"), slots=2)
        assert answer.outcome == "ACCEPTED" and answer.leases == ()
        assert await poll(driver) == ["1"] and await poll(driver) == []


async def test_a_stale_hint_takes_no_part_in_the_rate() -> None:
    async with running() as driver:
        await scheduled(driver, activity("1", eager=False))
        await driver.engine.terminate_workflow(
            r.TerminateWorkflowRequest(execution=WorkflowExecution(workflow_id="order-1"))
        )
        await driver.start("order-2")
        task = await driver.take()
        await driver.complete(task.task_token, activity("2", eager=False))
        assert await poll(driver, limit=0.001, maximum=1) == ["2"]


async def test_it_costs_no_commit_and_no_read() -> None:
    async with running() as driver:
        costs = []
        for name, priority in (("plain", None), ("ranked", TENANT)):
            driver.store.reset()
            await driver.start(name, priority=priority)
            task = await driver.take()
            await driver.complete(task.task_token, activity("1", eager=False, priority=priority))
            await driver.done(*await driver.poll_activities())
            await driver.finish(await driver.take())
            costs.append(dict(driver.store.counts))
        assert costs[0] == costs[1] and costs[0]["append"] > 0


@pytest.mark.parametrize(
    ("priority", "names"),
    [
        (Priority(priority_key=6), "priority_key is 6; use 1"),
        (Priority(priority_key=-1), "priority_key is -1; use 1"),
        (Priority(fairness_key="é" * 33), "fairness_key has 66 bytes, the limit is 64"),
        (Priority(fairness_weight=1000.5), "fairness_weight is 1000.5; use 0.001 to 1000"),
        (Priority(fairness_weight=-2.0), "fairness_weight is -2.0; use 0.001 to 1000"),
        (Priority(fairness_weight=float("nan")), "fairness_weight is nan; use 0.001 to 1000"),
    ],
)
async def test_bad_priorities_are_refused_before_anything_is_written(priority: Priority, names: str) -> None:
    async with running() as driver:
        with pytest.raises(InvalidArgument, match=names):
            await driver.start(priority=priority)
        await driver.start()
        child = StartChildWorkflowExecution(
            workflow_id="child", workflow_type="order", task_queue=QUEUE, priority=priority
        )
        for command in (activity("1", priority=priority), child):
            task = await driver.take(timedelta(seconds=5))
            answer = await driver.complete(task.task_token, command)
            assert answer.outcome != "ACCEPTED" and names in answer.message
        assert not await attributes(driver, ActivityTaskScheduled)
        assert not await attributes(driver, StartChildWorkflowExecutionInitiated)
