"""CH-01 to CH-08, CH-16: children start in two phases, tell their parent how they ended, and end with it as agreed."""

from typing import Any

import pytest
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.events import ChildWorkflowExecutionStarted
from stepwell.client import RPCError, WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import ApplicationError, ChildWorkflowError, TerminatedError
from stepwell.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from tests.conformance.children.workflow import (
    Box,
    Moves,
    cancels,
    cancels_the_start,
    counts_moves,
    grandparent,
    many,
    middle,
    says_how_it_ended,
    starts_and_leaves,
    takes_an_id_that_is_in_use,
    tells_its_lineage,
    waits_for_a_child_until_cancelled,
    waits_for_child,
)
from tests.support.cases import until
from tests.support.conformance import Feature


async def child_of(feature: Feature, id: str = "child") -> WorkflowHandle[object]:
    """The child's handle, once it has started."""
    handle = feature.client.get_workflow_handle(feature.id_of(id))

    async def is_there() -> bool:
        try:
            await handle.describe()
        except RPCError:
            return False
        return True

    await until(is_there)
    return handle


async def knows_its_child(parent: WorkflowHandle[Any]) -> None:
    """Once the parent's history tells that the child has started, which is recorded after the child is there."""

    async def recorded() -> bool:
        events = (await parent.fetch_history()).events
        return any(isinstance(event.attributes, ChildWorkflowExecutionStarted) for event in events)

    await until(recorded)


async def test_a_child_and_its_result(feature: Feature) -> None:
    async with feature.worker([waits_for_child, Box]):
        parent = await feature.start(waits_for_child, feature.id_of("child"), "well")
        assert await parent.result() == "well"
        child = await child_of(feature)
        await feature.follow(child, "child")
        shown = await child.describe()
        assert (shown.parent_id, shown.parent_run_id) == (parent.id, parent.result_run_id)
        assert shown.root_id == parent.id and (await parent.describe()).parent_id is None


@pytest.mark.parametrize("how", ["fail", "", "terminate", "cancel"])
async def test_other_ends_of_a_child(feature: Feature, how: str) -> None:
    async with feature.worker([says_how_it_ended, Box]):
        first = "" if how in ("terminate", "cancel") else how
        name = how or "timeout"
        parent = await feature.start(says_how_it_ended, feature.id_of(f"child {name}"), first, id=name)
        if how in ("terminate", "cancel"):
            child = await child_of(feature, f"child {name}")
            await feature.idle(child)
            await (child.terminate("enough") if how == "terminate" else child.cancel(reason="enough"))
        heard = {
            "fail": ["ApplicationError", "Crushed: crushed", ["at the door"]],
            "": ["TimeoutError", "child workflow timed out", []],
            "terminate": ["TerminatedError", "Terminated", []],
            "cancel": ["CancelledError", "Cancelled", []],
        }[how]
        assert await parent.result() == heard


async def test_a_failure_of_a_child_fails_its_parent_with_the_whole_chain(feature: Feature) -> None:
    async with feature.worker([waits_for_child, Box]):
        parent = await feature.start(waits_for_child, feature.id_of("child"), "fail")
        with pytest.raises(WorkflowFailureError) as failed:
            await parent.result()
        child = failed.value.cause
        assert isinstance(child, ChildWorkflowError) and child.workflow_id == feature.id_of("child")
        assert isinstance(child.cause, ApplicationError) and child.cause.type == "Crushed"
        assert list(child.cause.details) == ["at the door"]


async def test_an_id_that_is_in_use(feature: Feature) -> None:
    async with feature.worker([takes_an_id_that_is_in_use, Box]):
        stranger = await feature.start(Box.run, id="stranger")
        parent = await feature.start(takes_an_id_that_is_in_use, stranger.id)
        assert await parent.result() == "busy"
        await stranger.signal(Box.end, "untouched")
        assert await stranger.result() == "untouched"


@pytest.mark.parametrize("kind", list(ChildWorkflowCancellationType))
async def test_cancellation_types(feature: Feature, kind: ChildWorkflowCancellationType) -> None:
    completed = kind is ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED
    abandon = kind is ChildWorkflowCancellationType.ABANDON
    async with feature.worker([cancels, Box]):
        name = kind.lower()
        parent = await feature.start(cancels, feature.id_of(f"child {name}"), kind, id=name)
        child = await child_of(feature, f"child {name}")
        if abandon:
            await feature.idle(parent)
            await child.signal(Box.end, "not touched")
            assert await child.result() == "not touched"
        else:
            with pytest.raises(WorkflowFailureError):
                await child.result()
            assert (await child.describe()).status is Status.CANCELED
        await until(lambda: _without_children(parent))
        await feature.idle(parent)
        await parent.signal("go")
        assert await parent.result() == ["has ended as cancelled" if completed else "cancelled"]


