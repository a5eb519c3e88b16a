"""WC-06: the overall deadline hides the real error. 40 of the case's seconds are one here."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.events import ActivityTaskScheduled, ActivityTaskStarted, ActivityTaskTimedOut, HistoryEvent
from stepwell.client import WorkflowFailureError
from stepwell.common import RetryPolicy, RetryState, TimeoutType
from stepwell.exceptions import ActivityError, ApplicationError, TimeoutError

from tests.support.cases import Case, attributes, events_of

SCALE = 1 / 40
OVERALL = timedelta(seconds=60 * SCALE)
OPTIONS: dict[str, Any] = {
    "schedule_to_close_timeout": OVERALL,
    "retry_policy": RetryPolicy(initial_interval=timedelta(seconds=SCALE), backoff_coefficient=2.0),
}


@activity.defn
async def always_declined() -> None:
    raise ApplicationError("card 42", {"reason": "limit"}, type="Declined")


@activity.defn
async def declined_then_hangs() -> None:
    if activity.info().attempt < 3:
        raise ApplicationError("card 42", {"reason": "limit"}, type="Declined")
    await asyncio.sleep(120 * SCALE)


@workflow.defn
async def pay(how: str) -> str:
    """Branches on the business error, or lets it fail the run."""
    try:
        await workflow.execute_activity(how.removesuffix("!"), **OPTIONS)
    except ActivityError as error:
        if how.endswith("!"):
            raise
        business = error.cause.cause if isinstance(error.cause, TimeoutError) else None
        if isinstance(business, ApplicationError) and business.type == "Declined":
            return f"declined: {business.message}, {business.details[0]['reason']}"
        return f"not the business error: {error.cause!r}"
    return "paid"


def time_of(events: Sequence[HistoryEvent], kind: type[Any]) -> datetime:
    return next(event.event_time for event in events if isinstance(event.attributes, kind))


@pytest.mark.parametrize(("name", "attempts"), [("always_declined", 6), ("declined_then_hangs", 3)])
async def test_both_ways_have_one_shape(case: Case, name: str, attempts: int) -> None:
    """Tried: an activity that always raises ``Declined`` "card 42" (first wait 1 unit, doubling, 60 units in all), and
    one that does so twice and hangs in its third attempt until the deadline strikes. The workflow branches on the
    business error; another run lets the failure through to the client.

    Right: both are the same: an activity error with retry state TIMEOUT, whose cause is a timeout of kind
    SCHEDULE_TO_CLOSE that says why, whose cause is the last real failure with type, message, details. The number of
    attempts is in the history. The early end, at about half time, says that the next attempt would not fit; the
    hanging one ends when the deadline strikes, no earlier.
    """
    async with case.worker([pay], [always_declined, declined_then_hangs], graceful_shutdown_timeout=timedelta(0)):
        branching = await case.start(pay, name, id="branching")
        failing = await case.start(pay, name + "!", id="failing")
        assert await branching.result() == "declined: card 42, limit"
        with pytest.raises(WorkflowFailureError) as failed:
            await failing.result()
    for handle in (branching, failing):
        events = await events_of(handle)
        (started,) = attributes(events, ActivityTaskStarted)
        (timed_out,) = attributes(events, ActivityTaskTimedOut)
        assert started.attempt == attempts or (name == "always_declined" and 1 < started.attempt < attempts)
        assert timed_out.retry_state is RetryState.TIMEOUT
        assert started.last_failure is not None and started.last_failure.message == "card 42"
        lasted = time_of(events, ActivityTaskTimedOut) - time_of(events, ActivityTaskScheduled)
        assert (lasted < OVERALL) == (name == "always_declined")
    error = failed.value.cause
    assert isinstance(error, ActivityError)
    assert error.activity_type == name and error.retry_state is RetryState.TIMEOUT
    deadline = error.cause
    assert isinstance(deadline, TimeoutError)
    assert deadline.type is TimeoutType.SCHEDULE_TO_CLOSE
    assert "overall deadline" in deadline.message
    assert ("next attempt would start after" in deadline.message) == (name == "always_declined")
    business = deadline.cause
    assert isinstance(business, ApplicationError)
    assert (business.type, business.message, list(business.details)) == (
        "Declined",
        "card 42",
        [{"reason": "limit"}],
    )
