"""The contract of PollersSeen."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from stepwell.api.enums import TaskQueueKind

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.poller_items import PollerItems
from stepwell_server.matching.queue_name import QueueName
from tests.support.aws.cells import Cell
from tests.support.aws.clock import StandingClock
from tests.support.sample_commits import EPOCH

ORDERS = QueueName("default", "orders", TaskQueueKind.WORKFLOW)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock(EPOCH)


@pytest.fixture
async def seen(cell: Cell, clock: StandingClock) -> AsyncIterator[PollerItems]:
    clients = AwsClients()
    yield PollerItems(clients.service("dynamodb"), cell.names.ctl_table, clock)
    await clients.close()


async def test_who_was_noted_lately_polls_that_queue(seen: PollerItems, clock: StandingClock) -> None:
    await seen.note(ORDERS, "one", clock.now() - timedelta(minutes=6))
    await seen.note(ORDERS, "two", clock.now() - timedelta(minutes=4))
    await seen.note(ORDERS, "three", clock.now() - timedelta(minutes=4))
    await seen.note(ORDERS, "three", clock.now())
    found = {poller.identity: poller.last_access_time for poller in await seen.pollers(ORDERS)}
    assert found == {"two": EPOCH - timedelta(minutes=4), "three": EPOCH}


async def test_queues_kinds_and_namespaces_are_apart(seen: PollerItems, clock: StandingClock) -> None:
    await seen.note(ORDERS, "one", clock.now())
    for other in (
        ORDERS._replace(namespace="billing"),
        ORDERS._replace(task_queue="orders2"),
        ORDERS._replace(kind=TaskQueueKind.ACTIVITY),
    ):
        assert await seen.pollers(other) == []


async def test_those_of_all_queues_of_a_namespace(seen: PollerItems, clock: StandingClock) -> None:
    long = "q" * 1_000
    there = [
        (ORDERS, "one"),
        (ORDERS, "two"),
        (ORDERS._replace(kind=TaskQueueKind.ACTIVITY), "one"),
        (ORDERS._replace(task_queue=long), "w" * 1_000),
        (ORDERS._replace(task_queue=long + "q"), "one"),
    ]
    for name, identity in there:
        await seen.note(name, identity, clock.now())
    await seen.note(ORDERS, "silent", clock.now() - timedelta(minutes=6))
    await seen.note(ORDERS._replace(namespace="billing"), "one", clock.now())
    found = await seen.in_namespace("default", 5)
    assert found is not None
    assert sorted((name, poller.identity) for name, poller in found) == sorted(there)
    assert await seen.in_namespace("default", 4) is None


async def test_a_queue_that_calls_its_workers_is_known_for_months(seen: PollerItems, clock: StandingClock) -> None:
    assert not await seen.is_called(ORDERS)
    await seen.note_called(ORDERS, clock.now() - timedelta(days=89))
    assert await seen.is_called(ORDERS) and await seen.pollers(ORDERS) == []
    assert not await seen.is_called(ORDERS._replace(kind=TaskQueueKind.ACTIVITY))
    await seen.note_called(ORDERS, clock.now() - timedelta(days=91))
    assert not await seen.is_called(ORDERS)


@pytest.mark.parametrize("identity", ["", "#", "w" * 5_000, "日本 worker"])
async def test_identities_may_be_any_text(seen: PollerItems, clock: StandingClock, identity: str) -> None:
    await seen.note(ORDERS, identity, clock.now())
    assert [poller.identity for poller in await seen.pollers(ORDERS)] == [identity]
