"""Activities that the worker runs beside the workflow task."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, TimeoutError

LONG = timedelta(seconds=30)
SHORT = timedelta(milliseconds=60)


class Tools:
    """Counts what it is asked to do, for the test."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.let_go = asyncio.Event()
        self.at_work = asyncio.Event()
        self.stopped = asyncio.Event()

    @activity.defn
    async def add(self, one: int, other: int) -> int:
        self.calls.append(f"add {one} {other}")
        return one + other

    @activity.defn
    def in_thread(self, text: str) -> str:
        assert activity.info().is_local
        activity.heartbeat("nobody hears it")
        return text.upper()

    @activity.defn
    async def flaky(self, failures: int) -> int:
        attempt = activity.info().attempt
        self.calls.append(f"flaky {attempt}")
        if attempt <= failures:
            raise ApplicationError("not yet", type="NotYet")
        return attempt

    @activity.defn
    async def held(self, text: str) -> str:
        self.calls.append(f"held {text}")
        self.at_work.set()
        try:
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return text

    @property
    def activities(self) -> list[object]:
        return [self.add, self.in_thread, self.flaky, self.held]


@workflow.defn
async def sums(numbers: list[int]) -> list[object]:
    """A sequence, then a pair, then one in a thread."""
    total = 0
    for number in numbers:
        total = await workflow.execute_local_activity_method(Tools.add, total, number, start_to_close_timeout=LONG)
    pair = await asyncio.gather(
        workflow.execute_local_activity("add", total, 1, start_to_close_timeout=LONG),
        workflow.execute_local_activity("add", total, 2, start_to_close_timeout=LONG),
    )
    text = await workflow.execute_local_activity("in_thread", "done", start_to_close_timeout=LONG, summary="shout")
    return [*pair, text]


@workflow.defn
async def mixes() -> list[int]:
    """Beside an activity of the queue, and behind it."""
    queued = workflow.start_activity("add", 1, 1, start_to_close_timeout=LONG)
    first = await workflow.execute_local_activity("add", 2, 2, start_to_close_timeout=LONG)
    second = await queued
    third = await workflow.execute_local_activity("add", first, second, start_to_close_timeout=LONG)
    await workflow.sleep(0.01)
    return [first, second, third, await workflow.execute_activity("add", third, 1, start_to_close_timeout=LONG)]


@workflow.defn
async def persists(failures: int, threshold: float, maximum: int) -> object:
    """Tried again: in process, or behind a timer."""
    try:
        return await workflow.execute_local_activity(
            "flaky",
            failures,
            start_to_close_timeout=LONG,
            local_retry_threshold=timedelta(seconds=threshold),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(milliseconds=20), backoff_coefficient=1.0, maximum_attempts=maximum
            ),
        )
    except ActivityError as error:
        return [str(error.cause), error.retry_state.name if error.retry_state else None, error.activity_type]


@workflow.defn
async def times_out(schedule_to_close: bool) -> str:
    limit = {"schedule_to_close_timeout" if schedule_to_close else "start_to_close_timeout": SHORT}
    try:
        await workflow.execute_local_activity(
            "held",
            "slow",
            retry_policy=RetryPolicy(maximum_attempts=1),
            **limit,  # type: ignore[misc]
        )
    except ActivityError as error:
        return error.cause.type.name if isinstance(error.cause, TimeoutError) and error.cause.type else str(error)
    return "in time"


@workflow.defn
class Cancels:
    """A local activity that is taken back at a signal."""

    def __init__(self) -> None:
        self.enough = False

    @workflow.signal
    def stop(self) -> None:
        self.enough = True

    @workflow.query
    def stopped(self) -> bool:
        return self.enough

    @workflow.run
    async def run(self, cancellation_type: int) -> list[object]:
        handle = workflow.start_local_activity(
            "held",
            "on",
            start_to_close_timeout=LONG,
            cancellation_type=workflow.ActivityCancellationType(cancellation_type),
        )
        await workflow.wait_condition(lambda: self.enough)
        handle.cancel()
        try:
            end: object = await handle
        except asyncio.CancelledError:
            end = "canceled"
        return [end, await workflow.execute_local_activity("add", 1, 1, start_to_close_timeout=LONG)]
