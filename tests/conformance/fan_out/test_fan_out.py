"""PM-15: so many at a time, and how the rule ends the others."""

from typing import Any

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.exceptions import ActivityError

from tests.conformance.fan_out.workflow import ACTIVITIES, spread
from tests.support.conformance import Feature


async def ran(feature: Feature, kinds: list[str], rule: dict[str, Any]) -> list[str]:
    async with feature.worker([spread], ACTIVITIES):
        handle = await feature.start(spread, kinds, rule)
        result: list[str] = await handle.result()
        return result


async def test_results_in_order_one_at_a_time(feature: Feature) -> None:
    assert await ran(feature, ["a", "b", "c"], {"max_concurrency": 1}) == ["a", "b", "c"]


async def test_the_rest_is_cancelled_by_index_once_enough_have_succeeded(feature: Feature) -> None:
    rule = {"min_successful": 1, "max_concurrency": 3}
    ended = await ran(feature, ["waits", "done", "waits", "never"], rule)
    assert ended == ["CANCELLED", "done", "CANCELLED", "NOT_STARTED"]


async def test_one_failure_too_many(feature: Feature) -> None:
    rule = {"tolerated_failures": 1, "max_concurrency": 1}
    assert await ran(feature, ["fails", "done", "fails", "never"], rule) == ["FAILED", "done", "FAILED", "NOT_STARTED"]


async def test_without_a_rule_the_first_failure_fails_the_workflow(feature: Feature) -> None:
    with pytest.raises(WorkflowFailureError) as failed:
        await ran(feature, ["waits", "fails", "waits"], {})
    assert isinstance(failed.value.cause, ActivityError)
