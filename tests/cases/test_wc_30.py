"""WC-30: reset with an open child, and the reset of a child."""

import asyncio

import pytest
from stepwell import workflow
from stepwell.client import WorkflowHandle
from stepwell.common import ResetType
from stepwell.workflow import ParentClosePolicy

from tests.support.cases import Case, events_of, until

LAST, FIRST = ResetType.LAST_WORKFLOW_TASK, ResetType.FIRST_WORKFLOW_TASK


@workflow.defn
class Child:
    def __init__(self) -> None:
        self.word = ""

    @workflow.signal
    def say(self, word: str) -> None:
        self.word = word

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: bool(self.word))
        return self.word


@workflow.defn
class Parent:
    @workflow.run
    async def run(self, policy: str) -> str:
        await workflow.sleep(0.001)  # A
        child = await workflow.start_child_workflow(
            Child.run, id="child", parent_close_policy=ParentClosePolicy(policy)
        )
        return await child


async def begun(case: Case, policy: str = "TERMINATE") -> tuple[WorkflowHandle[str], WorkflowHandle[str]]:
    """The parent waits for its child; a handle of the child's first run."""
    parent = await case.start(Parent.run, policy, id="parent")

    async def waits() -> bool:
        kinds = [event.event_type for event in await events_of(parent)]
        return "ChildWorkflowExecutionStarted" in kinds and kinds[-1] == "WorkflowTaskCompleted"

    await until(waits)
    run_id = (await case.client.get_workflow_handle("child").describe()).run_id
    return parent, case.client.get_workflow_handle("child", run_id=run_id)


async def status(handle: WorkflowHandle[str]) -> str:
    return (await handle.describe()).status.name


async def end_with(case: Case, word: str, *, other_than: str | None = None) -> None:
    """Ends the child, or the one behind that run."""
    child = case.client.get_workflow_handle("child")

    async def is_there() -> bool:
        known = await child.describe()
        return known.run_id != other_than and known.status.name == "RUNNING"

    await until(is_there)
    await child.signal(Child.say, word)


async def before_the_child(parent: WorkflowHandle[str]) -> int:
    """The end of the workflow task that asked for it."""
    events = await events_of(parent)
    return next(e.event_id for e in events if e.event_type == "StartChildWorkflowExecutionInitiated") - 1


@pytest.fixture(autouse=True)
async def in_time() -> object:
    async with asyncio.timeout(30):
        yield


async def test_a_before_the_childs_start_the_old_one_is_ended_as_its_policy_says(case: Case) -> None:
    async with case.worker([Parent, Child]):
        parent, old = await begun(case)
        await parent.reset(event_id=await before_the_child(parent))
        await end_with(case, "new", other_than=old.run_id)
        assert await parent.result() == "new"
        assert await status(old) == "TERMINATED"


async def test_a_before_the_childs_start_one_that_outlives_its_parent_is_gone_on_with(case: Case) -> None:
    """No id deadlock: the new run asks for the id that its old child has."""
    async with case.worker([Parent, Child]):
        parent, old = await begun(case, "ABANDON")
        again = await parent.reset(event_id=await before_the_child(parent))

        async def asked() -> bool:
            return "ChildWorkflowExecutionStarted" in [event.event_type for event in await events_of(again)]

        await until(asked)
        await end_with(case, "old")
        assert await parent.result() == "old"
        assert await status(old) == "COMPLETED"


async def test_b_behind_the_childs_start_the_new_run_gets_its_result(case: Case) -> None:
    async with case.worker([Parent, Child]):
        parent, old = await begun(case)
        await parent.reset()
        await end_with(case, "the same")
        assert await parent.result() == "the same"
        assert await status(old) == "COMPLETED"


@pytest.mark.parametrize("ended", ["before", "after"])
async def test_c_a_parent_that_was_terminated_gets_the_result_of_the_child_it_left(case: Case, ended: str) -> None:
    async with case.worker([Parent, Child]):
        parent, old = await begun(case, "ABANDON")
        await parent.terminate()
        if ended == "before":
            await end_with(case, "left alone")
            assert await old.result() == "left alone"
        again = await parent.reset()
        if ended == "after":
            assert await status(old) == "RUNNING"
            await end_with(case, "left alone")
        assert await again.result() == "left alone"


async def test_c_what_ended_behind_the_point_is_known_to_the_new_run(case: Case) -> None:
    async with case.worker([Parent, Child]):
        parent, _ = await begun(case)
        await end_with(case, "known")
        assert await parent.result() == "known"
        ends = [event.event_id for event in await events_of(parent) if event.event_type == "WorkflowTaskCompleted"]
        again = await parent.reset(event_id=ends[-2])
        assert await again.result() == "known"


async def test_d_a_closed_parent_is_reset_to_its_first_task(case: Case) -> None:
    async with case.worker([Parent, Child]):
        parent, old = await begun(case)
        await end_with(case, "one")
        assert await parent.result() == "one"
        again = await parent.reset(reset_type=FIRST)
        await end_with(case, "two", other_than=old.run_id)
        assert await again.result() == "two"


@pytest.mark.parametrize("resets", [1, 2])
async def test_e_the_reset_of_a_child_is_nothing_to_its_parent(case: Case, resets: int) -> None:
    async with case.worker([Parent, Child]):
        parent, old = await begun(case)
        for _ in range(resets):
            new = await case.client.get_workflow_handle("child").reset()
        assert await status(old) == "TERMINATED"
        await end_with(case, "from the new run", other_than=old.run_id)
        assert await new.result() == "from the new run"
        assert await parent.result() == "from the new run"
        kinds = [event.event_type for event in await events_of(parent)]
        assert kinds.count("ChildWorkflowExecutionCompleted") == 1 and "ChildWorkflowExecutionTerminated" not in kinds
