"""LC-02, LC-03: the reuse policy speaks of a closed run of the id, the conflict policy of an open one."""

from typing import Any

import pytest
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from stepwell.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.exceptions import WorkflowAlreadyStartedError

from tests.conformance.id_policies.workflow import ends
from tests.support.conformance import Feature

FAILED_ONLY = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY


async def closed(feature: Feature, how: str) -> WorkflowHandle[Any]:
    """A run that has ended well, failed, or was cancelled or terminated."""
    told = how if how in ("well", "fails") else "waits"
    handle = await feature.start(ends, told, id="id", name=how)
    await feature.idle(handle)
    if how == "cancelled":
        await handle.cancel()
    elif how == "terminated":
        await handle.terminate()
    if how == "well":
        assert await handle.result() == "well"
    else:
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    return handle


async def test_any_closed_id_is_free_by_default(feature: Feature) -> None:
    async with feature.worker([ends]):
        first = await closed(feature, "well")
        second = await feature.start(ends, "again", id="id", name="again")
        assert await second.result() == "again"
        assert await first.result() == "well"
    assert second.result_run_id != first.result_run_id


@pytest.mark.parametrize("how", ["fails", "cancelled", "terminated"])
async def test_failed_only_counts_cancelled_and_terminated(feature: Feature, how: str) -> None:
    async with feature.worker([ends]):
        await closed(feature, how)
        second = await feature.start(ends, "again", id="id", name="again", id_reuse_policy=FAILED_ONLY)
        assert await second.result() == "again"


@pytest.mark.parametrize("policy", [FAILED_ONLY, WorkflowIDReusePolicy.REJECT_DUPLICATE])
async def test_an_id_that_ended_well_may_be_refused(feature: Feature, policy: WorkflowIDReusePolicy) -> None:
    async with feature.worker([ends]):
        first = await closed(feature, "well")
        with pytest.raises(WorkflowAlreadyStartedError) as refused:
            await feature.start(ends, "again", id="id", id_reuse_policy=policy)
    assert refused.value.run_id == first.result_run_id


async def test_an_open_id_is_refused_whatever_the_reuse_policy(feature: Feature) -> None:
    async with feature.worker([ends]):
        first = await feature.start(ends, "waits", id="id")
        for policy in WorkflowIDReusePolicy:
            with pytest.raises(WorkflowAlreadyStartedError):
                await feature.start(ends, "again", id="id", id_reuse_policy=policy)
        await feature.idle(first)
        await first.signal("end")
        assert await first.result() == "waits"


async def test_use_existing_is_the_open_run(feature: Feature) -> None:
    """Whatever the reuse policy, which does not speak of it."""
    async with feature.worker([ends]):
        first = await feature.start(ends, "waits", id="id")
        second = await feature.start(
            ends,
            "again",
            id="id",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        )
        assert second.result_run_id == first.result_run_id
        await feature.idle(first)
        await first.signal("end")
        assert await second.result() == "waits"


async def test_terminate_existing_ends_it_first(feature: Feature) -> None:
    policy = WorkflowIDConflictPolicy.TERMINATE_EXISTING
    async with feature.worker([ends]):
        first = await feature.start(ends, "waits", id="id", name="first")
        await feature.idle(first)
        second = await feature.start(ends, "again", id="id", name="second", id_conflict_policy=policy)
        assert await second.result() == "again"
    assert (await feature.run(first).describe()).status is WorkflowExecutionStatus.TERMINATED
