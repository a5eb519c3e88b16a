"""WC-26: over the limit as a result, and as an argument. Continue-as-new counts as an argument."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.limits import MAX_PAYLOAD_BYTES
from stepwell.api.payloads import size_of
from stepwell.client import Client, RPCError
from stepwell.converter import DataConverter
from stepwell.exceptions import ActivityError
from stepwell.worker import Worker

from tests.support.cases_b import LIMIT, QUEUE, cache_on_and_off, engine, failing_task, kinds, served, within, worker

L = MAX_PAYLOAD_BYTES
_METADATA = size_of(DataConverter.default.payload_converter.to_payloads([b""]))

runs: list[int] = []
"""Attempts of the activities, by their number."""


def of_size(size: int) -> bytes:
    """A value whose payload, metadata included, has this many bytes."""
    value = b"x" * (size - _METADATA)
    assert size_of(DataConverter.default.payload_converter.to_payloads([value])) == size
    return value


@activity.defn
async def gives(size: int) -> bytes:
    runs.append(activity.info().attempt)
    return of_size(size)


@activity.defn
async def takes(value: bytes) -> int:
    runs.append(activity.info().attempt)
    return len(value)


@activity.defn
async def takes_ten(*values: bytes) -> int:
    runs.append(activity.info().attempt)
    return len(values)


@activity.defn
async def reports(size: int) -> str:
    """Reports progress of this size, and fails once so that the next attempt shows what arrived."""
    details = activity.info().heartbeat_details
    if details:
        return f"got {len(details[0]) + _METADATA}"
    try:
        activity.heartbeat(of_size(size))
    except ValueError as error:
        return f"refused: {error}"
    raise RuntimeError("once")


@workflow.defn
async def receives(size: int) -> str:
    try:
        value = await workflow.execute_activity(gives, size, start_to_close_timeout=LIMIT)
    except ActivityError as error:
        return f"{error.retry_state} {error.cause}"
    return f"got {len(value) + _METADATA}"


@workflow.defn
async def passes_on(size: int) -> int:
    return await workflow.execute_activity(takes, of_size(size), start_to_close_timeout=LIMIT) + _METADATA


@workflow.defn
async def passes_ten(size: int) -> int:
    return await workflow.execute_activity(takes_ten, args=[of_size(size)] * 10, start_to_close_timeout=LIMIT)


@workflow.defn
async def returns(size: int) -> bytes:
    return of_size(size)


@workflow.defn
async def passes_to_child(size: int) -> int:
    return await workflow.execute_child_workflow(measures, of_size(size)) + _METADATA


@workflow.defn
async def measures(value: bytes) -> int:
    return len(value)


@workflow.defn
async def passes_to_next_run(size: int) -> int:
    workflow.continue_as_new(of_size(size), workflow=measures)


@workflow.defn
async def receives_from_child(size: int) -> int:
    value = await workflow.execute_child_workflow(returns, size)
    return len(value) + _METADATA


@workflow.defn
async def makes_progress(size: int) -> str:
    return await workflow.execute_activity(reports, size, start_to_close_timeout=LIMIT)


@workflow.defn
class Holder:
    def __init__(self) -> None:
        self.value = b""

    @workflow.run
    async def run(self, value: bytes) -> int:
        await workflow.wait_condition(lambda: bool(self.value))
        return len(value) + len(self.value)

    @workflow.signal
    def keep(self, value: bytes) -> None:
        self.value = value

    @workflow.update
    def change(self, value: bytes) -> bytes:
        return value

    @workflow.update
    async def grow(self, size: int) -> bytes:
        return of_size(size)

    @workflow.query
    def ask(self, value: bytes) -> bytes:
        return value


WORKFLOWS = [
    receives,
    passes_on,
    passes_ten,
    returns,
    passes_to_child,
    passes_to_next_run,
    measures,
    receives_from_child,
    makes_progress,
    Holder,
]
ACTIVITIES = [gives, takes, takes_ten, reports]


def _worker(client: Client, cache: int = 1000, task_queue: str = QUEUE) -> Worker:
    runs.clear()
    return worker(client, WORKFLOWS, ACTIVITIES, cache, task_queue=task_queue)


async def _exactly_the_limit(client: Client) -> None:
    """Everything with exactly L."""

    async def run(flow: Any, size: int, task_queue: str = QUEUE) -> Any:
        return await within(20, client.execute_workflow(flow, size, id=flow.__name__, task_queue=task_queue))

    assert await run(receives, L) == f"got {L}"
    assert await run(passes_on, L) == L
    assert await run(passes_ten, L // 10) == 10
    assert len(await run(returns, L)) == L - _METADATA
    assert await run(passes_to_child, L) == L
    assert await run(passes_to_next_run, L) + _METADATA == L
    assert await run(receives_from_child, L) == L
    assert await run(makes_progress, L) == f"got {L}"
    value, memo = of_size(L), of_size(L - 1)  # a memo's names count as well
    handle = await client.start_workflow(Holder.run, value, id="holder", task_queue=QUEUE, memo={"m": memo})
    assert await within(20, handle.query(Holder.ask, value)) == value
    assert await (await handle.describe()).memo() == {"m": memo}
    assert await within(20, handle.execute_update(Holder.change, value)) == value
    await handle.signal(Holder.keep, value)
    assert await within(20, handle.result()) == 2 * len(value)


@cache_on_and_off
async def test_exactly_the_limit_passes_everywhere(tmp_path: Path, cache: int) -> None:
    """Activity result and argument, ten arguments that are L together, a child's argument and result, the next run's
    argument, workflow result, heartbeat, start argument, memo, signal, query and its answer: each of exactly L bytes,
    in process."""
    async with engine(tmp_path) as client, _worker(client, cache):
        await _exactly_the_limit(client)


async def test_exactly_the_limit_passes_over_http() -> None:
    """The same through a server."""
    async with served() as client, _worker(client):
        await _exactly_the_limit(client)


@cache_on_and_off
async def test_an_activity_result_over_the_limit(tmp_path: Path, cache: int) -> None:
    """L+1 bytes under the default retry policy: the activity runs once and fails for good, naming size and limit, where
    the workflow can catch it."""
    async with engine(tmp_path) as client, _worker(client, cache):
        said = await within(20, client.execute_workflow(receives, L + 1, id="over", task_queue=QUEUE))
        assert said.startswith("NON_RETRYABLE_FAILURE PayloadTooLarge")
        assert f"{L + 1} bytes" in said and f"limit is {L}" in said
        await asyncio.sleep(0.3)
        assert runs == [1]


async def _over_in_workflow_code(client: Client, flow: Any, size: int, named: int, cache: int) -> None:
    """The task fails visibly and with growing pauses, nothing is scheduled, and fixed code ends it."""
    name = f"{flow.__name__}-{cache}"

    @workflow.defn(name=flow.__name__)
    async def fixed(size: int) -> bytes:
        return b"small"

    async with _worker(client, cache, name):
        handle = await client.start_workflow(flow, size, id=name, task_queue=name)
        pending = await failing_task(handle, attempt=4)
        assert pending.last_cause == "PAYLOADS_TOO_LARGE"
        assert pending.last_failure is not None
        assert f"{named} bytes" in pending.last_failure.message and f"limit is {L}" in pending.last_failure.message
        assert pending.next_attempt_time is not None
        assert (pending.next_attempt_time - pending.scheduled_time).total_seconds() == 5
        found = await kinds(handle)
        assert found.count("WorkflowTaskFailed") == 1 and "ActivityTaskScheduled" not in found
        assert "StartChildWorkflowExecutionInitiated" not in found and "WorkflowExecutionContinuedAsNew" not in found
    async with worker(client, [fixed], cache=cache, task_queue=name):
        assert await within(30, client.get_workflow_handle(name).result()) == b"small"


async def test_over_the_limit_from_workflow_code(tmp_path: Path) -> None:
    """An activity's argument, ten arguments of L/5, a child's argument, the next run's and the workflow's result over
    the limit, with and without cache."""
    ten = 10 * (L // 5)
    async with engine(tmp_path) as client:
        await asyncio.gather(
            *(
                _over_in_workflow_code(client, flow, size, named, cache)
                for flow, size, named in (
                    (passes_on, L + 1, L + 1),
                    (passes_ten, L // 5, ten),
                    (passes_to_child, L + 1, L + 1),
                    (passes_to_next_run, L + 1, L + 1),
                    (returns, L + 1, L + 1),
                )
                for cache in (1000, 0)
            )
        )
    assert runs == []


async def test_a_heartbeat_over_the_limit(tmp_path: Path) -> None:
    """Raised where it is called, naming size and limit."""
    async with engine(tmp_path) as client, _worker(client):
        said = await within(20, client.execute_workflow(makes_progress, L + 1, id="over", task_queue=QUEUE))
        assert said.startswith("refused") and f"{L + 1} bytes" in said and f"limit is {L}" in said


@pytest.mark.parametrize("over_http", [False, True])
async def test_client_calls_over_the_limit_are_refused_at_once(tmp_path: Path, over_http: bool) -> None:
    """Start argument, memo, signal and query of L+1 bytes: refused with size and limit, and nothing is written."""
    over = of_size(L + 1)
    async with _client(tmp_path, over_http) as client, _worker(client):
        handle = await client.start_workflow(Holder.run, b"", id="holder", task_queue=QUEUE)
        for send in (
            client.start_workflow(Holder.run, over, id="never", task_queue=QUEUE),
            client.start_workflow(Holder.run, b"", id="never", task_queue=QUEUE, memo={"m": of_size(L)}),
            handle.signal(Holder.keep, over),
            handle.query(Holder.ask, over),
        ):
            with pytest.raises(RPCError) as caught:
                await within(5, send)
            assert caught.value.code == "PAYLOAD_TOO_LARGE" and not caught.value.retryable
            assert f"{L + 1} bytes" in caught.value.message and f"limit is {L}" in caught.value.message
        assert [found.id async for found in client.list_workflows()] == ["holder"]
        assert "WorkflowExecutionSignaled" not in await kinds(handle)
        await handle.signal(Holder.keep, b"fine")
        assert await within(10, handle.result()) == 4


def _client(folder: Path, over_http: bool) -> AbstractAsyncContextManager[Client]:
    return served() if over_http else engine(folder)


async def test_updates_over_the_limit(tmp_path: Path) -> None:
    """An argument of L + 1 is refused at the call. A handler's result of L + 1 is a bug of the workflow: the caller is
    told promptly that its task keeps failing, with size and limit, and the run goes on behind it once it is mended."""
    async with engine(tmp_path) as client, _worker(client):
        handle = await client.start_workflow(Holder.run, b"", id="holder", task_queue=QUEUE)
        with pytest.raises(RPCError, match=f"{L + 1} bytes, the limit is {L}"):
            await within(20, handle.execute_update(Holder.change, of_size(L + 1)))
        assert await within(20, handle.execute_update(Holder.grow, L)) == of_size(L)
        with pytest.raises(
            RPCError, match=f"keeps failing .*outcome of update 'u' has {L + 1} bytes, the limit is {L}"
        ):
            await within(20, handle.execute_update(Holder.grow, L + 1, id="u"))
