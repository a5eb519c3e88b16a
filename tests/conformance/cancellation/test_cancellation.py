"""CH-09 to CH-13: cancelling is asking; the workflow is told once, at a wait, and may clean up or go on."""

from typing import Any

import pytest
from stepwell.client import RPCError, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import CancelledError, TerminatedError

from tests.conformance.cancellation.workflow import (
    WORKFLOWS,
    carries_on,
    clean_up,
    cleans_up,
    ends_with_its_signal,
    shields,
    waits,
)
from tests.support.conformance import Feature


async def cancelled(handle: WorkflowHandle[Any]) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_it_is_raised_at_the_wait(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(waits)
        await feature.idle(handle)
        await handle.cancel(reason="enough")
        await cancelled(handle)


async def test_cleaning_up_comes_first(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(cleans_up)
        await feature.idle(handle)
        await handle.cancel()
        await cancelled(handle)


async def test_only_the_first_request_counts(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(carries_on)
        await feature.idle(handle)
        await handle.cancel(reason="enough")
        await feature.idle(handle)
        await handle.cancel(reason="once more")
        await handle.signal("end")
        assert await handle.result() == "cancelled because enough, and went on"


async def test_what_is_shielded_goes_on(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(shields, 0.6)
        await feature.idle(handle)
        await handle.cancel()
        assert await handle.result() == "slept to the end"


async def test_before_the_first_task(feature: Feature) -> None:
    handle = await feature.start(waits)
    await handle.cancel()
    async with feature.worker(WORKFLOWS, [clean_up]):
        await cancelled(handle)


async def test_with_the_end_in_one_task(feature: Feature) -> None:
    """The cancellation does not undo what the signal had made possible, and is not lost either: it is raised at the
    wait, in place of the signal's value."""
    handle = await feature.start(ends_with_its_signal)
    async with feature.worker(WORKFLOWS, [clean_up]):
        await feature.idle(handle)
    await handle.signal("end")
    await handle.cancel()
    async with feature.worker(WORKFLOWS, [clean_up]):
        await cancelled(handle)


async def test_a_closed_run_may_be_cancelled_and_an_unknown_one_not(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(ends_with_its_signal)
        await feature.idle(handle)
        await handle.signal("end")
        assert await handle.result() == "ended"
    await handle.cancel()
    with pytest.raises(RPCError) as refused:
        await feature.client.get_workflow_handle(feature.id_of("unknown")).cancel()
    assert refused.value.code == "NOT_FOUND"


async def test_terminating_is_unseen_by_the_code(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [clean_up]):
        handle = await feature.start(cleans_up)
        await feature.idle(handle)
        await handle.terminate("detail", 7, reason="enough")
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.cause, TerminatedError)
        assert "enough" in str(failed.value.cause)
        with pytest.raises(RPCError) as refused:
            await handle.terminate()
    assert refused.value.code == "WORKFLOW_EXECUTION_CLOSED"
