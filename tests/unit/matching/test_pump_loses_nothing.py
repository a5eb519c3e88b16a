"""Whatever processes, polls and queues do, each hint leads to a task at some process in the end: seeded disorder."""

import asyncio
import random
from collections.abc import Hashable, Sequence

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import WorkerInfo

from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.hints import encode_hint, message_of, read_hint
from stepwell_server.history.ports import WorkflowTaskRef
from stepwell_server.matching import queue_pump
from stepwell_server.matching.memory_queues import MemoryQueues
from stepwell_server.matching.ports import QueuesUnavailable, Received
from stepwell_server.matching.queue_pump import QueuePump
from stepwell_server.matching.service import Matching, QueueName

NAME = QueueName("default", "orders", TaskQueueKind.WORKFLOW)
HINTS = [WorkflowTaskRef(ExecutionKey("default", f"order-{number}"), "run", 1) for number in range(120)]


class Unreliable(MemoryQueues):
    """Fails before or after it did what was asked, and gives messages out twice."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(SystemClock(), partitions=2)
        self.rng = rng
        self.calm = False

    def _fail(self, share: float) -> None:
        if not self.calm and self.rng.random() < share:
            raise QueuesUnavailable("throttled")

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        self._fail(0.1)
        await super().send(queue, body, 0.0)
        if self.rng.random() < 0.1:
            await super().send(queue, body, 0.0)
        self._fail(0.1)

    async def receive(self, queue: QueueName, maximum: int, wait_seconds: int, lease_seconds: int) -> list[Received]:
        self._fail(0.1)
        received = await super().receive(queue, maximum, min(wait_seconds, 1), lease_seconds)
        self._fail(0.1)  # the answer is lost, and the messages come back when their leases end
        return received

    async def settle(self, received: Sequence[Received]) -> None:
        self._fail(0.1)
        await super().settle(received)


class Process:
    def __init__(self, queues: Unreliable, used: set[Hashable]) -> None:
        clock = SystemClock()
        self.queues = queues
        self.used = used
        self.matching = Matching(clock)
        self.pump = QueuePump(self.matching, queues, clock, read_hint, message_of)
        self.pump.start()

    async def poll(self, rng: random.Random, *, disturbed: bool) -> None:
        """One poll of a worker that may go away, whose answer may be lost, or whose start call may fail."""
        worker = WorkerInfo(identity="w", worker_key=str(rng.randrange(3)))
        polling = asyncio.ensure_future(self.matching.poll(NAME, worker, 0.2, maximum=4))
        if disturbed and rng.random() < 0.2:
            await asyncio.sleep(rng.random() * 0.02)
            polling.cancel()
        await asyncio.wait([polling])
        if polling.cancelled() or (first := polling.result()) is None:
            return
        for ref in [first, *self.matching.take_more(NAME, worker, 3)]:
            fate = rng.random() if disturbed else 1.0
            if fate < 0.15:
                self.matching.put_back(NAME, ref)  # its answer could not be sent
            elif fate < 0.25 and (NAME, ref) in self.pump._held:
                pass  # nobody does anything with it: its message comes back
            else:
                self.matching.used(NAME, ref)
                self.used.add(ref)

    async def offer(self, ref: WorkflowTaskRef, rng: random.Random) -> None:
        """As the dispatcher does; what cannot be sent is sent again by its deadline, here at once."""
        if rng.random() < 0.3:
            self.matching.offer(NAME, ref)
            return
        while True:
            try:
                await self.queues.send(NAME, encode_hint(ref))
                return
            except QueuesUnavailable:
                continue

    async def stop(self) -> None:
        self.matching.stop()
        await self.pump.stop()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_hint_leads_to_a_task_in_the_end(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_pump, "LEASE_SECONDS", 1)
    for name in ("_GRACE", "_FIRST_PAUSE", "_LAST_PAUSE"):
        monkeypatch.setattr(queue_pump, name, 0.02)
    rng = random.Random(seed)
    queues = Unreliable(rng)
    used: set[Hashable] = set()
    processes = [Process(queues, used) for _ in range(3)]
    waiting = list(HINTS)
    while waiting:
        process = rng.choice(processes)
        for ref in [waiting.pop() for _ in range(min(len(waiting), rng.randrange(1, 6)))]:
            await process.offer(ref, rng)
        await asyncio.gather(*(each.poll(rng, disturbed=True) for each in processes for _ in range(rng.randrange(3))))
        if rng.random() < 0.15:
            stopped = processes.pop(rng.randrange(len(processes)))
            queues.calm = True  # a stop that meets an outage leaves its own hints to their deadlines
            await stopped.stop()
            queues.calm = False
            processes.append(Process(queues, used))
    queues.calm = True
    async with asyncio.timeout(60):
        while len(used) < len(HINTS) or any(queue.messages for queue in queues._queues.values()):
            await asyncio.gather(*(process.poll(rng, disturbed=False) for process in processes))
    assert used == set(HINTS)
    for process in processes:
        await process.stop()
