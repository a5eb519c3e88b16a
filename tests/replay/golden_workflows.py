"""Workflows whose recorded histories are golden. Never edit one: what it recorded must replay for ever."""

import asyncio
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError

SHORT = timedelta(seconds=5)
ONCE = RetryPolicy(maximum_attempts=1)
QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=20), maximum_attempts=5)


@activity.defn
async def echo(value: str) -> str:
    return value


@activity.defn
async def flaky(value: str) -> str:
    if activity.info().attempt < 3:
        raise ApplicationError(f"attempt {activity.info().attempt} of {value}", type="Flaky")
    return value


@activity.defn
async def refuse(value: str) -> str:
    raise ApplicationError(f"{value} is refused", type="Refused", non_retryable=True)


@activity.defn
async def wait_to_be_cancelled(value: str) -> str:
    while True:
        activity.heartbeat(value)
        await asyncio.sleep(0.02)


ACTIVITIES = [echo, flaky, refuse, wait_to_be_cancelled]


@workflow.defn
async def golden_sequence(count: int) -> list[str]:
    return [
        await workflow.execute_activity(echo, f"step {number}", start_to_close_timeout=SHORT) for number in range(count)
    ]


@workflow.defn
async def golden_saga(value: str) -> str:
    await workflow.execute_activity(flaky, value, start_to_close_timeout=SHORT, retry_policy=QUICK)
    try:
        await workflow.execute_activity(refuse, value, start_to_close_timeout=SHORT)
    except ActivityError:
        return await workflow.execute_activity(echo, f"undone {value}", start_to_close_timeout=SHORT)
    return "not reached"


@workflow.defn
async def golden_fan_out(count: int) -> list[str]:
    calls = [workflow.execute_activity(echo, str(number), start_to_close_timeout=SHORT) for number in range(count)]
    first, *rest = await asyncio.gather(*calls)
    async with asyncio.TaskGroup() as group:
        last = group.create_task(workflow.execute_activity(echo, "last", start_to_close_timeout=SHORT))
        group.create_task(workflow.sleep(0.01))
    return [first, *rest, last.result()]


@workflow.defn
class GoldenMessages:
    def __init__(self) -> None:
        self.messages: list[str] = []

    @workflow.run
    async def run(self, wanted: int) -> list[str]:
        await workflow.wait_condition(lambda: len(self.messages) >= wanted)
        try:
            await workflow.wait_condition(lambda: len(self.messages) > wanted + 100, timeout=timedelta(seconds=0.02))
        except TimeoutError:
            self.messages.append("timed out")
        return self.messages

    @workflow.signal
    async def add(self, message: str) -> None:
        self.messages.append(await workflow.execute_activity(echo, message, start_to_close_timeout=SHORT))


@workflow.defn
async def golden_cancelled(value: str) -> str:
    try:
        await workflow.execute_activity(
            wait_to_be_cancelled,
            value,
            start_to_close_timeout=timedelta(minutes=1),
            heartbeat_timeout=SHORT,
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
    finally:
        await workflow.execute_activity(echo, "cleaned up", start_to_close_timeout=SHORT)
    return "not reached"


@workflow.defn
async def golden_values(_: str) -> list[str]:
    drawn = [workflow.uuid4().hex, str(workflow.random().randint(0, 1_000_000)), str(workflow.now())]
    if workflow.patched("golden"):
        drawn.append(await workflow.execute_activity(echo, drawn[0], start_to_close_timeout=SHORT))
    await workflow.sleep(0.01)
    return [*drawn, str(workflow.time())]


@workflow.defn
async def golden_race(value: str) -> str:
    slow = asyncio.create_task(workflow.sleep(600))
    quick = asyncio.create_task(workflow.execute_activity(echo, value, start_to_close_timeout=SHORT))
    done, pending = await workflow.wait([slow, quick], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return next(iter(done)).result()


@workflow.defn
async def golden_failed(value: str) -> str:
    return await workflow.execute_activity(refuse, value, start_to_close_timeout=SHORT, retry_policy=ONCE)


WORKFLOWS = [
    golden_sequence,
    golden_saga,
    golden_fan_out,
    GoldenMessages,
    golden_cancelled,
    golden_values,
    golden_race,
    golden_failed,
]
