"""The pump between task queues outside and the pollers of this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from stepwell.api.common import Priority
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
ONE = WorkerInfo(identity="one", worker_key="key one")


def ref(workflow_id: str) -> WorkflowTaskRef:
    return WorkflowTaskRef(ExecutionKey("default", workflow_id), "run", 1)


def hint(workflow_id: str) -> str:
    return encode_hint(ref(workflow_id))


class Faulty(MemoryQueues):
    """Refuses as often as it is told to."""

    refuse_sends = 0
    refuse_receives = 0
    refuse_settles = 0

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        if self.refuse_sends:
            self.refuse_sends -= 1
            raise QueuesUnavailable("throttled")
        await super().send(queue, body, delay_seconds, fairness_key)

    async def receive(self, queue: QueueName, maximum: int, wait_seconds: int, lease_seconds: int) -> list[Received]:
        if self.refuse_receives:
            self.refuse_receives -= 1
            raise QueuesUnavailable("throttled")
        return await super().receive(queue, maximum, wait_seconds, lease_seconds)

    async def settle(self, received: Sequence[Received]) -> None:
        if self.refuse_settles:
            self.refuse_settles -= 1
            raise QueuesUnavailable("throttled")
        await super().settle(received)


class Process:
    """One container: matching and its pump over queues that others share."""

    def __init__(self, queues: MemoryQueues) -> None:
        self.clock = SystemClock()
        self.queues = queues
        self.matching = Matching(self.clock)
        self.pump = QueuePump(self.matching, queues, self.clock, read_hint, message_of)
        self.pump.start()

    async def take(self, timeout: float = 5.0, maximum: int = 1) -> list[str]:
        """Workflow ids of the hints that a poll gets, all of which lead to tasks."""
        first = await self.matching.poll(NAME, ONE, timeout, maximum=maximum)
        if first is None:
            return []
        taken = [first, *self.matching.take_more(NAME, ONE, maximum - 1)]
        for one in taken:
            self.matching.used(NAME, one)
        return [one.key.workflow_id for one in taken]  # type: ignore[attr-defined]

    async def stop(self) -> None:
        self.matching.stop()
        await self.pump.stop()


@pytest.fixture
def queues() -> Faulty:
    return Faulty(SystemClock())


@pytest.fixture
async def process(queues: Faulty, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    monkeypatch.setattr(queue_pump, "_GRACE", 0.02)
    monkeypatch.setattr(queue_pump, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(queue_pump, "_LAST_PAUSE", 0.05)
    process = Process(queues)
    yield process
    await process.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def waiting(queues: MemoryQueues) -> int:
    return sum(len(queue.messages) for queue in queues._queues.values())


async def test_a_poll_gets_what_waits_in_the_queue_and_the_message_is_settled(process: Process, queues: Faulty) -> None:
    await queues.send(NAME, hint("a"))
    assert await process.take() == ["a"]
    await until(lambda: waiting(queues) == 0)


async def test_a_message_that_comes_while_a_poll_waits(process: Process, queues: Faulty) -> None:
    poll = asyncio.ensure_future(process.take())
    await asyncio.sleep(0.02)
    await queues.send(NAME, hint("a"))
    assert await poll == ["a"]


async def test_nothing_is_received_while_nobody_polls(process: Process, queues: Faulty) -> None:
    assert await process.take(timeout=0.02) == []
    await until(lambda: not process.matching.has_waiting_poller(NAME))
    await queues.send(NAME, hint("a"))
    await queues.send(NAME, hint("b"))
    await until(lambda: len(process.pump._held) == 0 and bool(queues._queues))
    other = Process(queues)
    assert sorted([*await other.take(), *await other.take()]) == ["a", "b"]
    await other.stop()


async def test_no_more_is_received_than_polls_can_take(process: Process, queues: Faulty) -> None:
    for number in range(8):
        await queues.send(NAME, hint(str(number)))
    assert len(await process.take(maximum=3)) == 3
    assert await queues.pending(NAME) == 5
    assert len(await process.take()) == 1
    assert await queues.pending(NAME) == 4


async def test_a_hint_whose_poll_went_away_comes_back_at_once(process: Process, queues: Faulty) -> None:
    await queues.send(NAME, hint("a"))
    taken = await process.matching.poll(NAME, ONE, 5.0)
    assert taken is not None and await queues.pending(NAME) == 0
    process.matching.put_back(NAME, taken)  # its answer could not be sent
    async with asyncio.timeout(5):  # not only when the lease ends
        while not await queues.pending(NAME):
            await asyncio.sleep(0.005)
    other = Process(queues)
    assert await other.take() == ["a"]
    await other.stop()


async def test_a_hint_of_this_process_that_nobody_takes_goes_to_the_queue_with_its_priority(
    process: Process, queues: Faulty
) -> None:
    priority = Priority(priority_key=2, fairness_key="tenant")
    process.matching.offer(NAME, ref("a"), priority=priority)
    await until(lambda: waiting(queues) == 1)
    assert process.matching.backlog(NAME) == 0
    (received,) = await queues.receive(NAME, 10, 1, 60)
    assert read_hint(received.body) == (ref("a"), priority)


async def test_what_is_of_this_process_alone_stays(process: Process, queues: Faulty) -> None:
    process.matching.offer(NAME, "no work")
    await asyncio.sleep(0.1)
    assert waiting(queues) == 0 and await process.matching.poll(NAME, ONE, 0.0) == "no work"


async def test_a_hint_that_cannot_be_sent_stays_and_is_sent_later(process: Process, queues: Faulty) -> None:
    queues.refuse_sends = 2
    process.matching.offer(NAME, ref("a"))
    await until(lambda: queues.refuse_sends == 0 and waiting(queues) == 1)
    assert process.matching.backlog(NAME) == 0


async def test_throttled_receives_are_tried_again(process: Process, queues: Faulty) -> None:
    queues.refuse_receives = 4
    await queues.send(NAME, hint("a"))
    assert await process.take() == ["a"]


async def test_a_message_that_could_not_be_settled_comes_back_and_is_settled_then(
    queues: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_pump, "LEASE_SECONDS", 1)
    queues.refuse_settles = 1
    process = Process(queues)
    await queues.send(NAME, hint("a"))
    assert await process.take() == ["a"]
    assert await process.take() == ["a"], "the start call finds it out of date"
    await until(lambda: waiting(queues) == 0)
    await process.stop()


async def test_the_same_hint_twice_is_offered_once_and_both_messages_are_settled(
    process: Process, queues: Faulty
) -> None:
    await queues.send(NAME, hint("a"))
    await queues.send(NAME, hint("a"))
    assert await process.take(maximum=2) == ["a"]
    await until(lambda: waiting(queues) == 0)


async def test_a_process_that_dies_with_a_message_leaves_it_to_its_lease(
    queues: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_pump, "LEASE_SECONDS", 1)
    dies, lives = Process(queues), Process(queues)
    await queues.send(NAME, hint("a"))
    assert await dies.matching.poll(NAME, ONE, 5.0) is not None  # and no task comes of it
    assert await lives.take() == ["a"]
    await lives.stop()
    await dies.stop()


async def test_a_stop_gives_back_what_is_held(process: Process, queues: Faulty) -> None:
    await queues.send(NAME, hint("a"))
    assert await process.matching.poll(NAME, ONE, 5.0) is not None
    await process.stop()
    assert await queues.pending(NAME) == 1


async def test_a_stop_sends_what_waited_for_a_poll_here(queues: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    process = Process(queues)  # with the long grace of a container
    process.matching.offer(NAME, ref("a"))
    await process.stop()
    assert [one.body for one in await queues.receive(NAME, 10, 0, 60)] == [hint("a")]
    queues.refuse_sends = 1
    process = Process(queues)
    process.matching.offer(NAME, ref("b"))
    await process.stop()
    assert "wait for their deadlines" in caplog.text


async def test_every_partition_is_received_while_one_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    queues = MemoryQueues(SystemClock(), partitions=3)
    process = Process(queues)
    poll = asyncio.ensure_future(process.take())
    await asyncio.sleep(0.02)  # receivers wait at all partitions
    for number in range(3):
        await queues.send(NAME, hint(str(number)))
        assert await poll == [str(number)]
        poll = asyncio.ensure_future(process.take())
    poll.cancel()
    await process.stop()


async def test_a_rate_limit_keeps_what_it_holds_up_in_the_queue(process: Process, queues: Faulty) -> None:
    for number in range(3):
        await queues.send(NAME, hint(str(number)))
    matching = process.matching
    assert await matching.poll(NAME, ONE, 0.0, 1.0) is None  # sets it: one in a second
    assert len(await process.take(maximum=10)) == 1
    poll = asyncio.ensure_future(process.take(maximum=10))
    await asyncio.sleep(0.05)
    assert await queues.pending(NAME) == 2
    assert len(await poll) == 1


async def test_a_message_that_is_none_of_ours_is_set_aside_and_holds_up_nothing(
    process: Process, queues: Faulty, caplog: pytest.LogCaptureFixture
) -> None:
    await queues.send(NAME, '{"secret": 1}')
    await queues.send(NAME, hint("a"))
    assert await process.take() == ["a"]
    await until(lambda: waiting(queues) == 0)
    assert [aside.body for aside in queues.aside] == ['{"secret": 1}']
    assert queues.aside[0].message_id in caplog.text and "secret" not in caplog.text


async def test_a_queue_with_too_much_in_flight_is_received_when_there_is_room_again(process: Process) -> None:
    full = MemoryQueues(SystemClock(), in_flight_limit=2)
    for name in "abc":
        await full.send(NAME, hint(name))
    elsewhere = await full.receive(NAME, 2, 0, 60)
    here = Process(full)
    taking = asyncio.ensure_future(here.take())
    await asyncio.sleep(0.05)
    assert not taking.done()
    await full.settle(elsewhere)
    assert await taking == ["c"]
    await here.stop()
