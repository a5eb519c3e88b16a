"""The rate of a batch (LC-44), counted on virtual time: no second has more than it may, and no more are under way."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

import pytest
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.batches import BatchSignal
from stepwell.api.common import WorkflowExecution

from stepwell_server.adapters.system import SystemIds
from stepwell_server.batcher import records
from stepwell_server.batcher.batches import KIND, Batches
from stepwell_server.common.control import ControlConflict, ControlRecord
from stepwell_server.namespaces.registry import Namespaces
from tests.simulation.loop import SimulatedLoop

T = TypeVar("T")
EPOCH = datetime(2026, 11, 30, tzinfo=UTC)


class LoopClock:
    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


class Records:
    """A control store in memory, with the wake-ups that are armed."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str, str], ControlRecord] = {}
        self.armed: list[tuple[datetime, str]] = []
        self.puts = 0

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        return self.found.get((kind, namespace, id))

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        there = self.found.get(record[:3])
        if (0 if there is None else there.version) != record.version - 1:
            raise ControlConflict(there)
        self.puts += 1
        self.found[record[:3]] = record
        if arm is not None:
            self.armed.append((arm, record.id))
        return record

    async def delete(self, record: ControlRecord) -> None:
        self.found.pop(record[:3], None)

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        return []


class Engine:
    """Takes ``seconds`` for each signal, and notes when it got them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.times: list[float] = []
        self.counts: Counter[str] = Counter()
        self.now = self.most = 0

    async def signal_workflow(self, request: r.SignalWorkflowRequest) -> None:
        self.counts[request.execution.workflow_id] += 1
        self.times.append(asyncio.get_running_loop().time())
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(self.seconds)
        self.now -= 1


def run(work: Coroutine[Any, Any, T]) -> T:
    loop = SimulatedLoop(Random(1), pause=0.0, hold=0.0)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


async def carry_out(engine: Engine, count: int, rate: float) -> tuple[Records, float]:
    """Starts a batch and fires what it arms when it is due; how long it took."""
    store = Records()
    namespaces = Namespaces(None, LoopClock(), SystemIds())  # type: ignore[arg-type]
    batches = Batches(store, engine, namespaces, LoopClock())  # type: ignore[arg-type]
    executions = tuple(WorkflowExecution(workflow_id=f"w-{number}", run_id="r") for number in range(count))
    began = asyncio.get_running_loop().time()
    await batches.start(
        r.StartBatchOperationRequest(
            job_id="job", operation=BatchSignal(signal_name="s"), executions=executions, max_operations_per_second=rate
        )
    )
    while True:
        job = records.decode(store.found[KIND, "default", "job"].value)
        if job.closed is not None:
            assert (job.done, job.failed) == (count, 0)
            return store, asyncio.get_running_loop().time() - began
        store.armed.sort()
        due, _ = store.armed.pop(0)
        await asyncio.sleep(max((due - LoopClock().now()).total_seconds(), 0.0))
        await batches("default", "job", due)


@pytest.mark.parametrize(
    ("rate", "count", "seconds"), [(0.0, 400, 0.01), (50.0, 170, 0.09), (8.0, 60, 0.02), (0.5, 6, 0.0)]
)
def test_no_second_has_more_than_its_rate(rate: float, count: int, seconds: float) -> None:
    engine = Engine(seconds)
    store, took = run(carry_out(engine, count, rate))
    allowed = rate or limits.MAX_BATCH_RATE
    assert len(engine.times) == count and engine.most <= limits.MAX_BATCH_CONCURRENCY
    times = sorted(engine.times)
    for first, time in enumerate(times):
        within = [each for each in times[first:] if each < time + 1.0 - 1e-6]
        assert len(within) <= max(allowed, 1), (time, len(within))
    assert (count - 1) / allowed <= took + 1e-6 < count / allowed * 1.3 + 3
    assert store.puts <= 5 + 2 * (count / max(int(allowed), 1) + 1)  # two writes for each burst


def test_workflows_that_take_long_are_five_at_a_time() -> None:
    """And no burst goes on beyond its lease: ten of them are what one gets to."""
    engine = Engine(6.0)
    store, took = run(carry_out(engine, 50, 0.0))
    assert engine.most == limits.MAX_BATCH_CONCURRENCY and 60 <= took < 65
    assert all(count == 1 for count in engine.counts.values())
    assert store.puts >= 3 + 2 * 5
