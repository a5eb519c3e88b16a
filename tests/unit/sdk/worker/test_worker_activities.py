"""Activities on a real worker and a real engine in memory: heartbeats, cancellation, timeouts, shutdown, processes."""

import asyncio
import concurrent.futures
import logging
import multiprocessing
import threading
import time
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.client import Client, WorkflowFailureError
from stepwell.common import RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError
from stepwell.testing import DevEnvironment
from stepwell.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor, Worker

FAST = RetryPolicy(initial_interval=timedelta(milliseconds=20))
ONCE = RetryPolicy(maximum_attempts=1)


@pytest.fixture
async def client():
    async with await DevEnvironment.start() as env:
        yield env.client


def caller(fn, **options):
    """A workflow that calls one activity with these options."""
    options.setdefault("start_to_close_timeout", timedelta(seconds=20))

    @workflow.defn(name="caller")
    async def call() -> object:
        return await workflow.execute_activity(fn, **options)

    return call


async def run(client: Client, fn, *, worker: dict | None = None, **options) -> object:
    flow = caller(fn, **options)
    async with Worker(client, task_queue="q", workflows=[flow], activities=[fn], **(worker or {})):
        return await asyncio.wait_for(client.execute_workflow(flow, id="w", task_queue="q"), 20)


async def test_info_and_idempotency_key(client: Client) -> None:
    seen: list[activity.Info] = []

    @activity.defn
    async def look() -> None:
        seen.append(activity.info())
        if activity.info().attempt == 1:
            raise RuntimeError("again")

    await run(client, look, retry_policy=FAST)
    first, second = seen
    assert (first.attempt, second.attempt) == (1, 2)
    assert first.idempotency_key == second.idempotency_key
    assert first.idempotency_key == f"w/{first.workflow_run_id}/{first.activity_id}"
    assert (first.workflow_type, first.task_queue, first.workflow_namespace) == ("caller", "q", "default")


@pytest.mark.parametrize("threaded", [False, True])
async def test_last_heartbeat_survives_a_failure(client: Client, threaded: bool) -> None:
    """WC-07: the throttle sends the first of fifty, and the next attempt gets the last."""

    def body() -> int:
        if activity.info().attempt == 1:
            for progress in range(1, 51):
                activity.heartbeat(progress)
            raise RuntimeError("again")
        return activity.info().heartbeat_details[0]

    @activity.defn
    def in_thread() -> int:
        return body()

    @activity.defn
    async def on_loop() -> int:
        return body()

    fn = in_thread if threaded else on_loop
    assert await run(client, fn, heartbeat_timeout=timedelta(seconds=30), retry_policy=FAST) == 50


async def test_cancellation_by_heartbeat(client: Client) -> None:
    started = asyncio.Event()

    @activity.defn
    async def wait() -> str:
        started.set()
        while True:
            activity.heartbeat("alive")
            await asyncio.sleep(0.02)

    flow = caller(wait, heartbeat_timeout=timedelta(milliseconds=500))
    async with Worker(client, task_queue="q", workflows=[flow], activities=[wait]):
        handle = await client.start_workflow(flow, id="w", task_queue="q")
        await asyncio.wait_for(started.wait(), 30)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 30)
    assert isinstance(caught.value.cause, CancelledError)


async def test_cancel_of_a_leased_activity_is_immediate(client: Client) -> None:
    """No heartbeat is needed, since the workflow's cancel command passes through the worker that runs the activity."""
    started, stopped = asyncio.Event(), asyncio.Event()

    @activity.defn
    async def wait() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            assert details is not None and details.cancel_requested and activity.is_cancelled()
            stopped.set()
            raise

    flow = caller(wait)
    async with Worker(client, task_queue="q", workflows=[flow], activities=[wait]):
        handle = await client.start_workflow(flow, id="w", task_queue="q")
        await asyncio.wait_for(started.wait(), 30)
        await handle.cancel()
        await asyncio.wait_for(stopped.wait(), 30)
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 30)


async def test_thread_is_interrupted_but_not_in_its_shield(client: Client) -> None:
    started = threading.Event()
    shielded: list[bool] = []

    @activity.defn
    def wait() -> None:
        with activity.shield_thread_cancel_exception():
            started.set()
            activity.wait_for_cancelled_sync(10)
            shielded.append(activity.is_cancelled())
        time.sleep(10)

    flow = caller(wait)
    async with Worker(client, task_queue="q", workflows=[flow], activities=[wait]):
        handle = await client.start_workflow(flow, id="w", task_queue="q")
        await asyncio.get_running_loop().run_in_executor(None, started.wait, 5)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 30)
    assert shielded == [True]


