"""Stacks begin in people's own code, however the SDK came to call it."""

from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.failures import Failure
from stepwell.client import WorkflowFailureError, WorkflowUpdateFailedError
from stepwell.common import RetryPolicy
from stepwell.converter import DataConverter, PayloadConverter, PayloadError
from stepwell.converter.frames import frames_from_users_code
from stepwell.exceptions import ApplicationError
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker


def check(failure: Failure | None, function: str) -> None:
    """The first frame is of this function; what it called follows."""
    assert failure is not None
    first, *_ = failure.stack_trace.splitlines()
    assert __file__ in first and first.endswith(f"in {function}"), failure.stack_trace
    assert "in declined" in failure.stack_trace


def declined() -> None:
    raise ApplicationError("declined", non_retryable=True)


@activity.defn
async def on_the_loop() -> None:
    declined()


@activity.defn
def in_a_thread() -> None:
    declined()


@workflow.defn
class Order:
    @workflow.run
    async def run(self, name: str) -> None:
        if name == "wait":
            await workflow.wait_condition(lambda: False)
        if name:
            policy = RetryPolicy(maximum_attempts=1)
            await workflow.execute_activity(name, start_to_close_timeout=timedelta(seconds=30), retry_policy=policy)
        declined()

    @workflow.update
    async def change(self) -> None:
        declined()

    @workflow.update
    async def refuse(self) -> None: ...

    @refuse.validator
    def refused(self) -> None:
        declined()


async def test_of_activities_workflows_and_updates() -> None:
    async with await DevEnvironment.start() as env:
        handles = [
            await env.client.start_workflow(Order.run, name, id=name or "main", task_queue="q")
            for name in ("on_the_loop", "in_a_thread", "")
        ]
        updated = await env.client.start_workflow(Order.run, "wait", id="updated", task_queue="q")
        async with Worker(env.client, task_queue="q", workflows=[Order], activities=[on_the_loop, in_a_thread]):
            for handle, function in zip(handles, ("on_the_loop", "in_a_thread", "run"), strict=True):
                with pytest.raises(WorkflowFailureError) as failed:
                    await handle.result()
                cause = failed.value.cause
                check((cause.cause if handle.id != "main" else cause).failure, function)
            for name, function in (("change", "change"), ("refuse", "refused")):
                with pytest.raises(WorkflowUpdateFailedError) as rejected:
                    await updated.execute_update(name)
                check(rejected.value.cause.failure, function)


def test_an_error_of_the_sdk_alone_keeps_its_stack() -> None:
    with pytest.raises(PayloadError) as caught:
        PayloadConverter.default.to_payload(object())
    stack = caught.value.__traceback__
    assert stack is not None and stack.tb_next is not None
    whole = frames_from_users_code(stack)
    assert whole[0].filename == __file__ and len(whole) > 1, "what people's code called stays"
    assert [frame.filename for frame in frames_from_users_code(stack.tb_next)] == [
        frame.filename for frame in whole[1:]
    ]
    assert "in to_payload" in DataConverter.default.to_failure(caught.value).stack_trace
