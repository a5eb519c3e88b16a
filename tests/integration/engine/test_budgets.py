"""Durable writes per operation, counted at the ports (design section 12)."""

import asyncio
from collections import Counter
from datetime import datetime, timedelta

import pytest
from stepwell.api.commands import (
    CompleteWorkflowExecution,
    ContinueAsNewWorkflowExecution,
    FailWorkflowExecution,
    RecordMarker,
    StartTimer,
)
from stepwell.api.common import RetryPolicy
from stepwell.api.requests import WorkflowTask

from stepwell_server.adapters.embedded.reads import Reader
from stepwell_server.history import firing
from stepwell_server.history.commit import ExecutionKey
from tests.support.engine import QUEUE, SHORT, Driver, activity, failure, payload, running


async def test_a_run_that_goes_on_as_the_next_is_one_commit() -> None:
    again = ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
    failed = FailWorkflowExecution(failure=failure("declined"))
    async with running() as driver:
        await driver.start(retry_policy=RetryPolicy(initial_interval=timedelta(hours=1)))
        for command in (again, failed):
            task = await driver.take()
            driver.store.reset()
            await driver.complete(task.task_token, command)
            assert driver.store.writes["append"] == 1 and driver.store.writes.get("arm", 0) <= 1
            assert sum(driver.store.counts.values()) - sum(driver.store.writes.values()) <= 1


async def test_start_is_one_commit_one_timer_item_and_one_strong_read() -> None:
    async with running() as driver:
        await driver.start()
        assert driver.store.writes == {"append": 1, "arm": 1}
        assert driver.store.counts["head"] == 1


async def test_fused_step_is_one_commit() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        driver.store.reset()
        for number in range(2, 22):
            answer = await driver.fused(answer, activity(str(number)), now=answer.commit_time)
        assert driver.store.counts == {"append": 20}


async def test_local_activities_cost_nothing_of_their_own() -> None:
    """Markers of the workflow task's own commit; each time the task is kept alive is one commit more."""
    async with running() as driver:
        await driver.start()
        task: WorkflowTask | None = await driver.take()
        driver.store.reset()
        for _ in range(3):
            assert task is not None
            markers = [RecordMarker(marker_name="local_activity")] * 20
            kept = await driver.complete(
                task.task_token, *markers, force_new_workflow_task=True, return_new_workflow_task=True
            )
            task = kept.workflow_task
        assert driver.store.counts == {"append": 3}


async def test_every_step_of_a_run_costs_what_the_first_did() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, activity("1"), slots=1)
        for number in range(2, 402):
            answer = await driver.fused(answer, activity(str(number)), now=answer.commit_time)
        events = [len(commit.events) for commit in driver.store.commits[2:]]
        assert set(events) == {6}
        assert driver.store.counts["head"] == 1 and driver.store.counts["activities"] == 0


