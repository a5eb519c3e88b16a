"""Metrics of workflow code (PM-12)."""

import pytest
from stepwell import workflow
from stepwell.replay.errors import WorkflowTaskError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker
from stepwell.workflow import Metric, MetricKind

from tests.support.histories import Driver


@workflow.defn
class Counts:
    @workflow.query
    def ask(self) -> str:
        workflow.metric_meter().create_counter("asked").add(1)
        return "answered"

    @workflow.run
    async def run(self) -> None:
        meter = workflow.metric_meter().with_additional_attributes({"shop": "flutes"})
        meter.create_counter("orders", "orders taken", "1").add(2, {"kind": "gift"})
        await workflow.sleep(0.01)
        meter.create_histogram("weight").record(1.5)
        await workflow.sleep(0.01)
        meter.create_gauge("open").set(-1)


@pytest.mark.parametrize("cached", [1000, 0])
async def test_each_value_is_recorded_once(cached: int) -> None:
    """Also where every task is a full replay."""
    found: list[Metric] = []
    async with (
        await DevEnvironment.start() as env,
        Worker(
            env.client, task_queue="q", workflows=[Counts], max_cached_workflows=cached, metric_recorder=found.append
        ),
    ):
        handle = await env.client.start_workflow(Counts.run, id="w", task_queue="q")
        await handle.result()
        assert await handle.query(Counts.ask) == "answered"
    common = {"namespace": "default", "task_queue": "q", "workflow_type": "Counts", "shop": "flutes"}
    assert found == [
        Metric(MetricKind.COUNTER, "orders", 2, {**common, "kind": "gift"}, "orders taken", "1"),
        Metric(MetricKind.HISTOGRAM, "weight", 1.5, common),
        Metric(MetricKind.GAUGE, "open", -1, common),
    ]


def test_without_a_recorder_nothing_happens() -> None:
    d = Driver(Counts)
    d.task()
    d.replay()


@workflow.defn
async def shrinks() -> None:
    workflow.metric_meter().create_counter("c").add(-1)


def test_a_counter_only_grows() -> None:
    with pytest.raises(WorkflowTaskError) as raised:
        Driver(shrinks).task()
    assert "counter 'c' only grows" in raised.value.failure.message
