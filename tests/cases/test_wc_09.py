"""WC-09: the child's id is taken and the parent never ends."""

import asyncio

import pytest
from stepwell import workflow
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from stepwell.common import WorkflowIDReusePolicy
from stepwell.exceptions import ApplicationError, WorkflowAlreadyStartedError

from tests.support.cases import Case, types


@workflow.defn
class Stranger:
    """Has the id; nobody's child."""

    def __init__(self) -> None:
        self.over = False

    @workflow.signal
    def end(self) -> None:
        self.over = True

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.over)
        return "untouched"


@workflow.defn
async def lets_it_fail(child_id: str) -> str:
    return await workflow.execute_child_workflow(Stranger.run, id=child_id)


@workflow.defn
async def catches_it(child_id: str) -> str:
    try:
        return await workflow.execute_child_workflow(Stranger.run, id=child_id)
    except WorkflowAlreadyStartedError as error:
        return f"busy: {error.workflow_id}"


@workflow.defn
async def only_starts_it(child_id: str, reject_duplicate: bool) -> str:
    policy = WorkflowIDReusePolicy.REJECT_DUPLICATE if reject_duplicate else WorkflowIDReusePolicy.ALLOW_DUPLICATE
    try:
        await workflow.start_child_workflow(Stranger.run, id=child_id, id_reuse_policy=policy)
    except WorkflowAlreadyStartedError:
        return "refused at the start"
    return "started"


PARENTS = [Stranger, lets_it_fail, catches_it, only_starts_it]


async def _untouched(stranger: WorkflowHandle[str]) -> None:
    """It runs on, and was neither ended nor asked to."""
    shown = await stranger.describe()
    assert shown.status is WorkflowExecutionStatus.RUNNING and not shown.cancel_requested
    await stranger.signal(Stranger.end)
    assert await stranger.result() == "untouched"


async def test_it_is_not_caught(case: Case) -> None:
    """(a) The parent fails within seconds, and says why."""
    async with case.worker(PARENTS), asyncio.timeout(20):
        stranger = await case.start(Stranger.run, id="X")
        parent = await case.start(lets_it_fail, "X", id="parent")
        with pytest.raises(WorkflowFailureError) as failed:
            await parent.result()
        cause = failed.value.cause
        assert isinstance(cause, ApplicationError) and cause.type == "WorkflowAlreadyStartedError"
        assert "'X' is already started" in str(cause)
        await _untouched(stranger)
        assert types((await parent.fetch_history()).events)[-1] == "WorkflowExecutionFailed"


async def test_it_is_caught(case: Case) -> None:
    """(b) The parent completes, and nothing is left pending."""
    async with case.worker(PARENTS), asyncio.timeout(20):
        stranger = await case.start(Stranger.run, id="X")
        parent = await case.start(catches_it, "X", id="parent")
        assert await parent.result() == "busy: X"
        assert not (await parent.describe()).pending_children
        await _untouched(stranger)


async def test_nothing_is_awaited_but_the_start(case: Case) -> None:
    """(c) The start itself raises."""
    async with case.worker(PARENTS), asyncio.timeout(20):
        stranger = await case.start(Stranger.run, id="X")
        parent = await case.start(only_starts_it, "X", False, id="parent")
        assert await parent.result() == "refused at the start"
        await _untouched(stranger)


async def test_a_closed_one_whose_duplicates_are_rejected(case: Case) -> None:
    """(d) The same where X is closed and the child is started with REJECT_DUPLICATE; allowed, it is another run."""
    async with case.worker(PARENTS), asyncio.timeout(20):
        stranger = await case.start(Stranger.run, id="X")
        await stranger.signal(Stranger.end)
        await stranger.result()
        parent = await case.start(only_starts_it, "X", True, id="rejects")
        assert await parent.result() == "refused at the start"
        parent = await case.start(only_starts_it, "X", False, id="allows")
        assert await parent.result() == "started"
