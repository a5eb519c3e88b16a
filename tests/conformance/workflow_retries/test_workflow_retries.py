"""ER-12: a retry policy of the workflow; each attempt is a run of its own."""

from datetime import timedelta

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError, TimeoutError

from tests.conformance.workflow_retries.workflow import Parent, fails_until, never_ends
from tests.support.conformance import Feature

SHORT = timedelta(milliseconds=50)


async def test_without_a_policy_the_first_failure_is_final(feature: Feature) -> None:
    """GW-08: activities are retried unless told otherwise, workflows only when asked to."""
    async with feature.worker([fails_until]):
        with pytest.raises(WorkflowFailureError) as end:
            await (await feature.start(fails_until, 2)).result()
        assert isinstance(end.value.cause, ApplicationError)


async def test_each_attempt_is_a_new_run(feature: Feature) -> None:
    policy = RetryPolicy(initial_interval=SHORT, maximum_attempts=5)
    async with feature.worker([fails_until]):
        handle = await feature.start(fails_until, 3, retry_policy=policy)
        assert await handle.result() == "behind Declined: attempt 2"
        with pytest.raises(WorkflowFailureError) as first:
            await handle.result(follow_runs=False)
        assert "attempt 1" in str(first.value)


async def test_attempts_end(feature: Feature) -> None:
    policy = RetryPolicy(initial_interval=SHORT, maximum_attempts=2)
    async with feature.worker([fails_until]):
        with pytest.raises(WorkflowFailureError) as end:
            await (await feature.start(fails_until, 9, retry_policy=policy)).result()
        assert "attempt 2" in str(end.value)


async def test_a_listed_type_is_final(feature: Feature) -> None:
    policy = RetryPolicy(initial_interval=SHORT, non_retryable_error_types=["Declined"])
    async with feature.worker([fails_until]):
        with pytest.raises(WorkflowFailureError) as end:
            await (await feature.start(fails_until, 2, retry_policy=policy)).result()
        assert "attempt 1" in str(end.value)


async def test_a_run_timeout_is_retried(feature: Feature) -> None:
    policy = RetryPolicy(initial_interval=SHORT, maximum_attempts=2)
    async with feature.worker([never_ends]):
        handle = await feature.start(never_ends, retry_policy=policy, run_timeout=timedelta(milliseconds=500))
        with pytest.raises(WorkflowFailureError) as end:
            await handle.result()
        assert isinstance(end.value.cause, TimeoutError)


async def test_a_child_is_retried_and_its_parent_hears_of_the_end(feature: Feature) -> None:
    async with feature.worker([Parent, fails_until]):
        assert await (await feature.start(Parent.run, SHORT)).result() == "behind Declined: attempt 2"
