"""Batch operations as workflows see them (LC-43): as if somebody had asked each of them."""

from stepwell.client import (
    BatchAction,
    BatchCancel,
    BatchReset,
    BatchSignal,
    BatchTerminate,
    BatchUnpause,
    BatchUpdatePriority,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from stepwell.common import Priority, ResetType

from tests.conformance.batches.workflow import Parcel
from tests.support.conformance import Feature


async def batch(
    feature: Feature, action: BatchAction, handles: list[WorkflowHandle[list[str]]], reason: str = ""
) -> int:
    """How many it was done to, once it is over."""
    started = await feature.client.start_batch_operation(action, executions=handles, reason=reason)
    described = await started.wait()
    assert described.state == "COMPLETED" and not described.failures
    return described.done


async def test_each_is_signalled_once(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handles = [await feature.start(Parcel.run, id=name) for name in ("one", "two")]
        for handle in handles:
            await feature.idle(handle)
        assert await batch(feature, BatchSignal(Parcel.stamp, ["fragile"]), handles) == 2
        for handle in handles:
            await feature.idle(handle)
        assert await batch(feature, BatchSignal(Parcel.send), handles) == 2
        assert [await handle.result() for handle in handles] == [["fragile"], ["fragile"]]


async def test_what_is_asked_of_one_after_the_other(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handle = await feature.start(Parcel.run)
        await feature.idle(handle)
        await handle.pause()
        assert await batch(feature, BatchUnpause(), [handle], "the strike is over") == 1
        assert await batch(feature, BatchUpdatePriority(Priority(priority_key=1)), [handle]) == 1
        assert await batch(feature, BatchTerminate(["lost", 7]), [handle], "the ship sank") == 1
        assert (await handle.describe()).status is WorkflowExecutionStatus.TERMINATED


async def test_a_reset_goes_on_in_another_run(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handle = await feature.start(Parcel.run)
        await feature.idle(handle)
        await handle.signal(Parcel.stamp, "kept")
        await feature.idle(handle)
        reset = BatchReset(ResetType.FIRST_WORKFLOW_TASK, signals=[(Parcel.stamp, ["again"]), (Parcel.send, [])])
        assert await batch(feature, reset, [handle]) == 1
        newest = feature.client.get_workflow_handle(handle.id, result_type=list[str])
        assert await newest.result() == ["kept", "again"]


async def test_a_cancel_reaches_the_code(feature: Feature) -> None:
    async with feature.worker([Parcel]):
        handle = await feature.start(Parcel.run)
        await feature.idle(handle)
        assert await batch(feature, BatchCancel(), [handle], "not needed") == 1
        await feature.idle(handle)
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
