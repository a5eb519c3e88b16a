"""Pause and unpause of a workflow (LC-11), its status (LC-23), messages meanwhile (MS-37)."""

import pytest
from stepwell.client import RPCError, WorkflowExecutionStatus

from tests.conformance.pausing.workflow import Collects, step
from tests.support.conformance import Feature


async def test_what_comes_in_waits_until_it_goes_on(feature: Feature) -> None:
    async with feature.worker([Collects], [step]):
        handle = await feature.start(Collects.run)
        await feature.idle(handle)
        await handle.pause(reason="a look at the books")
        await handle.signal(Collects.add, "one")
        await handle.signal(Collects.add, "two")
        described = await handle.describe()
        assert described.status is WorkflowExecutionStatus.PAUSED and described.pending_workflow_task is None
        with pytest.raises(RPCError, match="is paused") as refused:
            await handle.query(Collects.seen)
        assert refused.value.code == "FAILED_PRECONDITION"
        with pytest.raises(RPCError, match="paused already"):
            await handle.pause()
        await handle.unpause(reason="the books are right")
        assert await handle.result() == ["one", "two", "last"]


async def test_a_run_that_is_not_paused_cannot_be_unpaused(feature: Feature) -> None:
    async with feature.worker([Collects], [step]):
        handle = await feature.start(Collects.run)
        await feature.idle(handle)
        with pytest.raises(RPCError, match="is not paused"):
            await handle.unpause()
        await handle.terminate()
        with pytest.raises(RPCError, match="closed"):
            await handle.pause()