async def test_start_to_close_cancels_the_attempt_here(client: Client) -> None:
    ended: list[activity.ActivityCancellationDetails | None] = []

    @activity.defn
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append(activity.cancellation_details())
            raise

    with pytest.raises(WorkflowFailureError) as caught:
        await run(client, slow, start_to_close_timeout=timedelta(milliseconds=200), retry_policy=ONCE)
    error = caught.value.cause
    assert isinstance(error, ActivityError) and isinstance(error.cause, TimeoutError)
    assert [details.timed_out for details in ended if details] == [True]


async def test_oversize_result_is_not_tried_again(client: Client) -> None:
    attempts: list[int] = []

    @activity.defn
    async def big() -> bytes:
        attempts.append(activity.info().attempt)
        return b"x" * (2 * 1024 * 1024 + 1)

    with pytest.raises(WorkflowFailureError) as caught:
        await run(client, big)
    assert isinstance(caught.value.cause, ActivityError) and "limit is 2097152" in str(caught.value.cause.cause)
    assert attempts == [1]


async def test_oversize_failure_details_are_dropped_and_the_failure_arrives(client: Client) -> None:
    @activity.defn
    async def talkative() -> None:
        raise ApplicationError("short", "x" * 9_000_000, type="Talkative", non_retryable=True)

    with pytest.raises(WorkflowFailureError) as caught:
        await run(client, talkative)
    cause = caught.value.cause.cause
    assert isinstance(cause, ApplicationError) and cause.type == "Talkative" and not cause.details
    assert "short [details and causes dropped: 9000" in cause.message


async def test_exactly_the_limit_passes(client: Client) -> None:
    @activity.defn
    async def big() -> bytes:
        return b"x" * (2 * 1024 * 1024 - len("encoding") - len("binary/plain"))

    assert len(await run(client, big)) > 2_000_000


async def test_wrong_argument_fails_the_activity_and_names_it(client: Client) -> None:
    @activity.defn(name="take")
    async def take(number: int) -> int:
        return number

    @workflow.defn(name="caller")
    async def call() -> None:
        await workflow.execute_activity("take", "text", start_to_close_timeout=timedelta(seconds=5), retry_policy=ONCE)

    async with Worker(client, task_queue="q", workflows=[call], activities=[take]):
        with pytest.raises(WorkflowFailureError) as caught:
            await client.execute_workflow(call, id="w", task_queue="q")
    assert "number" in str(caught.value.cause.cause)


async def test_unregistered_activity_is_left_to_others(client: Client) -> None:
    @activity.defn
    async def known() -> str:
        return "known"

    @activity.defn
    async def elsewhere() -> str:
        return "elsewhere"

    flow = caller(elsewhere, retry_policy=FAST)
    async with (
        Worker(client, task_queue="q", workflows=[flow], activities=[known]),
        Worker(client, task_queue="q", activities=[elsewhere, known]),
    ):
        result = await asyncio.wait_for(client.execute_workflow(flow, id="w", task_queue="q"), 30)
    assert result == "elsewhere"


async def test_shutdown_within_the_grace_time_lets_it_finish(client: Client) -> None:
    """WC-32 (a)."""
    started = asyncio.Event()

    @activity.defn
    async def work() -> int:
        started.set()
        await activity.wait_for_worker_shutdown()
        await asyncio.sleep(0.2)
        return activity.info().attempt

    flow = caller(work)
    async with Worker(client, task_queue="q", workflows=[flow], activities=[work]):
        handle = await client.start_workflow(flow, id="w", task_queue="q")
        await asyncio.wait_for(started.wait(), 30)
    async with Worker(client, task_queue="q", workflows=[flow], activities=[work]):
        assert await asyncio.wait_for(handle.result(), 30) == 1


