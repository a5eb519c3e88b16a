"""A worker whose tasks wait in message queues: hints become tasks, and messages end when their tasks do.

The engine is the real one, living for one call at a time; the queues are lists in memory with the leases of SQS.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import ApiError, Unavailable
from stepwell.client import Client
from stepwell.transport.queue_fed import QueueFedTransport, Received
from stepwell.worker import Worker

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.frontend.refusals import api_error
from stepwell_server.frontend.routes import HANDLERS
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.hints import encode_hint
from tests.integration.engine.test_one_call import Functions


class LeasedQueue:
    """Messages of one queue: hidden for ``hold`` seconds when received, gone when deleted."""

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self._hidden: dict[str, float] = {}
        self._number = 0
        self._sent = asyncio.Event()

    def send(self, body: str) -> None:
        self._number += 1
        self.messages[str(self._number)] = body
        self._sent.set()

    def visible(self) -> list[Received]:
        now = asyncio.get_running_loop().time()
        return [Received(body, handle) for handle, body in self.messages.items() if self._hidden.get(handle, 0) <= now]

    async def receive(self, maximum: int, wait: float, hold: int) -> list[Received]:
        loop = asyncio.get_running_loop()
        ends = loop.time() + wait
        while not (found := self.visible()[:maximum]) and (left := ends - loop.time()) > 0:
            self._sent.clear()
            try:
                await asyncio.wait_for(self._sent.wait(), min(left, 0.1))
            except TimeoutError:
                continue
        for received in found:
            self._hidden[received.handle] = loop.time() + hold
        return found


class Queues:
    def __init__(self) -> None:
        self.by_address = {kind.value: LeasedQueue() for kind in TaskQueueKind}
        self.broken = False

    async def receive(self, queue: str, maximum: int, wait: float, hold: int) -> Sequence[Received]:
        if self.broken:
            raise Unavailable("throttled")
        return await self.by_address[queue].receive(maximum, wait, hold)

    async def delete(self, queue: str, handles: Sequence[str]) -> None:
        for handle in handles:
            self.by_address[queue].messages.pop(handle, None)

    async def close(self) -> None:
        return None

    def waiting(self) -> int:
        return sum(len(queue.messages) for queue in self.by_address.values())


class World(Functions):
    """Engines of one call, a feed that runs behind every write, and the queues it fills."""

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self.queues = Queues()
        self.repeats = 1
        self._done: dict[ExecutionKey, int] = {}
        world = self

        class Dispatcher(type(self.queue)):  # type: ignore[misc]
            async def offer_workflow_task(self, task_queue, ref, *rest, **more) -> None:
                world.send(TaskQueueKind.WORKFLOW, ref)

            async def offer_activity_task(self, task_queue, ref, *rest, **more) -> None:
                world.send(TaskQueueKind.ACTIVITY, ref)

            async def offer_query_task(self, task_queue, ref, *rest, **more) -> None:
                world.send(TaskQueueKind.WORKFLOW, ref)

        self.queue = Dispatcher()

    def send(self, kind: TaskQueueKind, ref: Any) -> None:
        for _ in range(self.repeats):
            self.queues.by_address[kind.value].send(encode_hint(ref))

    def engine(self):
        engine = super().engine()

        async def sources(name) -> Sequence[str]:
            return (name.kind.value,)

        engine._task_sources = sources
        return engine

    async def call(self, operation, request):
        """As the transport of clients and workers."""
        engine = self.engine()
        await engine.start()
        try:
            response = await HANDLERS[operation.name](engine, request)
            await engine.settle(5)
        except ApiError:
            raise
        except Exception as error:
            raise api_error(error, operation.name) from error
        finally:
            await engine.stop()
        await self.feed_all()
        return response

    async def feed_all(self) -> None:
        for key in (ExecutionKey("default", "order-1"),):
            while (commit := await self.backend.log.get(key, self._done.get(key, 0) + 1)) is not None:
                self._done[key] = commit.seq
                await self.calls.hand_on(commit)

    async def close(self) -> None:
        return None


@activity.defn
async def charge(amount: int) -> int:
    return amount + 1


@workflow.defn
class Order:
    def __init__(self) -> None:
        self.paid = 0

    @workflow.run
    async def run(self, amount: int) -> int:
        for _ in range(3):
            self.paid = await workflow.execute_activity(
                charge, self.paid + amount, start_to_close_timeout=timedelta(seconds=20)
            )
        await workflow.wait_condition(lambda: self.paid < 0)
        return -self.paid

    @workflow.signal
    def ship(self) -> None:
        self.paid = -self.paid

    @workflow.query
    def status(self) -> int:
        return self.paid


@pytest.fixture
async def world() -> AsyncIterator[World]:
    backend = embedded_backend(":memory:")
    yield World(backend)
    await backend.close()


def client_of(world: World) -> Client:
    return Client(QueueFedTransport(world, world.queues))  # type: ignore[arg-type]


@pytest.mark.parametrize("repeats", [1, 3])
async def test_an_order_runs_and_every_message_ends(world: World, repeats: int) -> None:
    world.repeats = repeats
    client = client_of(world)
    async with Worker(
        client,
        task_queue="orders",
        workflows=[Order],
        activities=[charge],
        max_eager_activity_reservations_per_workflow_task=0,
    ):
        handle = await client.start_workflow(Order.run, 1, id="order-1", task_queue="orders")
        async with asyncio.timeout(30):
            while await handle.query(Order.status) != 6:
                await asyncio.sleep(0.05)
            await handle.signal(Order.ship)
            assert await handle.result() == 6
            while world.queues.waiting():
                await asyncio.sleep(0.05)


async def test_a_shutdown_ends_open_receives_at_once(world: World) -> None:
    client = client_of(world)
    began = asyncio.get_running_loop().time()
    async with Worker(client, task_queue="orders", workflows=[Order], activities=[charge]):
        await asyncio.sleep(0.2)
    assert asyncio.get_running_loop().time() - began < 10  # a receive waits for 20 s


async def test_a_worker_lives_through_queues_that_are_away(world: World) -> None:
    client = client_of(world)
    world.queues.broken = True
    async with Worker(client, task_queue="orders", workflows=[Order], activities=[charge]):
        handle = await client.start_workflow(Order.run, 1, id="order-1", task_queue="orders")
        await asyncio.sleep(0.3)
        world.queues.broken = False
        async with asyncio.timeout(30):
            await handle.signal(Order.ship)
            while await handle.query(Order.status) == 0:
                await asyncio.sleep(0.05)


async def test_a_message_that_is_no_hint_is_dropped(world: World) -> None:
    client = client_of(world)
    for queue in world.queues.by_address.values():
        queue.send("hello")
    async with Worker(client, task_queue="orders", workflows=[Order], activities=[charge]):
        async with asyncio.timeout(20):
            while world.queues.waiting():
                await asyncio.sleep(0.05)
