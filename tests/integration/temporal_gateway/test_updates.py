"""Updates by the unmodified SDK: accepted, refused, failed; with the start of their workflow."""

from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

QUEUE = "updates"


@workflow.defn
class Counting:
    def __init__(self) -> None:
        self.count = 0
        self.over = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self.over)
        return self.count

    @workflow.update
    async def add(self, number: int) -> int:
        await workflow.sleep(0.001)
        if number == 13:
            raise ApplicationError("unlucky")
        self.count += number
        return self.count

    @workflow.update
    async def wait(self) -> int:
        await workflow.wait_condition(lambda: self.over)
        return self.count

    @add.validator
    def positive(self, number: int) -> None:
        if number < 0:
            raise ApplicationError("negative")

    @workflow.signal
    def end(self) -> None:
        self.over = True


def worker(client: Client, **options: object) -> Worker:
    return Worker(
        client,
        task_queue=QUEUE,
        workflows=[Counting],
        workflow_runner=UnsandboxedWorkflowRunner(),
        **options,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("cached", [100, 0])
async def test_an_update_is_accepted_refused_or_fails(client: Client, cached: int) -> None:
    async with worker(client, max_cached_workflows=cached):
        handle = await client.start_workflow(Counting.run, id="w", task_queue=QUEUE)
        assert await handle.execute_update(Counting.add, 2) == 2
        before = len((await handle.fetch_history()).events)
        for number, why in ((-1, "negative"), (13, "unlucky")):
            with pytest.raises(WorkflowUpdateFailedError) as failed:
                await handle.execute_update(Counting.add, number)
            assert isinstance(failed.value.cause, ApplicationError) and failed.value.cause.message == why
            if number < 0:  # nothing is recorded of one that was refused
                assert len((await handle.fetch_history()).events) == before
        update = await handle.start_update(Counting.add, 3, id="u", wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        assert await update.result() == 5
        assert await handle.get_update_handle_for(Counting.add, "u").result() == 5
        await handle.signal(Counting.end)
        assert await handle.result() == 5


async def test_an_update_with_the_start_of_its_workflow(client: Client) -> None:
    async with worker(client):

        def start(policy: WorkflowIDConflictPolicy) -> WithStartWorkflowOperation[Counting, int]:
            return WithStartWorkflowOperation(Counting.run, id="w", task_queue=QUEUE, id_conflict_policy=policy)

        for total in (4, 8):
            operation = start(WorkflowIDConflictPolicy.USE_EXISTING)
            done = await client.execute_update_with_start_workflow(Counting.add, 4, start_workflow_operation=operation)
            assert done == total
        first = await operation.workflow_handle()
        second = start(WorkflowIDConflictPolicy.FAIL)
        with pytest.raises(WorkflowAlreadyStartedError):
            await client.execute_update_with_start_workflow(Counting.add, 4, start_workflow_operation=second)
        with pytest.raises(WorkflowAlreadyStartedError):
            await second.workflow_handle()
        await first.signal(Counting.end)
        assert await first.result() == 8


async def test_who_has_little_time_for_an_outcome_is_told_when_it_is_over(client: Client) -> None:
    """Answered that the update goes on, the SDK would ask again without an end."""
    async with worker(client):
        handle = await client.start_workflow(Counting.run, id="w", task_queue=QUEUE)
        update = await handle.start_update(Counting.wait, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
        with pytest.raises(WorkflowUpdateRPCTimeoutOrCancelledError):
            await update.result(rpc_timeout=timedelta(seconds=0.3))
        await handle.signal(Counting.end)
        assert await update.result() == 0
