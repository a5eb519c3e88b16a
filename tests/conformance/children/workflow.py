"""Parents and their children."""

import asyncio
from datetime import timedelta
from typing import Any

from stepwell import workflow
from stepwell.exceptions import ApplicationError, CancelledError, ChildWorkflowError, WorkflowAlreadyStartedError
from stepwell.workflow import ChildWorkflowCancellationType, ParentClosePolicy


@workflow.defn
class Box:
    """A child that ends as it is told."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    @workflow.signal
    def end(self, how: str) -> None:
        self.ends.append(how)

    @workflow.run
    async def run(self, how: str = "") -> str:
        if not how:
            await workflow.wait_condition(lambda: bool(self.ends))
            how = self.ends[0]
        if how == "fail":
            raise ApplicationError("crushed", "at the door", type="Crushed", non_retryable=True)
        return how


@workflow.defn
class Moves:
    """Goes on with a next run at each signal."""

    def __init__(self) -> None:
        self.moved = False

    @workflow.signal
    def move(self) -> None:
        self.moved = True

    @workflow.run
    async def run(self, runs: int) -> int:
        if runs == 0:
            return int(workflow.info().run_id != workflow.info().first_execution_run_id)
        await workflow.wait_condition(lambda: self.moved)
        workflow.continue_as_new(runs - 1)


@workflow.defn
async def waits_for_child(child_id: str, how: str) -> str:
    return await workflow.execute_child_workflow(Box.run, how, id=child_id)


@workflow.defn
async def says_how_it_ended(child_id: str, how: str) -> list[Any]:
    try:
        return [await workflow.execute_child_workflow(Box.run, how, id=child_id, run_timeout=timedelta(seconds=1))]
    except ChildWorkflowError as error:
        cause = error.cause
        if (error.workflow_id, error.workflow_type, bool(error.run_id)) != (child_id, "Box", True):
            raise ApplicationError(f"the error is about {error.workflow_id}") from error
        return [type(cause).__name__, str(cause), list(getattr(cause, "details", []))]


@workflow.defn
async def starts_and_leaves(child_id: str, policy: ParentClosePolicy, how: str) -> str:
    """Ends, once it is told, and leaves the child to what its policy says."""
    child = await workflow.start_child_workflow(
        Moves.run, 3, id=child_id, parent_close_policy=ParentClosePolicy(policy)
    )
    if how == "at once":
        return child.id
    await workflow.wait_for_signal("go")
    if how == "fail":
        raise ApplicationError("given up")
    return child.id


@workflow.defn
async def counts_moves(child_id: str) -> int:
    return await workflow.execute_child_workflow(Moves.run, 3, id=child_id)


@workflow.defn
async def takes_an_id_that_is_in_use(child_id: str) -> str:
    try:
        await workflow.start_child_workflow(Box.run, id=child_id)
    except WorkflowAlreadyStartedError:
        return "busy"
    return "free"


@workflow.defn
async def cancels(child_id: str, kind: ChildWorkflowCancellationType) -> list[str]:
    """Cancels the child and says what it heard, in which order."""
    heard: list[str] = []
    child = await workflow.start_child_workflow(
        Box.run, id=child_id, cancellation_type=ChildWorkflowCancellationType(kind)
    )
    child.cancel()
    try:
        await child
    except asyncio.CancelledError:
        heard.append("cancelled")
    except ChildWorkflowError as error:
        heard.append("has ended as cancelled" if isinstance(error.cause, CancelledError) else "has failed")
    await workflow.wait_for_signal("go")
    return heard


@workflow.defn
async def cancels_the_start(child_id: str) -> str:
    """CH-06: the start is over, so cancelling the task that waited for it does nothing."""
    task = asyncio.create_task(workflow.start_child_workflow(Box.run, id=child_id))
    child = await task
    assert not task.cancel()
    await child.signal(Box.end, "well")
    return await child


@workflow.defn
async def waits_for_a_child_until_cancelled(child_id: str) -> str:
    return await workflow.execute_child_workflow(Box.run, id=child_id)


@workflow.defn
async def grandparent(child_id: str, grandchild_id: str) -> list[str]:
    return await workflow.execute_child_workflow(middle, grandchild_id, id=child_id)


@workflow.defn
async def middle(grandchild_id: str) -> list[str]:
    info = workflow.info()
    assert info.parent is not None and info.root is not None
    below = await workflow.execute_child_workflow(tells_its_lineage, id=grandchild_id)
    return [info.parent.workflow_id, info.root.workflow_id, *below]


@workflow.defn
async def tells_its_lineage() -> list[str]:
    info = workflow.info()
    assert info.parent is not None and info.root is not None
    assert info.parent.namespace == "default"
    return [info.parent.workflow_id, info.root.workflow_id]


@workflow.defn
async def many(prefix: str, count: int) -> list[str]:
    boxes = [workflow.execute_child_workflow(Box.run, str(n), id=f"{prefix}-{n}") for n in range(count)]
    return list(await asyncio.gather(*boxes))
