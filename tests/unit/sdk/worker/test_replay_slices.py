"""Slices of a history, replayed one by one, lead where the whole history leads."""

import asyncio
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.events import WorkflowTaskStarted
from stepwell.client import WorkflowHistory
from stepwell.replay.run import WorkflowRun
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker
from stepwell.worker.replay_slices import slices
from stepwell.workflow.definition import WorkflowDefinition

TIMEOUT = timedelta(seconds=10)


@activity.defn
async def double(value: int) -> int:
    return 2 * value


@workflow.defn
class Busy:
    def __init__(self) -> None:
        self.notes: list[int] = []

    @workflow.run
    async def run(self) -> int:
        total = 0
        for value in range(6):
            total += await workflow.execute_activity(double, value, start_to_close_timeout=TIMEOUT)
            await asyncio.gather(
                workflow.sleep(0.01),
                *(workflow.execute_activity(double, i, start_to_close_timeout=TIMEOUT) for i in range(3)),
            )
        await workflow.wait_condition(lambda: len(self.notes) >= 20)
        return total

    @workflow.signal
    def note(self, value: int) -> None:
        self.notes.append(value)


@pytest.fixture(scope="module")
def history() -> WorkflowHistory:
    async def record() -> WorkflowHistory:
        async with await DevEnvironment.start() as env:
            client = env.client
            async with Worker(client, task_queue="q", workflows=[Busy], activities=[double]):
                handle = await client.start_workflow(Busy.run, id="w", task_queue="q")
                for value in range(20):
                    await handle.signal(Busy.note, value)
                    await asyncio.sleep(0.003)
                await handle.result()
            return await handle.fetch_history()

    return asyncio.run(record())


def replayed(history: WorkflowHistory, size: int) -> tuple[int, int, bool]:
    run = WorkflowRun(
        WorkflowDefinition.must_of(Busy), namespace="default", workflow_id="w", run_id=history.run_id, task_queue="q"
    )
    for part in slices(history.events, size):
        result = run.run_task(part)
        assert result.commands == ()
    return run.last_event_id, run.previous_started_event_id, run.closed


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 40, 10_000])
def test_every_size_ends_in_the_same_state(history: WorkflowHistory, size: int) -> None:
    started = max(e.event_id for e in history.events if isinstance(e.attributes, WorkflowTaskStarted))
    assert replayed(history, size) == (len(history.events), started, True)


def test_slices_are_short(history: WorkflowHistory) -> None:
    assert len(list(slices(history.events, 10))) > 5
    assert [list(part) for part in slices(history.events)] == [list(history.events)]
