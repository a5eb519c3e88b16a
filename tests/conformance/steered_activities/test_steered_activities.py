"""AC-17, AC-25, AC-26: paused, reset and changed activities; none of it is in the history, but for what came of it."""

import pytest
from stepwell.api.requests import PendingActivityInfo
from stepwell.client import WorkflowFailureError, WorkflowHandle
from stepwell.exceptions import ActivityError

from tests.conformance.steered_activities.workflow import BROKEN, charge, order
from tests.support.cases import until
from tests.support.conformance import Feature


async def pending(handle: WorkflowHandle[int]) -> PendingActivityInfo:
    return (await handle.describe()).pending_activities[0]


async def failed_once(feature: Feature, *arguments: float) -> WorkflowHandle[int]:
    """A run whose activity has failed and waits."""
    BROKEN.add(feature.id_of("run"))
    handle = await feature.start(order, *arguments)

    async def has_failed() -> bool:
        found = (await handle.describe()).pending_activities
        return bool(found) and found[0].last_failure is not None

    await until(has_failed)
    return handle


async def test_a_pause_holds_the_attempts_and_costs_none(feature: Feature) -> None:
    async with feature.worker([order], [charge]):
        handle = await failed_once(feature, 3_600, 2)
        await handle.pause_activity(type="charge", reason="payments are down")
        found = await pending(handle)
        assert (found.state, found.attempt, found.pause_reason) == ("PAUSED", 2, "payments are down")
        BROKEN.discard(handle.id)
        await handle.unpause_activity(type="charge")
        assert await handle.result() == 2


async def test_a_reset_begins_with_the_first_attempt(feature: Feature) -> None:
    async with feature.worker([order], [charge]):
        handle = await failed_once(feature, 3_600, 2)
        BROKEN.discard(handle.id)
        await handle.reset_activity(id=(await pending(handle)).activity_id)
        assert await handle.result() == 1


async def test_another_policy_is_for_the_wait_that_runs(feature: Feature) -> None:
    async with feature.worker([order], [charge]):
        handle = await failed_once(feature, 3_600, 0)
        found = await pending(handle)
        await handle.update_activity_options(
            id=found.activity_id, retry_initial_interval=found.start_to_close_timeout, retry_maximum_attempts=2
        )
        changed = await pending(handle)
        assert changed.maximum_attempts == 2
        assert changed.next_attempt_schedule_time < found.next_attempt_schedule_time  # type: ignore[operator]
        await handle.update_activity_options(id=found.activity_id, restore_original=True, retry_maximum_attempts=2)
        assert (await pending(handle)).retry_policy.initial_interval == found.retry_policy.initial_interval  # type: ignore[union-attr]
        await handle.pause_activity(id=found.activity_id)
        await handle.unpause_activity(id=found.activity_id)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, ActivityError)
