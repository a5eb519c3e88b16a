"""The layouts of the timer table in the control table, as processes find, note and learn them."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.timer_layouts import TimerLayouts
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.common.clock import Clock
from stepwell_server.entrypoints.aws_parts import open_parts
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.buckets import Layout, to_ms
from stepwell_server.timer_sweeper.layouts import BEGINS_IN_MS, FRESH_MS
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from tests.support.aws.cells import Cell
from tests.support.aws.clock import StandingClock
from tests.support.aws.fault_proxy import fault_proxy
from tests.support.timer_ports import MemoryDelayQueue

NOW = datetime.fromisoformat("2026-11-30T12:00:00+00:00")
BEGINS = timedelta(milliseconds=BEGINS_IN_MS)
SECOND = Layout(2, 8, to_ms(NOW + BEGINS))


@pytest.fixture
async def clients(cell: Cell) -> AsyncIterator[AwsClients]:
    made = AwsClients()
    yield made
    await made.close()


def layouts_of(cell: Cell, clients: AwsClients, clock: Clock) -> TimerLayouts:
    """Of one process."""
    return TimerLayouts(clients.service("dynamodb"), cell.names.ctl_table, clock)


async def test_with_nothing_noted_there_is_the_first_and_nothing_is_written(cell: Cell, clients: AwsClients) -> None:
    layouts = layouts_of(cell, clients, StandingClock(NOW))
    await layouts.open(4)
    assert layouts.known == (Layout(1, 4),)
    answer = await clients.service("dynamodb").call("scan", TableName=cell.names.ctl_table)
    assert answer["Items"] == []


async def test_many_processes_that_are_told_more_note_it_once(cell: Cell, clients: AwsClients) -> None:
    opened = [layouts_of(cell, clients, StandingClock(NOW)) for _ in range(6)]
    await asyncio.gather(*(each.open(8) for each in opened))
    assert {each.known for each in opened} == {(Layout(1, 4), SECOND)}
    later = StandingClock(NOW + timedelta(hours=1))
    third = layouts_of(cell, clients, later)
    await third.open(20)
    assert third.known == (Layout(1, 4), SECOND, Layout(3, 20, to_ms(later.now() + BEGINS)))


async def test_who_is_told_fewer_says_so_and_goes_on_with_what_there_is(
    cell: Cell, clients: AwsClients, caplog: pytest.LogCaptureFixture
) -> None:
    """A deployment that is rolled back starts processes with the number before: they must serve."""
    await layouts_of(cell, clients, StandingClock(NOW)).open(8)
    layouts = layouts_of(cell, clients, StandingClock(NOW))
    with caplog.at_level(logging.WARNING):
        await layouts.open(4)
    assert layouts.known == (Layout(1, 4), SECOND)
    assert "STEPWELL_TIMER_PARTITIONS is 4, and the timer table has 8 partitions" in caplog.text


async def test_a_process_that_runs_learns_of_it_within_a_minute(cell: Cell, clients: AwsClients) -> None:
    clock = StandingClock(NOW)
    layouts = layouts_of(cell, clients, clock)
    await layouts.open(4)
    await layouts_of(cell, clients, clock).open(8)
    await layouts.refresh()
    assert layouts.known == (Layout(1, 4),), "it has looked a moment ago"
    clock.go(timedelta(milliseconds=FRESH_MS))
    await layouts.refresh()
    assert layouts.known == (Layout(1, 4), SECOND)


async def test_an_answer_that_is_lost_behind_a_note_that_stands(cell: Cell) -> None:
    async with fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 1) as proxy:
        proxy.planned.append("cut")
        clients = AwsClients(endpoint_url=proxy.url)
        layouts = layouts_of(cell, clients, StandingClock(NOW))
        await layouts.open(8)
        assert layouts.known == (Layout(1, 4), SECOND)
        assert proxy.done["cut"] == 1
        await clients.close()


async def test_rows_of_the_layout_before_are_found_beside_those_of_the_new_one(cell: Cell, clients: AwsClients) -> None:
    clock, queue = StandingClock(NOW), MemoryDelayQueue()
    dynamodb = clients.service("dynamodb")
    layouts = layouts_of(cell, clients, clock)
    await layouts.open(4)
    rows = TimerRows(dynamodb, cell.names.timer_table, layouts)
    arming = Arming(rows, clock)
    due = NOW + BEGINS + timedelta(seconds=90)
    keys = [ExecutionKey("default", f"w{number}") for number in range(12)]
    for key in keys[:6]:
        await arming.arm(key, due)
    await layouts.open(8)
    clock.go(BEGINS)
    for key in keys[6:]:
        await arming.arm(key, due)
    stored = (await dynamodb.call("scan", TableName=cell.names.timer_table))["Items"]
    assert sorted(item["pk"]["S"][:2] for item in stored) == ["1#"] * 6 + ["2#"] * 6

    another = layouts_of(cell, clients, clock)
    await another.open(8)
    leases = TimerLeases(dynamodb, cell.names.ctl_table)
    rows = TimerRows(dynamodb, cell.names.timer_table, another)
    report = await MinuteTick(rows, leases, queue, clock, another).run()
    assert (report.failures, {each.row.key for each in queue.sent}) == ([], set(keys))
    assert len(await leases.held(1)) == 4 and len(await leases.held(2)) == 8


async def test_processes_are_opened_with_the_number_of_their_environment(cell: Cell) -> None:
    given = {**cell.variables, "STEPWELL_TIMER_PARTITIONS": "16"}
    parts = await open_parts(AwsSettings.from_environment(given), stays=False)
    assert [each.partitions for each in parts.layouts.known] == [4, 16]
    await parts.backend.close()
    parts = await open_parts(AwsSettings.from_environment(cell.variables), stays=True)
    assert [each.partitions for each in parts.layouts.known] == [4, 16]
    await parts.backend.close()
