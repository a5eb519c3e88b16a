"""The delay queue on SQS: delivered when due, with all that was sent; postponed; found again when it was made anew."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.sqs_delay_queue import SqsDelayQueue
from stepwell_server.adapters.aws.tables import create_queues
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets, messages
from stepwell_server.timer_sweeper.buckets import Awaited, TimerRow
from stepwell_server.timer_sweeper.ports import Delayed
from tests.support.aws.cells import Cell, Provisioning

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def row_of(number: int) -> TimerRow:
    key = ExecutionKey("default", f"w-{number}")
    return buckets.row(key, NOW + timedelta(seconds=number), NOW, Awaited(number + 1))


@pytest.fixture
async def sqs(cell: Cell) -> AsyncIterator[Any]:
    clients = AwsClients()
    yield clients.service("sqs")
    await clients.close()


async def received(sqs: Any, url: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while len(found) < count:
            answer = await sqs.call("receive_message", QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=2)
            found += answer.get("Messages", [])
    return found


async def test_deadlines_come_out_as_they_went_in_when_their_delay_is_over(cell: Cell, sqs: Any) -> None:
    url = (await sqs.call("get_queue_url", QueueName=cell.names.timer_queue))["QueueUrl"]
    queue = SqsDelayQueue(sqs, cell.names.timer_queue)
    await queue.send([Delayed(row_of(number), 1 if number == 22 else 0) for number in range(23)])
    now = await received(sqs, url, 22)
    assert {messages.decode(message["Body"]).key.workflow_id for message in now} == {f"w-{n}" for n in range(22)}
    (late,) = await received(sqs, url, 1)
    assert messages.decode(late["Body"]) == row_of(22)._replace(queued=True)
    await queue.postpone(late["ReceiptHandle"], 0)
    (again,) = await received(sqs, url, 1)
    assert again["MessageId"] == late["MessageId"]


async def test_a_queue_that_was_made_anew_is_found_and_a_missing_one_named(
    cell: Cell, sqs: Any, provisioning: Provisioning
) -> None:
    queue = SqsDelayQueue(sqs, cell.names.timer_queue)
    await queue.send([Delayed(row_of(1), 0)])
    url = (await sqs.call("get_queue_url", QueueName=cell.names.timer_queue))["QueueUrl"]
    await sqs.call("delete_queue", QueueUrl=url)
    with pytest.raises(AwsRefused, match=cell.names.timer_queue):
        await queue.send([Delayed(row_of(2), 0)])
    create_queues(provisioning.sqs, cell.names)
    await queue.send([Delayed(row_of(3), 0)])
    (message,) = await received(sqs, url, 1)
    assert messages.decode(message["Body"]).key.workflow_id == "w-3"


async def test_a_message_that_is_no_longer_ours_cannot_be_postponed_and_that_is_fine(cell: Cell, sqs: Any) -> None:
    queue = SqsDelayQueue(sqs, cell.names.timer_queue)
    await queue.postpone("no-such-receipt", 5)
