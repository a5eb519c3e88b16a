"""What every implementation of ``matching.ports.TaskQueues`` promises: in memory, and on SQS."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from stepwell.api.enums import TaskQueueKind

from stepwell_server.adapters.system import SystemClock
from stepwell_server.matching.memory_queues import MemoryQueues
from stepwell_server.matching.ports import Received, TaskQueues
from stepwell_server.matching.queue_name import QueueName

_numbers = itertools.count(1)


@pytest.fixture(params=["memory", "sqs"])
async def queues(request: pytest.FixtureRequest) -> AsyncIterator[TaskQueues]:
    if request.param == "memory":
        yield MemoryQueues(SystemClock())
        return
    from stepwell_server.adapters.aws.client import AwsClients
    from stepwell_server.adapters.aws.sqs_queues import SqsQueues

    cell = request.getfixturevalue("shared_cell")
    clients = AwsClients()
    yield SqsQueues(clients.service("sqs"), cell.names)
    await clients.close()


@pytest.fixture
def name() -> QueueName:
    """Of the test's own."""
    return QueueName("default", f"contract {next(_numbers)}", TaskQueueKind.WORKFLOW)


async def _all(queues: TaskQueues, name: QueueName, lease: int = 60) -> list[Received]:
    received: list[Received] = []
    while more := await queues.receive(name, 10, 0, lease):
        received += more
    return received


def _bodies(received: list[Received]) -> list[str]:
    return sorted(one.body for one in received)


async def test_what_is_sent_is_received_once_and_settled_for_good(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "hint ☃ \U0001f600")
    (received,) = await queues.receive(name, 10, 5, 60)
    assert received.body == "hint ☃ \U0001f600" and received.queue == name and received.deliveries == 1
    assert await queues.receive(name, 10, 0, 60) == []
    await queues.settle([received])
    await queues.settle([received])
    await queues.extend([received], 0)  # its lease is over
    assert await queues.receive(name, 10, 0, 60) == []


async def test_queues_are_apart_by_namespace_name_and_kind(queues: TaskQueues, name: QueueName) -> None:
    others = [
        name._replace(namespace="other"),
        name._replace(task_queue=name.task_queue + "!"),
        name._replace(kind=TaskQueueKind.ACTIVITY),
    ]
    await queues.send(name, "a")
    for other in others:
        assert await queues.receive(other, 1, 0, 60) == []
    assert len(await queues.receive(name, 1, 0, 60)) == 1


async def test_many_at_once_all_arrive(queues: TaskQueues, name: QueueName) -> None:
    bodies = [f"hint {number:03d}" for number in range(57)]
    await asyncio.gather(*(queues.send(name, body) for body in bodies))
    assert await queues.pending(name) == 57
    first = await queues.receive(name, 4, 0, 60)
    assert 1 <= len(first) <= 4
    received = [*first, *await _all(queues, name)]
    assert _bodies(received) == bodies
    await queues.settle(received)
    assert await queues.pending(name) == 0


async def test_a_long_body_goes_alone(queues: TaskQueues, name: QueueName) -> None:
    bodies = [letter * 200_000 for letter in "abcd"]
    await asyncio.gather(*(queues.send(name, body) for body in bodies))
    assert _bodies(await _all(queues, name)) == bodies


async def test_a_receive_waits_for_a_message(queues: TaskQueues, name: QueueName) -> None:
    await queues.receive(name, 1, 0, 60)
    receiving = asyncio.ensure_future(queues.receive(name, 1, 10, 60))
    await asyncio.sleep(0.1)
    assert not receiving.done()
    await queues.send(name, "a")
    assert len(await receiving) == 1


async def test_an_empty_wait_ends_empty(queues: TaskQueues, name: QueueName) -> None:
    assert await queues.receive(name, 1, 1, 60) == []


async def test_a_message_comes_back_when_its_lease_ends(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "a")
    assert len(await queues.receive(name, 1, 0, 1)) == 1
    assert await queues.receive(name, 1, 0, 1) == []
    (again,) = await queues.receive(name, 1, 5, 60)
    assert (again.body, again.deliveries) == ("a", 2)


async def test_a_lease_can_be_made_longer_or_ended(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "longer")
    (longer,) = await queues.receive(name, 1, 0, 1)
    await queues.extend([longer], 60)
    await queues.send(name, "ended")
    (ended,) = await queues.receive(name, 1, 0, 60)
    await queues.extend([ended], 0)
    (back,) = await queues.receive(name, 10, 5, 60)
    assert back.body == "ended"
    await asyncio.sleep(1.2)
    assert await queues.receive(name, 10, 0, 60) == []


async def test_a_settled_message_stays_so_when_an_earlier_receipt_of_it_is_extended(
    queues: TaskQueues, name: QueueName
) -> None:
    await queues.send(name, "a")
    (first,) = await queues.receive(name, 1, 0, 1)
    (second,) = await queues.receive(name, 1, 5, 60)
    await queues.settle([second])
    await queues.extend([first], 0)
    assert await queues.receive(name, 1, 0, 60) == []


async def test_a_delay_is_rounded_up_to_whole_seconds(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "a", 0.2)
    assert await queues.receive(name, 1, 0, 60) == []
    await asyncio.sleep(0.4)
    assert await queues.receive(name, 1, 0, 60) == []
    assert len(await queues.receive(name, 1, 5, 60)) == 1


async def test_the_longest_delay_is_taken(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "a", 86_400.0)
    await queues.send(name, "b", -5.0)
    assert [one.body for one in await queues.receive(name, 10, 1, 60)] == ["b"]


async def test_keys_that_take_turns_are_taken(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "a", fairness_key="tenant ☃")
    assert len(await queues.receive(name, 1, 1, 60)) == 1


async def test_what_is_set_aside_does_not_come_back(queues: TaskQueues, name: QueueName) -> None:
    await queues.send(name, "poison")
    received = await queues.receive(name, 1, 0, 1)
    await queues.set_aside(received, "nobody can read it")
    await asyncio.sleep(1.2)
    assert await queues.receive(name, 1, 0, 60) == []


async def test_nothing_waits_in_a_queue_that_nobody_used(queues: TaskQueues, name: QueueName) -> None:
    assert await queues.pending(name) == 0
