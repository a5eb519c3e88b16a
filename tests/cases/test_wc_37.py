"""WC-37: a change stream that swaps, repeats and holds back records, and has some that always fail.

Field: records of one transaction in another order, records twice, one that failed for ever and held up all behind it, a
consumer that was made anew at "latest" and left some out.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import boto3
import pytest

from stepwell_server.adapters.aws import commit_items
from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.sqs_queues import SqsQueues
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.matching.memory_queues import MemoryQueues
from stepwell_server.matching.queue_name import QueueName
from tests.support.aws.cells import Cell
from tests.support.aws.event_pump import Faults, StreamPump, StreamRecord, as_event_record, insert_record
from tests.support.aws.functions import Functions, ShiftedClock, key_of
from tests.support.counting import CountingStore
from tests.support.engine import types
from tests.support.listed import list_executions

FAULTS = Faults(twice=0.05, late=0.05, swapped=0.3)
EXPECTED = [
    "WorkflowExecutionStarted",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "ActivityTaskScheduled",
    "ActivityTaskStarted",
    "ActivityTaskCompleted",
    "WorkflowTaskScheduled",
    "WorkflowTaskStarted",
    "WorkflowTaskCompleted",
    "WorkflowExecutionCompleted",
]


class Projection:
    """What a list would show, put if newer: by run, the seq and whether it is closed."""

    def __init__(self) -> None:
        self.records: dict[ExecutionKey, tuple[int, bool]] = {}

    async def project(self, commit: Commit) -> None:
        there = self.records.get(commit.key)
        if there is None or there[0] < commit.seq:
            self.records[commit.key] = (commit.seq, commit.state.close_time is not None)


class Stream:
    """All commits of a store, as records in the order in which they were written."""

    def __init__(self, store: CountingStore) -> None:
        self._store = store
        self.records: list[StreamRecord] = []

    def new(self) -> list[StreamRecord]:
        first = len(self.records)
        for commit in self._store.commits[first:]:
            item, _ = commit_items.encode(commit, "S", 10**9)
            self.records.append(insert_record(item, len(self.records), commit.time.timestamp()))
        return self.records[first:]


async def _check(functions: Functions, workflow_ids: list[str]) -> None:
    for workflow_id in workflow_ids:
        events = await functions.history(workflow_id)
        assert types(events) == EXPECTED, workflow_id
        assert [event.event_id for event in events] == list(range(1, len(EXPECTED) + 1))


@pytest.mark.parametrize("seed", [1, 2])
async def test_500_workflows_finish_whatever_the_stream_does_and_a_poison_record_holds_up_none(seed: int) -> None:
    """Some records twice, late or swapped, one that always fails; the consumer is put back to an older position twice
    and made anew once. All finish, the poisoned one by its deadline, and no history has anything twice."""
    rng = random.Random(seed)
    clock = ShiftedClock()
    backend = embedded_backend(":memory:", clock=clock)
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    projection = Projection()
    wired: Any = type("Wired", (), {name: getattr(backend, name) for name in backend.__slots__} | {"log": store})
    functions = Functions(wired, MemoryQueues(clock), projection.project)
    stream = Stream(store)
    pump = functions.pump(rng, faults=FAULTS)
    workflow_ids = [f"order-{number}" for number in range(500)]
    await functions.start(workflow_ids)
    first = stream.new()
    poison = first[rng.randrange(len(first))]
    functions.poison.add(poison["dynamodb"]["SequenceNumber"])
    pump.feed(first)
    rounds = 0
    while True:
        rounds += 1
        await asyncio.to_thread(pump.run)
        await functions.work()
        new = stream.new()
        if rounds in (2, 3):
            pump.feed(stream.records[rng.randrange(len(stream.records)) :])  # an older position
        elif rounds == 4:
            failed = pump.failed
            pump = functions.pump(rng, faults=FAULTS, failed=failed)
            pump.feed(stream.records)  # made anew: from the oldest record on
        elif not new:
            break
        else:
            pump.feed(new)
    key = key_of(poison)
    assert key is not None
    waiting = {each for each, (_, closed) in projection.records.items() if not closed}
    assert waiting == set(), "only what is projected can wait, and that is all but the poisoned one"
    assert set(projection.records) == {ExecutionKey("default", each) for each in workflow_ids} - {key}
    assert poison["dynamodb"]["SequenceNumber"] in {one["dynamodb"]["SequenceNumber"] for one in pump.failed}
    await _by_its_deadline(functions, stream, pump, key, clock)
    assert all(closed for _, closed in projection.records.values())
    await _check(functions, workflow_ids)
    await backend.close()


async def _by_its_deadline(
    functions: Functions, stream: Stream, pump: StreamPump, key: ExecutionKey, clock: ShiftedClock
) -> None:
    """The feed handed nothing on of it; the deadline that its start armed sends its task again."""
    head = await functions.backend.log.head(key)
    assert head is not None and head.seq == 1 and head.deadline is not None
    assert await functions.fire_next([key.workflow_id], clock)
    while new := stream.new():
        pump.feed(new)
        await asyncio.to_thread(pump.run)
        await functions.work()


async def test_without_any_feed_deadlines_alone_finish_every_run() -> None:
    """No record of the stream is ever handled, and a third of the messages are lost (invariant 7)."""
    rng = random.Random(4)
    clock = ShiftedClock()
    backend = embedded_backend(":memory:", clock=clock)
    queues = Losing(clock)
    queues.lose = lambda: rng.random() < 0.33
    functions = Functions(backend, queues, Projection().project)
    workflow_ids = [f"order-{number}" for number in range(40)]
    await functions.start(workflow_ids)
    assert await functions.work() == 0, "nobody handed anything on"
    while await functions.fire_next(workflow_ids, clock):
        await functions.work()
    assert queues.lost > 10 and functions.handed_on == {}
    await _check(functions, workflow_ids)
    await backend.close()


class Losing(MemoryQueues):
    lose: Callable[[], bool]
    lost = 0

    async def send(self, queue: QueueName, body: str, delay_seconds: float = 0.0, fairness_key: str = "") -> None:
        if self.lose():
            self.lost += 1
        else:
            await super().send(queue, body, delay_seconds, fairness_key)


@pytest.fixture
async def on_aws(cell: Cell) -> AsyncIterator[Functions]:
    clients = AwsClients()
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clients=clients)
    visibility: Any = backend.visibility
    yield Functions(backend, SqsQueues(clients.service("sqs"), cell.names), visibility.project)
    await backend.close()


def _read(cell: Cell, shard_iterator: str | None = None) -> list[StreamRecord]:
    """All of the table's stream, from its oldest record on."""
    environment = cell.environment
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name=cell.region
    )
    streams = session.client("dynamodbstreams", endpoint_url=environment["AWS_ENDPOINT_URL"])
    tables = session.client("dynamodb", endpoint_url=environment["AWS_ENDPOINT_URL"])
    arn = tables.describe_table(TableName=cell.names.exec_table)["Table"]["LatestStreamArn"]
    records: list[StreamRecord] = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        where = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = streams.get_shard_iterator(**where)["ShardIterator"]
        while iterator:
            answer = streams.get_records(ShardIterator=iterator, Limit=1_000)
            records += [as_event_record(record) for record in answer["Records"]]
            iterator = answer.get("NextShardIterator") if answer["Records"] else None
    streams.close()
    tables.close()
    return records


async def test_on_dynamodb_and_sqs_a_list_ends_in_the_newest_state(on_aws: Functions, cell: Cell) -> None:
    """The same from the table's own stream, through SQS to a worker, with the list of executions on DynamoDB."""
    pump = on_aws.pump(random.Random(3), faults=FAULTS)
    workflow_ids = [f"order-{number}" for number in range(15)]
    await on_aws.start(workflow_ids)
    read = 0
    while len(records := await asyncio.to_thread(_read, cell)) > read:
        pump.feed(records[read:])
        read = len(records)
        await asyncio.to_thread(pump.run)
        await on_aws.work()
    await _check(on_aws, workflow_ids)
    pump.feed(records)  # all of it once more, from the oldest record on
    await asyncio.to_thread(pump.run)
    assert await on_aws.work() == 0 and pump.failed == []
    listed = await list_executions(
        on_aws.backend.visibility, "default", status=None, workflow_type="", after=None, limit=99
    )
    assert sorted(info.execution.workflow_id for info in listed) == sorted(workflow_ids)
    assert all(info.close_time is not None and info.history_length == len(EXPECTED) for info in listed)
    assert len(await asyncio.to_thread(_read, cell)) == read, "nothing was written for what came twice"
