"""Waiting: for time, and for conditions."""

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ..api.limits import MAX_DURATION
from ..replay.runtime import WorkflowRuntime, current_runtime
from .summaries import user_metadata

_MAX_DAYS = MAX_DURATION.days


async def sleep(duration: float | timedelta, *, summary: str | None = None) -> None:
    """Wait, durably. Seconds or a timedelta; zero and below return at once, without a timer (WC-13). Raises
    :class:`NotInWorkflowError` outside of workflow code.

    ``summary`` is for people who read the history, at most 400 bytes (TM-06).
    """
    await _sleep(current_runtime(), seconds_of(duration), summary)


async def sleep_until(instant: datetime, *, summary: str | None = None) -> None:
    """Wait, durably, until a moment of any time zone; one that has passed returns at once, without a timer (TM-04).

    The moment is fixed when this is called: of two that a change of the clock makes look alike, ``instant.fold`` says
    which one is meant. Raises ``ValueError`` for one without a time zone.
    """
    runtime = current_runtime()
    if instant.utcoffset() is None:
        raise ValueError(f"{instant.isoformat()} has no time zone; add one, such as tzinfo=datetime.UTC")
    await _sleep(runtime, (instant.astimezone(UTC) - runtime.now).total_seconds(), summary)


async def _sleep(runtime: WorkflowRuntime, seconds: float, summary: str | None) -> None:
    metadata = user_metadata(runtime, "sleep", summary)
    if seconds > 0:
        runtime.next_timer_metadata = metadata
    await asyncio.sleep(seconds)


async def wait_condition(
    fn: Callable[[], bool], *, timeout: timedelta | float | None = None, timeout_summary: str | None = None
) -> None:
    """Wait until ``fn()`` is true; it is asked again whenever the workflow's code has nothing left to run (PM-13).

    ``timeout`` (seconds or a timedelta) is a durable timer; raises ``asyncio.TimeoutError`` when it ends first. With
    a timeout of zero or less the condition is asked once. ``timeout_summary`` is for people who read the history.
    """
    if not callable(fn):
        raise TypeError(
            f"wait_condition: fn must be a function that is asked again and again, not {fn!r}; "
            "such as lambda: self.done"
        )
    if fn():
        return
    runtime = current_runtime()
    runtime.refuse_in_query("waiting for a condition")
    if timeout is None:
        await runtime.add_condition(fn)
        return
    seconds = seconds_of(timeout)
    if seconds <= 0:
        raise TimeoutError("the condition is not true and the timeout is zero")
    metadata = user_metadata(runtime, "wait_condition", timeout_summary)
    future = runtime.add_condition(fn)
    runtime.next_timer_metadata = metadata
    timer = runtime.loop.call_later(seconds, _expire, future, fn)
    try:
        await future
    finally:
        timer.cancel()


def _expire(future: "asyncio.Future[None]", fn: Callable[[], bool]) -> None:
    if future.done():
        return
    if fn():
        future.set_result(None)
    else:
        future.set_exception(TimeoutError("timed out waiting for a condition"))


def seconds_of(duration: float | timedelta) -> float:
    """Seconds as a float. Raises ``ValueError`` for infinity and for what is not a number."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    if not math.isfinite(duration):
        raise ValueError(f"{duration} s is no time to wait; give seconds, or a timedelta of at most {_MAX_DAYS} days")
    return duration
