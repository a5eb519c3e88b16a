"""What is found by a query of what runs: families, versions, and histories to be replayed (CH-08, VE-05, VE-20)."""

import pytest
from stepwell import workflow
from stepwell.client import Client
from stepwell.worker import Replayer, Worker
from stepwell.workflow import NondeterminismError


@workflow.defn(name="Leaf")
class Leaf:
    @workflow.run
    async def run(self) -> str:
        return "new" if workflow.patched("colour") else "old"


@workflow.defn(name="Leaf")
class OtherLeaf:
    @workflow.run
    async def run(self) -> str:
        await workflow.sleep(1)
        return "new"


@workflow.defn(name="Branch")
class Branch:
    @workflow.run
    async def run(self, depth: int) -> None:
        name = f"{workflow.info().workflow_id}-{depth}"
        if depth:
            await workflow.execute_child_workflow(Branch.run, depth - 1, id=name)
        else:
            await workflow.execute_child_workflow(Leaf.run, id=name)


async def found(client: Client, query: str) -> list[str]:
    return sorted([run.id async for run in client.list_workflows(query)])


async def test_families_and_versions_are_found_and_their_histories_replayed() -> None:
    async with (
        await Client.connect("sqlite://:memory:") as client,
        Worker(client, task_queue="q", workflows=[Branch, Leaf]),
    ):
        for root in ("oak", "elm"):
            await client.execute_workflow(Branch.run, 1, id=root, task_queue="q")
        assert await found(client, "ParentWorkflowId = 'oak'") == ["oak-1"]
        assert await found(client, "RootWorkflowId = 'oak'") == ["oak", "oak-1", "oak-1-0"]
        assert await found(client, "StepwellChangeVersion = 'colour'") == ["elm-1-0", "oak-1-0"]
        leaves = "WorkflowType = 'Leaf'"
        good = await Replayer(workflows=[Leaf]).replay_workflows(client.list_histories(leaves))
        assert not good.replay_failures
        bad = Replayer(workflows=[OtherLeaf])
        failed = await bad.replay_workflows(client.list_histories(leaves), raise_on_replay_failure=False)
        assert len(failed.replay_failures) == 2
        with pytest.raises(NondeterminismError):
            await bad.replay_workflows(client.list_histories(leaves, limit=1))
