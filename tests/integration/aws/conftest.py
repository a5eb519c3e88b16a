"""A store of the test's own: its ports, the clock it reads, counts of its calls, and what DynamoDB does by itself."""

import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import Commit
from stepwell_server.history.ports import ExecutionLog
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.clock import StandingClock
from tests.support.aws.counting import AwsCounter
from tests.support.sample_commits import EPOCH


@dataclass
class Store:
    backend: Backend
    clock: StandingClock
    counter: AwsCounter
    cell: Cell
    dynamodb: Any
    clients: AwsClients

    @property
    def log(self) -> ExecutionLog:
        return self.backend.log

    async def append_all(self, commits: list[Commit]) -> None:
        for commit in commits:
            await self.log.append(commit)
            await self.backend.visibility.project(commit)

    async def expire(self, commits: list[Commit]) -> None:
        assert self.backend.retention is not None
        for commit in commits:
            await self.backend.retention.expire(commit)

    def items(self, table: str = "") -> list[dict[str, Any]]:
        """All of a table (``exec``), as DynamoDB has them."""
        found: list[dict[str, Any]] = []
        for page in self.dynamodb.get_paginator("scan").paginate(TableName=table or self.cell.names.exec_table):
            found += page["Items"]
        return found

    def sort_keys(self, prefix: str = "C#") -> list[str]:
        return sorted(item["sk"]["S"] for item in self.items() if item["sk"]["S"].startswith(prefix))

    def delete_expired(self, chance: random.Random | None = None) -> None:
        """As the table does it: what has expired, in any order, and (with ``chance``) not all of it yet."""
        now = self.clock.now().timestamp()
        for item in self.items():
            if "x" in item and int(item["x"]["N"]) <= now and (chance is None or chance.random() < 0.4):
                key = {"pk": item["pk"], "sk": item["sk"]}
                self.dynamodb.delete_item(TableName=self.cell.names.exec_table, Key=key)

    async def another_process(self) -> "Store":
        """On the same tables, with nothing remembered."""
        return await open_store(self.cell, self.dynamodb, self.clock)


async def open_store(cell: Cell, dynamodb: Any, clock: StandingClock) -> Store:
    counter = AwsCounter(dynamodb)
    clients = AwsClients(observer=counter)
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clients=clients, clock=clock)
    counter.reset()
    return Store(backend, clock, counter, cell, dynamodb, clients)


@pytest.fixture
async def store(cell: Cell, provisioning: Provisioning) -> AsyncIterator[Store]:
    store = await open_store(cell, provisioning.dynamodb, StandingClock(EPOCH))
    yield store
    await store.backend.close()