async def test_cancelling_what_has_awaited_the_start_does_not_cancel_the_child(feature: Feature) -> None:
    async with feature.worker([cancels_the_start, Box]):
        parent = await feature.start(cancels_the_start, feature.id_of("child"))
        assert await parent.result() == "well"


async def test_cancelling_the_parent_cancels_the_child_it_waits_for(feature: Feature) -> None:
    async with feature.worker([waits_for_a_child_until_cancelled, Box]):
        parent = await feature.start(waits_for_a_child_until_cancelled, feature.id_of("child"))
        child = await child_of(feature)
        await knows_its_child(parent)
        await feature.idle(parent)
        await parent.cancel(reason="no more")
        with pytest.raises(WorkflowFailureError):
            await parent.result()
        assert (await parent.describe()).status is Status.CANCELED
        assert (await child.describe()).status is Status.CANCELED


@pytest.mark.parametrize("policy", list(ParentClosePolicy))
@pytest.mark.parametrize("how", ["complete", "fail", "terminate", "at once"])
async def test_parent_close_policies_reach_the_childs_current_run(
    feature: Feature, policy: ParentClosePolicy, how: str
) -> None:
    async with feature.worker([starts_and_leaves, Moves]):
        name = f"{policy} {how}".lower()
        parent = await feature.start(starts_and_leaves, feature.id_of(f"child {name}"), policy, how, id=name)
        child = await child_of(feature, f"child {name}")
        if how != "at once":
            await feature.idle(child)
            first = (await child.describe()).run_id
            await child.signal(Moves.move)
            await until(lambda: _other_run(child, first))
            await feature.idle(parent)
            await (parent.terminate() if how == "terminate" else parent.signal("go"))
        if policy is ParentClosePolicy.ABANDON:
            while (await child.describe()).status is Status.RUNNING:
                await feature.idle(child)
                await child.signal(Moves.move)
                await feature.idle(child)
            assert await child.result() == 1
            return
        with pytest.raises(WorkflowFailureError) as ended:
            await child.result()
        terminated = isinstance(ended.value.cause, TerminatedError)
        assert terminated is (policy is ParentClosePolicy.TERMINATE)


async def _without_children(handle: WorkflowHandle[object]) -> bool:
    return not (await handle.describe()).pending_children


async def _other_run(handle: WorkflowHandle[object], run_id: str) -> bool:
    return (await handle.describe()).run_id != run_id


async def test_a_parent_hears_only_of_the_end_of_the_chain(feature: Feature) -> None:
    async with feature.worker([counts_moves, Moves]):
        parent = await feature.start(counts_moves, feature.id_of("child"))
        child = await child_of(feature)
        for _ in range(3):
            await feature.idle(child)
            before = (await child.describe()).run_id
            await child.signal(Moves.move)
            await until(lambda before=before: _other_run(child, before))
        assert await parent.result() == 1
        ends = [event.event_type for event in (await parent.fetch_history()).events]
        assert ends.count("ChildWorkflowExecutionCompleted") == 1


async def test_lineage(feature: Feature) -> None:
    async with feature.worker([grandparent, middle, tells_its_lineage]):
        top = await feature.start(grandparent, feature.id_of("middle"), feature.id_of("leaf"))
        assert await top.result() == [top.id, top.id, feature.id_of("middle"), top.id]
        shown = await feature.client.get_workflow_handle(feature.id_of("leaf")).describe()
        assert (shown.parent_id, shown.root_id) == (feature.id_of("middle"), top.id)


async def test_a_child_that_waits_is_described(feature: Feature) -> None:
    async with feature.worker([waits_for_child, Box]):
        parent = await feature.start(waits_for_child, feature.id_of("child"), "")
        child = await child_of(feature)
        await feature.idle(child)
        await feature.idle(parent)
        (pending,) = (await parent.describe()).pending_children
        assert (pending.workflow_id, pending.workflow_type) == (child.id, "Box")
        assert pending.run_id == (await child.describe()).run_id
        await child.signal(Box.end, "well")
        assert await parent.result() == "well"
        assert not (await parent.describe()).pending_children


@pytest.mark.slow
async def test_two_hundred_children(feature: Feature) -> None:
    async with feature.worker([many, Box]):
        parent = await feature.start(many, feature.id_of("child"), 200)
        assert await parent.result() == [str(n) for n in range(200)]