@pytest.mark.parametrize("threaded", [False, True])
async def test_shutdown_behind_the_grace_time_hands_it_on(client: Client, threaded: bool, caplog) -> None:
    """WC-32 (b): reported at once, attempt 2 starts on another worker."""
    started, stopped = threading.Event(), threading.Event()

    @activity.defn(name="work")
    async def on_loop() -> int:
        started.set()
        if activity.info().attempt == 1:
            await asyncio.sleep(60)
        return activity.info().attempt

    @activity.defn(name="work")
    def in_thread() -> int:
        started.set()
        if activity.info().attempt == 1:
            stopped.wait(60)
        return activity.info().attempt

    fn = in_thread if threaded else on_loop
    flow = caller(fn, retry_policy=RetryPolicy(initial_interval=timedelta(seconds=60)))
    grace = timedelta(milliseconds=100)
    with caplog.at_level(logging.ERROR):
        first = Worker(client, task_queue="q", workflows=[flow], activities=[fn], graceful_shutdown_timeout=grace)
        async with first:
            handle = await client.start_workflow(flow, id="w", task_queue="q")
            await asyncio.get_running_loop().run_in_executor(None, started.wait, 30)
        stopped.set()  # only now: the worker did not wait for its thread
        async with Worker(client, task_queue="q", workflows=[flow], activities=[fn]):
            assert await asyncio.wait_for(handle.result(), 30) == 2
    assert caplog.records == []


async def test_a_stopped_worker_takes_nothing_more(client: Client) -> None:
    @activity.defn
    async def quick() -> None:
        await asyncio.sleep(0.001)

    flow = caller(quick)
    stop = asyncio.Event()

    async def come_and_go() -> None:
        while not stop.is_set():
            async with Worker(client, task_queue="q", workflows=[flow], activities=[quick]):
                await asyncio.sleep(0.05)

    hosts = [asyncio.create_task(come_and_go()) for _ in range(2)]
    calls = [client.execute_workflow(flow, id=f"w{i}", task_queue="q") for i in range(100)]
    await asyncio.wait_for(asyncio.gather(*calls), 30)
    stop.set()
    await asyncio.gather(*hosts)


class _Doubling(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> object:
        return await self.next.execute_activity(input) * 2


class _Doubled(Interceptor):
    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        return _Doubling(next)


async def test_interceptor_wraps_attempts(client: Client) -> None:
    @activity.defn
    async def one() -> int:
        return 1

    assert await run(client, one, worker={"interceptors": [_Doubled()]}) == 2


async def test_context_does_not_leak_between_activities(client: Client) -> None:
    import contextvars

    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="clean")

    @activity.defn
    async def dirty() -> str:
        before = mark.get()
        mark.set("dirty")
        return before

    @workflow.defn(name="caller")
    async def call() -> list[str]:
        return [await workflow.execute_activity(dirty, start_to_close_timeout=timedelta(seconds=5)) for _ in range(3)]

    async with Worker(client, task_queue="q", workflows=[call], activities=[dirty]):
        assert await client.execute_workflow(call, id="w", task_queue="q") == ["clean"] * 3


async def test_benign_failures_are_quiet(client: Client, caplog) -> None:
    from stepwell.exceptions import ApplicationErrorCategory

    @activity.defn
    async def expected() -> None:
        raise ApplicationError("no news", non_retryable=True, category=ApplicationErrorCategory.BENIGN)

    with caplog.at_level(logging.INFO, "stepwell.activity"), pytest.raises(WorkflowFailureError):
        await run(client, expected)
    assert [record for record in caplog.records if record.name == "stepwell.activity"] == []


@activity.defn
def in_process(number: int) -> tuple[int, bool]:
    for progress in range(20):
        activity.heartbeat(progress)
    if activity.info().attempt == 1:
        raise KeyError("again")
    return number + activity.info().heartbeat_details[0], activity.is_cancelled()


async def test_process_pool_with_heartbeats(client: Client) -> None:
    @workflow.defn(name="caller")
    async def call() -> tuple[int, bool]:
        return await workflow.execute_activity(
            in_process,
            1,
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=timedelta(seconds=30),
            retry_policy=FAST,
        )

    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        async with Worker(client, task_queue="q", workflows=[call], activities=[in_process], activity_executor=pool):
            result = await asyncio.wait_for(client.execute_workflow(call, id="w", task_queue="q"), 30)
    assert result == (20, False)


async def test_an_exception_without_text_is_reported_all_the_same(client: Client, caplog) -> None:
    """WC-24: its ``str`` raises, which must not keep the outcome from the engine."""

    class Speechless(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @activity.defn
    async def fails() -> None:
        raise Speechless

    with pytest.raises(WorkflowFailureError) as caught:
        await run(client, fails, retry_policy=ONCE)
    assert isinstance(caught.value.cause, ActivityError) and isinstance(caught.value.cause.cause, ApplicationError)
    assert caught.value.cause.cause.type == "Speechless"
    assert "Activity fails failed (workflow w, attempt 1): Speechless: <str() of Speechless failed" in caplog.text
