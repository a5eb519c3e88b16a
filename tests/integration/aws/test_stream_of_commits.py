"""The stream of the commit table, read as a container reads it and handed to the feed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from stepwell_server.adapters.aws import stream_reader, stream_records
from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.failed_records import FailedRecords
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.shard_leases import ShardLeases
from stepwell_server.adapters.aws.stream_reader import StreamReader, stream_of
from stepwell_server.adapters.aws.stream_records import Record
from stepwell_server.adapters.aws.stream_shards import ShardLease
from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.feed import Feed
from stepwell_server.history.ports import StoreUnavailable
from tests.support.aws.cells import Cell, Provisioning
from tests.support.listed import list_executions
from tests.support.sample_commits import SampleRun


@dataclass
class Installation:
    cell: Cell
    clients: AwsClients
    backend: Backend
    handed_on: list[Commit]
    poison: set[ExecutionKey]

    async def reader(self, owner: str) -> StreamReader:
        names, clock = self.cell.names, SystemClock()
        dynamodb = self.clients.service("dynamodb")
        arn = await stream_of(dynamodb, names.exec_table)
        visibility: Any = self.backend.visibility
        feed = Feed(self.backend.log, project=visibility.project, hand_on=self._hand_on, fire=self._fire)

        async def handle(record: Record) -> None:
            parsed = stream_records.parse(record)
            if parsed is not None:
                await feed.handle(parsed)

        return StreamReader(
            self.clients.service("dynamodbstreams"),
            arn,
            ShardLeases(dynamodb, names.ctl_table, arn, clock),
            handle,
            FailedRecords(self.clients.service("sqs"), names, arn, clock).keep,
            clock,
            owner,
            lambda error: isinstance(error, StoreUnavailable),
        )

    async def closed(self) -> set[str]:
        """Workflow ids whose records say so."""
        infos = await list_executions(
            self.backend.visibility, "default", status=None, workflow_type="", after=None, limit=99
        )
        return {info.execution.workflow_id for info in infos if info.close_time is not None}

    async def _hand_on(self, commit: Commit) -> None:
        if commit.key in self.poison:
            raise ValueError("nobody can hand this on")
        self.handed_on.append(commit)

    async def _fire(self, key: ExecutionKey, deadline: datetime) -> None:
        """The samples are of long ago."""


@pytest.fixture
async def installation(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Installation]:
    monkeypatch.setattr(stream_reader, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(stream_reader, "_IDLE_SECONDS", 0.05)
    clients = AwsClients()
    backend = await aws_backend(
        AwsSettings(cell.names.cell, cell.bucket), clients=clients, retention=timedelta(days=36_500)
    )
    yield Installation(cell, clients, backend, [], set())
    await backend.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


async def test_commits_are_handed_on_once_and_projected_and_a_follower_goes_on(installation: Installation) -> None:
    first, second = (list(SampleRun(number).commits()) for number in (1, 2))
    reader = await installation.reader("one")
    for commit in first:
        await installation.backend.log.append(commit)
    reader.start()
    await until(lambda: len([commit for commit in first if commit.tasks]) == len(installation.handed_on))
    leases: ShardLeases = reader._leases
    while not all(lease.after for lease in (await leases.all()).values()):
        await asyncio.sleep(0.02)
    await reader.stop()
    for commit in second:
        await installation.backend.log.append(commit)
    follower = await installation.reader("one")
    for lease in (await leases.all()).values():
        assert await leases.change(lease.changed("", 0)), "as if its lease had run out"
    follower.start()
    owing = [commit for commit in (*first, *second) if commit.tasks]
    closed = {commits[0].workflow_id for commits in (first, second)}
    async with asyncio.timeout(30):
        while await installation.closed() != closed:
            await asyncio.sleep(0.05)
    await follower.stop()
    assert sorted(installation.handed_on, key=lambda commit: (commit.workflow_id, commit.seq)) == sorted(
        owing, key=lambda commit: (commit.workflow_id, commit.seq)
    )


async def test_a_poison_record_goes_to_the_queue_of_failures_and_the_rest_is_handled(
    installation: Installation, provisioning: Provisioning
) -> None:
    poison, good = (next(iter(SampleRun(number).commits())) for number in (1, 2))
    installation.poison.add(poison.key)
    for commit in (poison, good):
        await installation.backend.log.append(commit)
    reader = await installation.reader("one")
    reader.start()
    await until(lambda: installation.handed_on == [good])
    names = installation.cell.names
    url = provisioning.sqs.get_queue_url(QueueName=names.failure_queue)["QueueUrl"]
    answer = await asyncio.to_thread(provisioning.sqs.receive_message, QueueUrl=url, WaitTimeSeconds=10)
    told = json.loads(answer["Messages"][0]["Body"])
    assert poison.workflow_id in told["record"] and told["reason"] == "ValueError: nobody can hand this on"
    batch = told["DDBStreamBatchInfo"]
    assert batch["startSequenceNumber"] and batch["streamArn"].split(":table/")[1].startswith(names.exec_table)
    await reader.stop()


async def test_leases_are_changed_by_who_knows_the_counter_only(installation: Installation) -> None:
    ctl = installation.cell.names.ctl_table
    leases = ShardLeases(installation.clients.service("dynamodb"), ctl, "arn:of:a:stream", SystemClock())
    assert await leases.all() == {}
    one = ShardLease("shard-1").changed("one", 5, "7")
    assert await leases.change(one)
    assert await leases.change(one), "a repeat of one's own change"
    assert not await leases.change(ShardLease("shard-1").changed("two", 5))
    two = one.changed("two", 9, done=True)
    assert await leases.change(two) and not await leases.change(one.changed("one", 9))
    assert await leases.all() == {"shard-1": ShardLease("shard-1", "two", 2, 9, "7", True)}
    anew = ShardLeases(installation.clients.service("dynamodb"), ctl, "arn:of:another", SystemClock())
    assert await anew.all() == {}, "a stream that was made anew is read from its beginning"