async def test_step_through_the_queue() -> None:
    """1 lease + 1 result + at most 2 commits: the wake-up and the completion."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, activity("1", eager=False))
        driver.store.reset()
        (attempt,) = await driver.poll_activities()
        await driver.done(attempt)
        task = await driver.take()
        await driver.complete(task.task_token, activity("2", eager=False))
        assert driver.store.counts["put_activity"] == 2
        assert driver.store.counts["append"] == 2
        assert driver.store.counts["arm"] <= 1
        assert driver.store.counts["head"] + driver.store.counts["activities"] == 0


async def test_signal_is_one_commit_and_one_for_the_task_it_causes() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token)
        driver.store.reset()
        await driver.signal()
        task = await driver.take()
        await driver.complete(task.task_token)
        assert driver.store.writes == {"append": 2}


async def test_timer_is_one_arm_and_one_commit_for_firing_and_completion() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        driver.store.reset()
        await driver.complete(
            task.task_token, StartTimer(timer_id="1", start_to_fire_timeout=timedelta(milliseconds=60))
        )
        assert driver.store.writes == {"append": 1, "arm": 1}
        driver.store.reset()
        task = await driver.take()
        await driver.complete(task.task_token, CompleteWorkflowExecution())
        assert driver.store.writes == {"append": 1}


async def test_timers_due_close_together_are_read_from_the_index_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[str] = Counter()
    due, next_fire = Reader.due, Reader.next_fire

    def counted_due(self: Reader, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        reads["due"] += 1
        return due(self, now, limit)

    def counted_next_fire(self: Reader) -> datetime | None:
        reads["next_fire"] += 1
        return next_fire(self)

    monkeypatch.setattr(Reader, "due", counted_due)
    monkeypatch.setattr(Reader, "next_fire", counted_next_fire)
    monkeypatch.setattr(firing, "_WAIT_FOR_WORKER", 60.0)  # whose firings come before the last start
    async with running() as driver:
        begun = asyncio.get_running_loop().time()
        for number in range(100):
            await driver.start(f"order-{number}")
            task = await driver.take()
            timer = StartTimer(timer_id="1", start_to_fire_timeout=timedelta(milliseconds=1_200))
            await driver.complete(task.task_token, timer)
        driver.store.reset()
        for _ in range(100):
            task = await driver.take()
            await driver.complete(task.task_token, CompleteWorkflowExecution())
        took = asyncio.get_running_loop().time() - begun
    assert 100 <= driver.store.writes["append"] <= 200  # two where a machine is too busy to poll in time
    assert sum(reads.values()) <= 4 * took + 4, reads  # twice a second at most, whatever fires


async def test_thousand_way_fan_out_through_the_queue() -> None:
    """At most 2 writes per activity and O(batches) commits."""
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, *(activity(str(n), eager=False) for n in range(1_000)))
        driver.store.reset()
        batches = 10
        for _ in range(batches):
            attempts = await driver.poll_activities(maximum=100, timeout=timedelta(seconds=5))
            assert len(attempts) == 100
            assert all(reply.error_code == "" for reply in await driver.done(*attempts))
        assert not await driver.poll_activities(maximum=100, timeout=SHORT)
        ended = await _drain(driver)
        assert ended == 1_000
        assert driver.store.counts["put_activity"] == 2_000
        assert driver.store.counts["append"] <= 2 * batches + 2
        assert driver.store.counts["activities"] == 0
        assert (await driver.result()).event_type == "WorkflowExecutionCompleted"


async def _drain(driver: Driver) -> int:
    """Takes workflow tasks until all ends of the fan-out were seen, then completes the run."""
    ended = 0
    while True:
        task = await driver.take()
        ended += sum(event.event_type == "ActivityTaskCompleted" for event in task.events)
        if ended == 1_000:
            await driver.complete(task.task_token, CompleteWorkflowExecution(result=payload("all")))
            return ended
        await driver.complete(task.task_token)


async def test_thousand_way_fan_out_with_many_workers_at_once() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        await driver.complete(task.task_token, *(activity(str(n), eager=False) for n in range(1_000)))
        driver.store.reset()

        async def worker(name: str) -> None:
            me = driver.as_worker(name)
            while attempts := await me.poll_activities(maximum=7, timeout=timedelta(milliseconds=1)):
                await me.done(*attempts)

        async def workflow_worker() -> int:
            return await _drain(driver)

        *_, ended = await asyncio.gather(*(worker(f"worker {n}") for n in range(20)), workflow_worker())
        assert ended == 1_000
        assert driver.store.counts["put_activity"] == 2_000
        assert driver.store.counts["append"] <= 300


async def test_a_thousand_leased_activities_that_end_together_are_one_commit() -> None:
    async with running() as driver:
        await driver.start()
        task = await driver.take()
        answer = await driver.complete(task.task_token, *(activity(str(n)) for n in range(1_000)), slots=1_000)
        assert len(answer.leases) == 1_000
        driver.store.reset()
        await driver.fused(answer, CompleteWorkflowExecution(), now=answer.commit_time)
        assert driver.store.counts == {"append": 1}
