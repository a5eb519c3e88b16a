"""What is SQS's own about task queues: queues come and go, calls are throttled, messages are anybody's."""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import WorkerInfo

from stepwell_server.adapters.aws.client import AwsClients, ServiceClient
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.queue_settings import QueueSettings
from stepwell_server.adapters.aws.sqs_queues import Partitions, SqsQueues
from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.hints import encode_hint, message_of, read_hint
from stepwell_server.history.ports import StoreUnavailable, WorkflowTaskRef
from stepwell_server.matching.ports import QueueRefused, QueuesUnavailable
from stepwell_server.matching.queue_name import QueueName
from stepwell_server.matching.queue_pump import QueuePump
from stepwell_server.matching.service import Matching
from tests.support.aws.cells import Cell, Provisioning

_numbers = itertools.count(1)


class Faulty:
    """In front of the client of a service: raises instead of the next calls of an operation."""

    def __init__(self, inner: ServiceClient) -> None:
        self._inner = inner
        self.raises: dict[str, list[Exception]] = {}
        self.calls: list[str] = []

    async def call(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        self.calls.append(operation)
        if self.raises.get(operation):
            raise self.raises[operation].pop(0)
        return await self._inner.call(operation, **parameters)


@pytest.fixture
async def clients(shared_cell: Cell) -> AsyncIterator[AwsClients]:
    clients = AwsClients()
    yield clients
    await clients.close()


@pytest.fixture
def sqs(clients: AwsClients) -> Faulty:
    return Faulty(clients.service("sqs"))


@pytest.fixture
def queues(sqs: Faulty, shared_cell: Cell) -> SqsQueues:
    return SqsQueues(sqs, shared_cell.names)  # type: ignore[arg-type]


@pytest.fixture
def name() -> QueueName:
    return QueueName("default", f"sqs ☃ #{next(_numbers)}", TaskQueueKind.ACTIVITY)


def refused(code: str) -> AwsRefused:
    return AwsRefused("sqs", "a call", "a queue", code, "says SQS")


async def test_a_queue_is_made_with_what_it_needs(
    queues: SqsQueues, name: QueueName, provisioning: Provisioning, shared_cell: Cell
) -> None:
    await queues.send(name, "a")
    (url,) = await queues.addresses(name)
    made = provisioning.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert made["MessageRetentionPeriod"] == str(14 * 86_400) and made["SqsManagedSseEnabled"] == "true"
    assert provisioning.sqs.list_queue_tags(QueueUrl=url)["Tags"] == {
        "stepwell:cell": shared_cell.names.cell,
        "stepwell:namespace": "default",
        "stepwell:task-queue": name.task_queue.replace("☃", "_").replace("#", "_"),
        "stepwell:kind": "ACTIVITY",
        "stepwell:partition": "0",
    }


async def test_a_customers_key_encrypts_the_queue(
    clients: AwsClients, shared_cell: Cell, name: QueueName, provisioning: Provisioning
) -> None:
    queues = SqsQueues(clients.service("sqs"), shared_cell.names, kms_key="alias/stepwell")
    (url,) = await queues.addresses(name)
    made = provisioning.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert made["KmsMasterKeyId"] == "alias/stepwell"


async def test_two_processes_that_make_a_queue_at_the_same_time_share_it(
    clients: AwsClients, shared_cell: Cell, name: QueueName
) -> None:
    processes = [SqsQueues(clients.service("sqs"), shared_cell.names) for _ in range(4)]
    await asyncio.gather(*(queues.send(name, str(number)) for number, queues in enumerate(processes)))
    assert await processes[0].pending(name) == 4


async def test_one_process_looks_for_a_queue_once(queues: SqsQueues, sqs: Faulty, name: QueueName) -> None:
    await asyncio.gather(*(queues.send(name, "a") for _ in range(30)))
    assert sqs.calls.count("get_queue_url") == 1 and sqs.calls.count("create_queue") == 1
    assert sqs.calls.count("send_message_batch") == 3


async def test_one_that_was_made_with_other_settings_serves_as_well(
    queues: SqsQueues, sqs: Faulty, name: QueueName, provisioning: Provisioning, shared_cell: Cell
) -> None:
    by_hand = shared_cell.names.task_queue(name.namespace, name.task_queue, "act")
    provisioning.sqs.create_queue(QueueName=by_hand, Attributes={"VisibilityTimeout": "7"})
    sqs.raises["get_queue_url"] = [refused("AWS.SimpleQueueService.NonExistentQueue")]  # made a moment later
    await queues.send(name, "a")
    assert await queues.pending(name) == 1


async def test_a_deleted_queue_is_made_again(queues: SqsQueues, name: QueueName, provisioning: Provisioning) -> None:
    await queues.send(name, "lost")
    (held,) = await queues.receive(name, 1, 0, 60)
    (url,) = await queues.addresses(name)
    provisioning.sqs.delete_queue(QueueUrl=url)
    await queues.settle([held])  # nothing to do, and no error
    await queues.extend([held], 0)
    assert await queues.pending(name) == 0
    assert await queues.receive(name, 1, 0, 60) == []
    provisioning.sqs.delete_queue(QueueUrl=url)
    await queues.send(name, "a")
    assert [one.body for one in await queues.receive(name, 1, 1, 60)] == ["a"]


@pytest.mark.parametrize("code", ["OverLimit", "AWS.SimpleQueueService.QueueDeletedRecently"])
async def test_a_full_or_just_deleted_queue_is_unavailable_for_now(
    queues: SqsQueues, sqs: Faulty, name: QueueName, code: str
) -> None:
    sqs.raises = {"receive_message": [refused(code)], "create_queue": [refused(code)]}
    with pytest.raises(QueuesUnavailable):
        await queues.send(name, "a")
    await queues.send(name, "a")
    with pytest.raises(QueuesUnavailable):
        await queues.receive(name, 1, 0, 60)
    assert len(await queues.receive(name, 1, 0, 60)) == 1


@pytest.mark.parametrize("operation", ["get_queue_url", "create_queue", "send_message_batch"])
async def test_throttling_is_unavailable_and_missing_rights_are_the_fault_they_are(
    queues: SqsQueues, sqs: Faulty, name: QueueName, operation: str
) -> None:
    sqs.raises = {operation: [StoreUnavailable("throttled"), refused("KMS.AccessDeniedException")]}
    with pytest.raises(QueuesUnavailable):
        await queues.send(name, "a")
    with pytest.raises(QueueRefused, match="KMS"):
        await queues.send(name, "a")
    await queues.send(name, "a")
    assert await queues.pending(name) == 1


async def test_partitions_are_all_sent_to_and_all_received(
    clients: AwsClients, shared_cell: Cell, name: QueueName
) -> None:
    settings = QueueSettings(clients.service("dynamodb"), shared_cell.names, SystemClock())
    assert await settings.partitions(name) == Partitions(1, 1)
    await settings.set_partitions(name, 3)
    queues = SqsQueues(clients.service("sqs"), shared_cell.names, partitions=settings.partitions)
    await asyncio.gather(*(queues.send(name, str(number)) for number in range(9)))
    assert await queues.partitions(name) == 3 and await queues.pending(name) == 9
    assert len(set(await queues.addresses(name))) == 3
    assert [len(await queues.receive(name, 10, 0, 60)) for _ in range(3)] == [3, 3, 3]
    await settings.set_partitions(name, 2)
    assert await settings.partitions(name) == Partitions(2, 3), "messages may still be in the third"
    with pytest.raises(ValueError, match="1 to 64"):
        await settings.set_partitions(name, 0)


async def test_who_asks_for_settings_at_once_reads_them_once(
    clients: AwsClients, shared_cell: Cell, name: QueueName
) -> None:
    """A step may schedule two thousand activities (WC-27). One who no longer waits takes nothing from the others."""
    dynamodb = Faulty(clients.service("dynamodb"))
    settings = QueueSettings(dynamodb, shared_cell.names, SystemClock())  # type: ignore[arg-type]
    asking = [asyncio.create_task(settings.partitions(name)) for _ in range(500)]
    await asyncio.sleep(0)
    asking.pop(0).cancel()
    assert set(await asyncio.gather(*asking)) == {Partitions(1, 1)}
    assert dynamodb.calls == ["get_item"]


async def test_of_many_who_set_partitions_at_once_all_are_received(
    clients: AwsClients, shared_cell: Cell, name: QueueName
) -> None:
    """Whoever comes last, messages may be in those that another one has sent to."""
    settings = QueueSettings(clients.service("dynamodb"), shared_cell.names, SystemClock())
    await asyncio.gather(*(settings.set_partitions(name, count) for count in (2, 8, 3, 5)))
    assert (await settings.partitions(name)).received == 8


async def test_how_long_a_function_has_messages_is_that_of_all_queues_also_when_they_are_made_anew(
    clients: AwsClients, shared_cell: Cell, name: QueueName
) -> None:
    settings = QueueSettings(clients.service("dynamodb"), shared_cell.names, SystemClock())
    sqs = clients.service("sqs")
    await settings.set_partitions(name, 2)
    queues = SqsQueues(sqs, shared_cell.names, partitions=settings.partitions)

    async def seen() -> set[str]:
        urls = await queues.addresses(name)
        answers = [
            await sqs.call("get_queue_attributes", QueueUrl=url, AttributeNames=["VisibilityTimeout"]) for url in urls
        ]
        return {answer["Attributes"]["VisibilityTimeout"] for answer in answers}

    assert await seen() == {"60"}
    await settings.set_visibility(name, 900)
    assert len(await queues.apply_visibility(name)) == 2
    assert await seen() == {"900"}
    for url in await queues.addresses(name):
        await sqs.call("delete_queue", QueueUrl=url)
    again = SqsQueues(sqs, shared_cell.names, partitions=settings.partitions)
    await again.send(name, "a")
    assert (await settings.partitions(name)).visibility == 900
    [url, _] = await again.addresses(name)
    answer = await sqs.call("get_queue_attributes", QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert answer["Attributes"]["VisibilityTimeout"] == "900"
    for wrong in (59, 43_201):
        with pytest.raises(ValueError, match="60 to 43200"):
            await settings.set_visibility(name, wrong)


async def test_settings_that_cannot_be_read_stay_as_they_were(
    clients: AwsClients, shared_cell: Cell, name: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    dynamodb = Faulty(clients.service("dynamodb"))
    settings = QueueSettings(dynamodb, shared_cell.names, SystemClock())  # type: ignore[arg-type]
    dynamodb.raises["get_item"] = [StoreUnavailable("throttled")]
    assert await settings.partitions(name) == Partitions()
    assert "throttled" in caplog.text
    assert await settings.partitions(name) == Partitions() and dynamodb.calls == ["get_item"]


async def test_what_is_set_aside_is_kept_for_people_with_its_reason(
    queues: SqsQueues, name: QueueName, provisioning: Provisioning, shared_cell: Cell
) -> None:
    await queues.send(name, "poison")
    (poison,) = await queues.receive(name, 1, 0, 60)
    await queues.set_aside([poison], "nobody can read it")
    url = provisioning.sqs.get_queue_url(QueueName=shared_cell.names.failure_queue)["QueueUrl"]
    kept = []
    while found := provisioning.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        kept += [json.loads(message["Body"]) for message in found]
    (told,) = [one for one in kept if one.get("messageId") == poison.message_id]  # other tests keep theirs there too
    assert told["reason"] == "nobody can read it"
    assert (told["taskQueue"], told["body"]) == (name.task_queue, "poison")


async def test_what_cannot_be_kept_is_deleted_and_does_not_come_back_for_ever(
    queues: SqsQueues, sqs: Faulty, name: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    await queues.send(name, "poison")
    received = await queues.receive(name, 1, 0, 1)
    sqs.raises["send_message"] = [refused("AccessDenied")]
    await queues.set_aside(received, "nobody can read it")
    assert await queues.receive(name, 1, 2, 60) == []
    assert received[0].message_id in caplog.text and "poison" not in caplog.text


async def test_a_pump_over_sqs_feeds_polls_past_a_poison_message(
    queues: SqsQueues, name: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SystemClock()
    matching = Matching(clock)
    pump = QueuePump(matching, queues, clock, read_hint, message_of)
    pump.start()
    refs = {WorkflowTaskRef(ExecutionKey("default", f"order-{number}"), "run", 1) for number in range(3)}
    await queues.send(name, '{"secret": 1}')
    for ref in refs:
        await queues.send(name, encode_hint(ref))
    worker = WorkerInfo(identity="one", worker_key="key one")
    taken = set()
    with caplog.at_level(logging.ERROR):
        while len(taken) < 3:
            ref = await matching.poll(name, worker, 10.0)
            assert ref is not None
            matching.used(name, ref)
            taken.add(ref)
    assert taken == refs and "set aside" in caplog.text and "secret" not in caplog.text
    matching.stop()
    await pump.stop()
    assert await queues.receive(name, 10, 0, 60) == []
