"""A run that is imported again is in lists again, though its commits count from 1: what was there of it before, expired
or removed, gives way. What is late of its former life does not come back."""

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest
from stepwell.api.payloads import Payload

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.visibility_table import VisibilityTable
from stepwell_server.history.commit import Commit
from stepwell_server.history.tasks import RecordVisibility
from stepwell_server.visibility.attributes import ValueType
from stepwell_server.visibility.query import parse
from tests.support.aws.cells import Cell
from tests.support.aws.clock import StandingClock
from tests.support.sample_commits import EPOCH, SampleRun

RETENTION = timedelta(days=7)
LIVE = timedelta(hours=1)
HERE = parse("City = 'here'", {"City": ValueType.KEYWORD})


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(EPOCH + LIVE)


@pytest.fixture
async def table(cell: Cell, clock: StandingClock) -> AsyncIterator[VisibilityTable]:
    clients = AwsClients()
    yield VisibilityTable(clients.service("dynamodb"), cell.names.vis_table, clock, lambda namespace: RETENTION)
    await clients.close()


def life(clock: StandingClock) -> list[Commit]:
    """Of the same run each time, with its own times in it, written now."""
    attributes = {"City": Payload(metadata={"encoding": "json/plain", "type": "Keyword"}, data=b'"here"')}
    commits = []
    for commit in SampleRun(1).commits():
        tasks = [
            msgspec.structs.replace(task, search_attributes=attributes) if isinstance(task, RecordVisibility) else task
            for task in commit.tasks
        ]
        commits.append(msgspec.structs.replace(commit, tasks=tuple(tasks), time=clock.now()))
    assert all(one.seq < other.seq for one, other in pairwise(commits))
    return commits


async def found(table: VisibilityTable) -> list[str]:
    page = await table.search("default", HERE, after=None, limit=9)
    return [each.status.value for each in page.executions]


async def test_one_that_was_removed(table: VisibilityTable, clock: StandingClock) -> None:
    first = life(clock)
    for commit in first:
        await table.project(commit)
    clock.go(LIVE)
    for _ in range(2):  # whoever removes it may die behind it
        await table.remove(first[0].key, first[0].run_id, first[-1].time)
    for commit in (first[0], first[-1]):
        await table.project(commit)
    assert await found(table) == []
    clock.go(LIVE)
    again = life(clock)
    await table.project(again[0])
    assert await found(table) == ["RUNNING"] and await table.locate(again[0].key, again[0].run_id) == again[0].seq
    await table.project(again[-1])
    await table.project(again[0])
    assert await found(table) == ["COMPLETED"]
    clock.go(LIVE)
    await table.remove(again[0].key, again[0].run_id, again[-1].time)
    await table.project(again[-1])
    assert await found(table) == []


async def test_one_that_was_removed_twice_and_never_shown_in_between(
    table: VisibilityTable, clock: StandingClock
) -> None:
    first = life(clock)
    await table.project(first[-1])
    for _ in range(2):
        clock.go(LIVE)
        late = life(clock)
        clock.go(LIVE)
        await table.remove(late[0].key, late[0].run_id, late[-1].time)
        await table.project(late[-1])
        assert await found(table) == []


async def test_the_clock_of_who_removes_it_may_be_behind(table: VisibilityTable, clock: StandingClock) -> None:
    first = life(clock)
    clock.go(-LIVE)
    await table.remove(first[0].key, first[0].run_id, first[-1].time)
    await table.project(first[-1])
    assert await found(table) == []


async def test_one_that_had_expired_and_is_in_the_table_still(table: VisibilityTable, clock: StandingClock) -> None:
    first = life(clock)
    await table.project(first[-1])
    clock.go(RETENTION + LIVE)
    assert await found(table) == []
    again = life(clock)
    await table.project(again[0])
    assert await found(table) == ["RUNNING"]
