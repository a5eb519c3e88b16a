"""What workers report is held to the limits of their namespace, and ends what it is about instead of coming again."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import FailWorkflowExecution, RecordMarker
from stepwell.api.enums import CompletionOutcome
from stepwell.api.enums import WorkflowTaskFailedCause as Cause
from stepwell.api.errors import NotFound
from stepwell.api.events import ActivityTaskFailed, WorkflowExecutionFailed, WorkflowTaskFailed
from stepwell.api.failures import ApplicationFailureInfo, Failure
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.payloads import Payload

from tests.support.engine import activity, payload
from tests.support.scheduled import Scheduled, scheduled

LARGE = (Payload(data=b"x" * 2_001),)


@pytest.fixture
async def limited() -> AsyncIterator[Scheduled]:
    async with scheduled() as made:
        limits = NamespaceLimits(max_payload_bytes=2_000, max_pending_activities=1)
        await made.engine.namespaces.update(r.UpdateNamespaceRequest(namespace="default", limits=limits))
        await made.driver.start()
        yield made


@pytest.mark.parametrize("leased", [True, False])
async def test_a_heartbeat_that_is_too_large_ends_its_activity_for_good(limited: Scheduled, leased: bool) -> None:
    driver = limited.driver
    task = await driver.take()
    answer = await driver.complete(task.task_token, activity("1", eager=leased, seconds=9), slots=1)
    token = answer.leases[0].task_token if leased else (await driver.poll_activities())[0].task_token
    beat = r.RecordActivityHeartbeatRequest(task_token=token, details=payload("half"))
    assert not (await limited.call("RecordActivityHeartbeat", beat)).cancel_requested
    beat = r.RecordActivityHeartbeatRequest(task_token=token, details=LARGE)
    assert (await limited.call("RecordActivityHeartbeat", beat)).cancel_requested, "the worker is told to stop"
    with pytest.raises(NotFound):
        await limited.call("RecordActivityHeartbeat", r.RecordActivityHeartbeatRequest(task_token=token))
    (failed,) = [one.attributes for one in (await driver.take()).events if type(one.attributes) is ActivityTaskFailed]
    assert failed.failure.message.startswith("heartbeat has 2001 bytes, above the limit of 2000")
    assert isinstance(failed.failure.info, ApplicationFailureInfo) and failed.failure.info.non_retryable


async def test_a_task_that_says_too_much_or_begins_too_much_fails_and_names_the_limit(limited: Scheduled) -> None:
    driver = limited.driver
    for command, cause, said in (
        ((RecordMarker(marker_name="m", details={"d": LARGE[0]}),), Cause.PAYLOADS_TOO_LARGE, "at most 2000 are taken"),
        ((activity("1"), activity("2")), Cause.PENDING_ACTIVITIES_LIMIT_EXCEEDED, "has 1 pending activities, the most"),
    ):
        answer = await driver.complete((await driver.take()).task_token, *command)
        assert answer.outcome is CompletionOutcome.FAILED and said in answer.message
        limited.clock.time += timedelta(minutes=1)
        described = (await driver.describe()).pending_workflow_task
        assert described is not None and described.last_cause is cause
        if cause is Cause.PAYLOADS_TOO_LARGE:
            (failed,) = [e.attributes for e in await driver.history() if type(e.attributes) is WorkflowTaskFailed]
            assert failed.cause is cause


async def test_a_run_fails_with_as_much_as_fits(limited: Scheduled) -> None:
    """Refused, it would fail its task for ever."""
    cause = Failure(message="deeper", stack_trace="line\n" * 1_000)
    failure = Failure(message="no", cause=cause, info=ApplicationFailureInfo(failure_type="Declined"))
    task = await limited.driver.take()
    request = r.RespondWorkflowTaskCompletedRequest(
        task_token=task.task_token,
        nonce="n",
        worker=limited.driver.worker,
        commands=(FailWorkflowExecution(failure=failure),),
    )
    assert (await limited.call("RespondWorkflowTaskCompleted", request)).outcome is CompletionOutcome.ACCEPTED
    ended = (await limited.driver.history())[-1].attributes
    assert isinstance(ended, WorkflowExecutionFailed)
    assert ended.failure == Failure(message="no", info=ApplicationFailureInfo(failure_type="Declined"))
