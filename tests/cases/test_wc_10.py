"""WC-10: parent-close policy misses a child that continued as new, or hits a stranger."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.client import WorkflowExecutionStatus, WorkflowHandle
from stepwell.exceptions import ApplicationError
from stepwell.workflow import ParentClosePolicy

from tests.support.cases import IN_PROCESS, Case, until

CLOSES = ["complete", "fail", "time out", "terminate"]
EXPECTED = {
    ParentClosePolicy.TERMINATE: WorkflowExecutionStatus.TERMINATED,
    ParentClosePolicy.REQUEST_CANCEL: WorkflowExecutionStatus.CANCELED,
    ParentClosePolicy.ABANDON: WorkflowExecutionStatus.RUNNING,
}


@workflow.defn
async def keeps_going(run: int, pause: float) -> None:
    """Its third run stays."""
    if run == 3:
        await workflow.wait_condition(lambda: False)
    await workflow.sleep(pause)
    workflow.continue_as_new(args=[run + 1, pause])


@workflow.defn
async def parent_of_many(prefix: str, count: int, policy: ParentClosePolicy, close: str) -> None:
    starts = [
        workflow.start_child_workflow(
            keeps_going, args=[1, 0.01], id=f"{prefix}-{n}", parent_close_policy=ParentClosePolicy(policy)
        )
        for n in range(count)
    ]
    await asyncio.gather(*starts)
    await workflow.wait_for_signal("close")
    if close == "fail":
        raise ApplicationError("given up", non_retryable=True)
    if close == "time out":
        await workflow.wait_condition(lambda: False)


@workflow.defn
async def asks_and_closes(child_id: str, policy: ParentClosePolicy) -> None:
    """Closes in the workflow task that asks for the child, or in the next."""
    task = asyncio.create_task(
        workflow.start_child_workflow(
            keeps_going, args=[3, 0.01], id=child_id, parent_close_policy=ParentClosePolicy(policy)
        )
    )
    await asyncio.sleep(0)
    task.add_done_callback(lambda ended: ended.exception())


@workflow.defn
async def stranger() -> None:
    await workflow.wait_condition(lambda: False)


async def _in_third_run(handle: WorkflowHandle[Any]) -> bool:
    found = [event async for event in handle.fetch_history_events()]
    runs = found[0].attributes
    return bool(runs.input) and runs.input[0].data == b"3"  # type: ignore[union-attr]


async def _close(case: Case, policy: ParentClosePolicy, close: str, count: int) -> None:
    prefix = f"{policy}-{close}-{count}"
    options = {"run_timeout": timedelta(seconds=6)} if close == "time out" else {}
    parent = await case.start(parent_of_many, prefix, count, policy, close, id=f"parent-{prefix}", **options)
    children = [case.client.get_workflow_handle(f"{prefix}-{n}") for n in range(count)]

    async def all_there() -> bool:
        shown = (await parent.describe()).pending_children
        return len(shown) == count and all(child.run_id for child in shown)

    await until(all_there)
    for child in children:
        await until(lambda child=child: _in_third_run(child))
    await (parent.terminate() if close == "terminate" else parent.signal("close"))

    async def as_agreed() -> bool:
        closed = (await parent.describe()).status is not WorkflowExecutionStatus.RUNNING
        return closed and all([(await child.describe()).status is EXPECTED[policy] for child in children])

    await until(as_agreed)
    if policy is ParentClosePolicy.ABANDON:
        assert not any([(await child.describe()).cancel_requested for child in children])


@pytest.mark.parametrize("setting", IN_PROCESS[:1], ids=str, indirect=True)
@pytest.mark.parametrize("close", CLOSES)
@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_the_childs_third_run_is_reached(case: Case, policy: ParentClosePolicy, close: str) -> None:
    """The current run is terminated, asked to cancel, or left alone, however the parent closes."""
    async with case.worker([keeps_going, parent_of_many]), asyncio.timeout(60):
        await _close(case, policy, close, 2)


@pytest.mark.parametrize("setting", IN_PROCESS[:1], ids=str, indirect=True)
@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_eighty_children(case: Case, policy: ParentClosePolicy) -> None:
    async with case.worker([keeps_going, parent_of_many]), asyncio.timeout(120):
        await _close(case, policy, "complete", 80)


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
async def test_a_stranger_is_never_touched(case: Case, policy: ParentClosePolicy) -> None:
    """Y is open; a parent asks for a child with its id and closes at once."""
    async with case.worker([keeps_going, asks_and_closes, stranger]), asyncio.timeout(30):
        other = await case.start(stranger, id="Y")
        parents = [await case.start(asks_and_closes, "Y", policy, id=f"parent-{n}") for n in range(5)]
        for parent in parents:
            await parent.result()
        await asyncio.sleep(0.2)  # whatever would reach it has had its time
        shown = await other.describe()
        assert shown.status is WorkflowExecutionStatus.RUNNING and not shown.cancel_requested
        assert shown.run_id == other.result_run_id
