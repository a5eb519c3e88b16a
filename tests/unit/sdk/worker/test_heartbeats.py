"""How far apart heartbeats are sent (AC-08)."""

import asyncio
import inspect
from datetime import timedelta

import pytest
from stepwell import activity, workflow
from stepwell.api.operations import RECORD_ACTIVITY_HEARTBEAT, Operation
from stepwell.api.requests import RecordActivityHeartbeatRequest
from stepwell.client import Client
from stepwell.testing import DevEnvironment
from stepwell.transport import Transport
from stepwell.worker import Worker
from stepwell.worker.heartbeats import HeartbeatPolicy


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(None, 30), (1, 0.8), (10, 8), (60, 48), (75, 60), (3600, 60)],
)
def test_the_workers_defaults(timeout: float | None, seconds: float) -> None:
    defaults = inspect.signature(Worker).parameters
    policy = HeartbeatPolicy(
        defaults["max_heartbeat_throttle_interval"].default, defaults["default_heartbeat_throttle_interval"].default
    )
    assert policy.interval(None if timeout is None else timedelta(seconds=timeout)) == pytest.approx(seconds)


class Listening:
    """A transport that notes which heartbeats are sent, and when."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.sent: list[tuple[float, bytes]] = []

    async def call(self, operation: Operation, request: object) -> object:
        if operation.name == RECORD_ACTIVITY_HEARTBEAT.name:
            assert isinstance(request, RecordActivityHeartbeatRequest)
            self.sent.append((asyncio.get_running_loop().time(), request.details[0].data))
        return await self._transport.call(operation, request)

    async def close(self) -> None:
        await self._transport.close()


async def test_the_first_at_once_and_the_newest_behind_the_interval() -> None:
    second = asyncio.Event()

    @activity.defn
    async def busy() -> None:
        for number in range(100):
            activity.heartbeat(number)
        while len(listening.sent) < 2:
            await asyncio.sleep(0.01)
        second.set()

    @workflow.defn
    async def calls() -> None:
        limits = {"start_to_close_timeout": timedelta(seconds=30), "heartbeat_timeout": timedelta(seconds=1)}
        await workflow.execute_activity(busy, **limits)

    async with await DevEnvironment.start() as env:
        listening = Listening(env.client.transport)
        client = Client(listening)
        async with Worker(client, task_queue="q", workflows=[calls], activities=[busy]):
            await asyncio.wait_for(client.execute_workflow(calls, id="w", task_queue="q"), 20)
    assert second.is_set()
    (first_at, first), (second_at, newest) = listening.sent
    assert (first, newest) == (b"0", b"99")
    assert second_at - first_at >= 0.79
