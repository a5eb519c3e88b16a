"""AC-09 to AC-12, AC-16, ER-02: what is tried again, how often, and how little of it is in the history."""

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.common import RetryState
from stepwell.exceptions import ActivityError, ApplicationError

from tests.conformance.activity_retries.workflow import ACTIVITIES, calls
from tests.support.conformance import Feature

FAST = {"first": 0.01}


async def failure(feature: Feature, name: str, policy: dict[str, object]) -> tuple[RetryState | None, ApplicationError]:
    async with feature.worker([calls], ACTIVITIES):
        handle = await feature.start(calls, name, policy)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    error = failed.value.cause
    assert isinstance(error, ActivityError) and isinstance(error.cause, ApplicationError)
    return error.retry_state, error.cause


async def test_retries_leave_one_started_event(feature: Feature) -> None:
    async with feature.worker([calls], ACTIVITIES):
        handle = await feature.start(calls, "third_time_lucky", FAST)
        assert await handle.result() == 3


async def test_attempts_run_out(feature: Feature) -> None:
    state, error = await failure(feature, "declined", FAST | {"maximum_attempts": 2})
    assert state is RetryState.MAXIMUM_ATTEMPTS_REACHED
    assert (error.type, error.message, list(error.details)) == ("Declined", "card 42", ["limit"])


async def test_a_failure_that_says_so_is_final(feature: Feature) -> None:
    state, error = await failure(feature, "final", FAST)
    assert state is RetryState.NON_RETRYABLE_FAILURE and error.non_retryable


async def test_a_listed_type_is_final(feature: Feature) -> None:
    state, error = await failure(feature, "declined", FAST | {"non_retryable_error_types": ["Other", "Declined"]})
    assert state is RetryState.NON_RETRYABLE_FAILURE and error.type == "Declined"


async def test_listed_types_match_exactly(feature: Feature) -> None:
    listed = ["Declined", "DeclinedForEve", "Exception", "declinedforever"]
    async with feature.worker([calls], ACTIVITIES):
        handle = await feature.start(calls, "similar", FAST | {"non_retryable_error_types": listed})
        assert await handle.result() == 2


async def test_a_failure_sets_its_next_delay(feature: Feature) -> None:
    """With the policy's first wait of an hour the run would not end."""
    async with feature.worker([calls], ACTIVITIES):
        handle = await feature.start(calls, "names_its_delay", {"first": 3600})
        assert await handle.result() == 2
