"""AC-13: what fails at a worker is counted, under the field's names, unless it is benign."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, ApplicationErrorCategory
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker
from stepwell.workflow import Metric, MetricKind

TIMEOUT = timedelta(seconds=20)
THRICE = RetryPolicy(initial_interval=timedelta(milliseconds=1), backoff_coefficient=1.0, maximum_attempts=3)
ONCE = RetryPolicy(maximum_attempts=1)
COMMON = {"namespace": "default", "task_queue": "q"}


def failing(category: str, text: str = "no") -> ApplicationError:
    return ApplicationError(text, category=ApplicationErrorCategory(category))


@activity.defn
async def fails(category: str) -> None:
    raise failing(category)


@activity.defn
def fails_in_a_thread(category: str) -> None:
    raise failing(category)


@workflow.defn
class Calls:
    """An activity that fails three times, then its own end as it was told."""

    @workflow.run
    async def run(self, name: str, category: str, own: str | None) -> None:
        call: Any = workflow.execute_local_activity if name == "local" else workflow.execute_activity
        name = "fails" if name == "local" else name
        try:
            await call(name, category, start_to_close_timeout=TIMEOUT, retry_policy=THRICE)
        except ActivityError:
            if own is not None:
                raise failing(own, "the order is lost") from None


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with await DevEnvironment.start() as env:
        yield env.client


async def counted(client: Client, *args: Any, cached: int = 1000) -> Counter[str]:
    """What one run of ``Calls`` made the worker count; each has the attributes that it must have."""
    found: list[Metric] = []
    async with Worker(
        client,
        task_queue="q",
        workflows=[Calls],
        activities=[fails, fails_in_a_thread],
        max_cached_workflows=cached,
        metric_recorder=found.append,
    ):
        handle = await client.start_workflow(Calls.run, args=args, id="w", task_queue="q")
        try:
            await handle.result()
        except WorkflowFailureError:
            assert args[2] is not None
    for metric in found:
        expected = {**COMMON, "workflow_type": "Calls"}
        if metric.name != "workflow_failed":
            expected["activity_type"] = "fails" if args[0] == "local" else args[0]
        assert (metric.kind, metric.value, metric.attributes) == (MetricKind.COUNTER, 1, expected)
    return Counter(metric.name for metric in found)


@pytest.mark.parametrize("cached", [1000, 0])
@pytest.mark.parametrize("name", ["fails", "fails_in_a_thread"])
async def test_each_attempt_that_fails_counts_and_the_run_once(client: Client, name: str, cached: int) -> None:
    """Also where every workflow task is a full replay."""
    assert await counted(client, name, "", "", cached=cached) == {"activity_execution_failed": 3, "workflow_failed": 1}


async def test_local_activities_have_a_name_of_their_own(client: Client) -> None:
    assert await counted(client, "local", "", None) == {"local_activity_execution_failed": 3}


@pytest.mark.parametrize("name", ["fails", "fails_in_a_thread", "local"])
async def test_benign_failures_are_logged_at_debug_and_not_counted(
    client: Client, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "stepwell.activity"):
        assert await counted(client, name, "BENIGN", "BENIGN") == {}
    levels = [record.levelno for record in caplog.records if record.name == "stepwell.activity"]
    assert levels == [logging.DEBUG] * 3


async def test_a_run_that_fails_by_a_benign_failure_of_an_activity_fails_itself(client: Client) -> None:
    assert await counted(client, "fails", "BENIGN", "") == {"workflow_failed": 1}


@workflow.defn
class Broken:
    """Raises what fails its task, once."""

    broken = True

    @workflow.run
    async def run(self) -> None:
        if Broken.broken:
            Broken.broken = False
            raise KeyError("order")


async def test_workflow_tasks_that_fail_are_counted_with_their_reason(client: Client) -> None:
    found: list[Metric] = []
    async with Worker(client, task_queue="q", workflows=[Broken], metric_recorder=found.append):
        await asyncio.wait_for(client.execute_workflow(Broken.run, id="w", task_queue="q"), 30)
    assert [(metric.name, metric.attributes) for metric in found] == [
        (
            "workflow_task_execution_failed",
            {**COMMON, "workflow_type": "Broken", "failure_reason": "WorkflowError"},
        )
    ]


async def test_an_activity_that_nobody_registered_counts(client: Client) -> None:
    @workflow.defn
    class Asks:
        @workflow.run
        async def run(self) -> None:
            await workflow.execute_activity("nowhere", start_to_close_timeout=TIMEOUT, retry_policy=ONCE)

    found: list[Metric] = []
    async with Worker(client, task_queue="q", workflows=[Asks], activities=[fails], metric_recorder=found.append):
        with pytest.raises(WorkflowFailureError):
            await client.execute_workflow(Asks.run, id="w", task_queue="q")
    assert Counter(metric.name for metric in found) == {"activity_execution_failed": 1, "workflow_failed": 1}


async def test_a_recorder_that_raises_keeps_no_outcome_back(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    def refuses(metric: Metric) -> None:
        raise OSError(f"no room for {metric.name}")

    async with Worker(client, task_queue="q", workflows=[Calls], activities=[fails], metric_recorder=refuses):
        with pytest.raises(WorkflowFailureError, match="Workflow execution failed"):
            await client.execute_workflow(Calls.run, args=["fails", "", ""], id="w", task_queue="q")
    assert caplog.text.count("did not take activity_execution_failed") == 3
    assert "did not take workflow_failed" in caplog.text
