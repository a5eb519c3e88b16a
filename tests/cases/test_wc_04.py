"""WC-04: a late answer from an earlier attempt. A unit, here 0.15 s, stands for one second of the case."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.enums import PendingActivityState
from stepwell.api.events import ActivityTaskCompleted, ActivityTaskStarted
from stepwell.common import RetryPolicy
from stepwell.transport.http import TOTAL_WAIT

from tests.support.cases import QUEUE, Case, attributes, events_of, until

UNIT = 0.15
OPTIONS: dict[str, Any] = {
    "start_to_close_timeout": timedelta(seconds=6 * UNIT),
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=UNIT), backoff_coefficient=1, maximum_attempts=3),
}


@workflow.defn
async def charge_once() -> str:
    """The activity is called by name: who answers it is up to the test."""
    return await workflow.execute_activity("charge", result_type=str, **OPTIONS)


def late_in_a_thread(tokens: dict[int, bytes]) -> Any:
    @activity.defn(name="charge")
    def charge() -> str:
        attempt = activity.info().attempt
        tokens[attempt] = activity.info().task_token
        with activity.shield_thread_cancel_exception():
            time.sleep((9 if attempt == 1 else 4) * UNIT)
            return "one" if attempt == 1 else "two"

    return charge


def late_on_the_loop(tokens: dict[int, bytes]) -> Any:
    @activity.defn(name="charge")
    async def charge() -> str:
        attempt = activity.info().attempt
        tokens[attempt] = activity.info().task_token
        sleeping = asyncio.ensure_future(asyncio.sleep((9 if attempt == 1 else 4) * UNIT))
        while not sleeping.done():
            try:
                await asyncio.shield(sleeping)
            except asyncio.CancelledError:
                continue  # a badly behaved activity that will not be stopped
        return "one" if attempt == 1 else "two"

    return charge


async def check_second_counts(case: Case, workflow_id: str) -> None:
    events = await events_of(case.client.get_workflow_handle(workflow_id))
    (started,) = attributes(events, ActivityTaskStarted)
    (completed,) = attributes(events, ActivityTaskCompleted)
    assert started.attempt == 2
    assert completed.result[0].data == b'"two"'


@pytest.mark.parametrize("make", [late_in_a_thread, late_on_the_loop])
async def test_the_second_attempt_counts(case: Case, make: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Tried: attempt 1 works for 9 units under a limit of 6, does not let itself be interrupted, and returns "one";
    attempt 2 works for 4 units and returns "two". While attempt 2 works, the activity is completed by hand: with the
    token of attempt 1, with random bytes, with no bytes.

    Right: the result is "two", with attempt count 2. By hand with the old token: refused, saying that the attempt is
    over. Bytes that are no token: refused at once, as such. Answers to closed attempts change nothing.
    """
    tokens: dict[int, bytes] = {}
    async with case.worker([charge_once], [make(tokens)]):
        handle = await case.start(charge_once, id="charge-1")

        async def second_works() -> bool:
            pending = (await handle.describe()).pending_activities
            found = [activity.state for activity in pending if activity.attempt == 2]
            return found == [PendingActivityState.STARTED] and 2 in tokens

        await until(second_works)
        late = await case.answer(tokens[1], "one")
        assert late.error_code == "NOT_FOUND"
        assert "attempt 1" in late.message and "the attempt is over" in late.message
        assert await refusal(case, b"\x8a random bytes \x00") == "INVALID_ARGUMENT"
        assert await refusal(case, b"") == "INVALID_ARGUMENT"
        # one byte of a good token changed
        assert await refusal(case, tokens[2][:-1] + bytes([tokens[2][-1] ^ 1])) == "INVALID_ARGUMENT"
        assert await handle.result() == "two"
        assert (await case.answer(tokens[1], "one")).error_code == "NOT_FOUND"
        await asyncio.sleep(2 * UNIT)
    await check_second_counts(case, "charge-1")


async def refusal(case: Case, token: bytes) -> str:
    """The code that an answer with this token is refused with, by whichever way; empty when it is taken."""
    started = time.monotonic()
    try:
        code = (await case.answer(token, "one")).error_code
    except Exception as error:
        code = getattr(error, "code", repr(error))
    assert time.monotonic() - started < TOTAL_WAIT / 2, "a meaningless token must not be waited for"
    return code


async def poll(case: Case) -> r.ActivityTask:
    """An attempt, taken through the API as a worker of another make would."""
    request = r.PollActivityTaskRequest(
        task_queue=QUEUE, worker=r.WorkerInfo(identity="other make"), timeout=timedelta(seconds=10)
    )
    (task,) = (await case.client.transport.call(op.POLL_ACTIVITY_TASK, request)).tasks
    return task


async def test_answers_of_a_worker_of_another_make(case: Case) -> None:
    """Tried: the attempts are taken and answered through the API. Attempt 1 is answered when attempt 2 is already
    running, attempt 2 is answered twice with one result, then with another.

    Right: attempt 1 is refused, saying that the attempt is over. The repeat of the counted answer succeeds; the other
    answer after it changes nothing. The result is "two", with attempt count 2.
    """
    async with case.worker([charge_once]):
        handle = await case.start(charge_once, id="charge-2")
        first = await poll(case)
        second = await poll(case)
        assert (first.attempt, second.attempt) == (1, 2)
        late = await case.answer(first.task_token, "one")
        assert late.error_code == "NOT_FOUND"
        assert "attempt 1" in late.message and "current attempt is 2" in late.message
        assert (await case.answer(second.task_token, "two")).error_code == ""
        assert (await case.answer(second.task_token, "two")).error_code == ""
        assert await handle.result() == "two"
        await case.answer(second.task_token, "three")
        assert (await case.answer(first.task_token, "one")).error_code == "NOT_FOUND"
    await check_second_counts(case, "charge-2")
