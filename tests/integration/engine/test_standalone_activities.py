"""Activities without a workflow (AC-28), where requests say more than the SDK does: delays, ends by id, tokens."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import FailedPrecondition, InvalidArgument
from stepwell.api.failures import CanceledFailureInfo
from stepwell.api.payloads import Payload

from tests.support.engine import QUEUE, Driver, payload, running


async def start(driver: Driver, **more: Any) -> None:
    asked: dict[str, Any] = {
        "activity_id": "a",
        "activity_type": "charge",
        "task_queue": QUEUE,
        "schedule_to_close_timeout": timedelta(minutes=1),
    }
    await driver.engine.start_activity(r.StartActivityRequest(**asked | more))


async def describe(driver: Driver) -> r.DescribeActivityResponse:
    return await driver.engine.describe_activity(r.DescribeActivityRequest(activity_id="a"))


async def test_a_start_delay_holds_the_first_attempt_back_and_all_timeouts() -> None:
    async with running() as driver:
        delay = timedelta(milliseconds=200)
        await start(driver, start_delay=delay, schedule_to_start_timeout=delay / 2)
        before = await describe(driver)
        (attempt,) = await driver.poll_activities()
        assert before.execution_time == before.info.schedule_time + delay <= attempt.started_time
        assert before.expiration_time == before.execution_time + timedelta(minutes=1)
        assert (await describe(driver)).state_transition_count > before.state_transition_count
        await driver.done(attempt)
        over = await describe(driver)
        assert (over.execution_time, over.expiration_time) == (before.execution_time, before.expiration_time)


async def test_who_ends_it_by_id_says_that_it_is_cancelled_only_when_that_was_asked() -> None:
    async with running() as driver:
        await start(driver)
        await driver.poll_activities()
        canceled = r.RespondActivityByIdRequest(
            execution=WorkflowExecution(workflow_id=""),
            activity_id="a",
            outcome=r.ActivityCanceled(task_token=b"", details=payload("so far")),
        )
        with pytest.raises(FailedPrecondition, match="'a' was not asked to cancel"):
            await driver.engine.respond_activity_by_id(canceled)
        await driver.engine.cancel_activity(r.CancelActivityRequest(activity_id="a"))
        await driver.engine.respond_activity_by_id(canceled)
        outcome = (await describe(driver)).outcome
        assert outcome is not None and outcome.failure is not None
        assert outcome.failure.info == CanceledFailureInfo(details=payload("so far"))


async def test_of_the_systems_attributes_the_versions_of_code_may_be_said() -> None:
    async with running() as driver:
        versions = Payload(metadata={"encoding": "json/plain", "type": "KeywordList"}, data=b'["one"]')
        await start(driver, search_attributes={"StepwellChangeVersion": versions})
        assert (await describe(driver)).info.search_attributes == {"StepwellChangeVersion": versions}
        with pytest.raises(InvalidArgument, match="one that the system itself sets"):
            await start(driver, search_attributes={"StepwellScheduledById": versions})
