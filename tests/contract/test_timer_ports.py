"""The contract of the timer feeders' ports: rows in buckets, leases by compare-and-swap, a queue with delay."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import NamedTuple

import pytest

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import Awaited, Layout, Partition, TimerRow
from stepwell_server.timer_sweeper.layouts import Layouts
from stepwell_server.timer_sweeper.ports import Delayed, DelayQueue, Lease, Leases, TimerBuckets
from tests.support.sample_commits import EPOCH
from tests.support.timer_ports import MemoryBuckets, MemoryDelayQueue, MemoryLeases

LAYOUT = Layout(1, 2)
KEYS = [ExecutionKey("default", f"w-{number}") for number in range(40)]


class TimerPorts(NamedTuple):
    rows: TimerBuckets
    leases: Leases
    queue: DelayQueue


@pytest.fixture(params=["memory", "aws"])
def ports_name(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name == "aws":
        request.getfixturevalue("cell")
    return name


@pytest.fixture
async def ports(request: pytest.FixtureRequest, ports_name: str) -> AsyncIterator[TimerPorts]:
    if ports_name == "memory":
        yield TimerPorts(MemoryBuckets(LAYOUT), MemoryLeases(), MemoryDelayQueue())
        return
    from stepwell_server.adapters.aws.client import AwsClients
    from stepwell_server.adapters.aws.sqs_delay_queue import SqsDelayQueue
    from stepwell_server.adapters.aws.timer_leases import TimerLeases
    from stepwell_server.adapters.aws.timer_rows import TimerRows

    names = request.getfixturevalue("cell").names
    clients = AwsClients()
    dynamodb = clients.service("dynamodb")
    yield TimerPorts(
        TimerRows(dynamodb, names.timer_table, Layouts((LAYOUT,))),
        TimerLeases(dynamodb, names.ctl_table),
        SqsDelayQueue(clients.service("sqs"), names.timer_queue),
    )
    await clients.close()


def row_at(key: ExecutionKey, ahead_ms: float, awaited: Awaited = buckets.UNKNOWN) -> TimerRow:
    return buckets.row(key, EPOCH + timedelta(milliseconds=ahead_ms), EPOCH, awaited)


async def read_all(rows: TimerBuckets, partition: Partition, from_ms: int, to_ms: int, limit: int) -> list[TimerRow]:
    found: list[TimerRow] = []
    for bucket in buckets.buckets(from_ms, to_ms):
        after = ""
        while True:
            page = await rows.read(partition, bucket, from_ms, to_ms, after=after, limit=limit)
            assert len(page.rows) <= limit
            found += page.rows
            after = page.after
            if not after:
                break
    return found


async def test_what_was_put_is_read_in_order_with_all_that_it_says(ports: TimerPorts) -> None:
    put = [row_at(key, 1_000 + 400 * number, Awaited(number + 1)) for number, key in enumerate(KEYS)]
    put[3] = put[3]._replace(awaited=Awaited(0, "run-1", 17, 4), queued=True)
    put[5] = row_at(KEYS[5], 3_000.5)
    await asyncio.gather(*(ports.rows.put(row) for row in put))
    start = buckets.to_ms(EPOCH)
    for partition in buckets.partitions_of(LAYOUT):
        mine = [row for row in put if row.partition(LAYOUT) == partition]
        found = await read_all(ports.rows, partition, start, start + 60_000, limit=3)
        assert found == sorted(mine, key=lambda row: row.sort_key)


async def test_a_span_has_its_first_millisecond_and_not_its_end(ports: TimerPorts) -> None:
    put = [row_at(KEYS[0], ahead) for ahead in (1_000, 1_999, 2_000, 2_001)]
    for row in put:
        await ports.rows.put(row)
    start = buckets.to_ms(EPOCH)
    found = await read_all(ports.rows, put[0].partition(LAYOUT), start + 1_999, start + 2_001, limit=9)
    assert found == put[1:3]


async def test_the_same_deadline_again_is_one_row_and_the_newer(ports: TimerPorts) -> None:
    first = row_at(KEYS[0], 1_000, Awaited(1))
    again = first._replace(awaited=Awaited(2), armed_ms=first.armed_ms + 5)
    await ports.rows.put(first)
    await ports.rows.put(again)
    start = buckets.to_ms(EPOCH)
    assert await read_all(ports.rows, first.partition(LAYOUT), start, start + 5_000, limit=9) == [again]


async def test_far_rows_stand_in_their_hour(ports: TimerPorts) -> None:
    far = row_at(KEYS[0], 3 * 86_400_000)
    await ports.rows.put(far)
    hour = buckets.bucket_of(far.place_ms, far=True)
    partition = far.partition(LAYOUT)
    assert partition.is_far
    page = await ports.rows.read(partition, hour, hour, hour + buckets.FAR_BUCKET_MS)
    assert page.rows == (far,) and page.after == ""


async def test_nothing_was_put_before_the_beginning(ports: TimerPorts) -> None:
    assert await ports.rows.since() >= 0


async def test_leases_change_by_compare_and_swap(ports: TimerPorts) -> None:
    leases, partition = ports.leases, Partition(1, 0)
    assert await leases.held(1) == []
    first = Lease(partition, "a", 1, 15_000, 7_000)
    assert await leases.change(first)
    assert await leases.change(first)  # repeated: its answer may have been lost
    assert not await leases.change(first._replace(owner="b"))
    assert not await leases.change(Lease(partition, "b", 3, 0, 0))
    second = Lease(partition, "b", 2, 30_000, 8_000)
    assert await leases.change(second)
    assert not await leases.change(Lease(partition, "a", 2, 30_000, 9_000))  # the stolen one's owner
    other = Lease(Partition(1, 1), "", 1, 0, 5)
    assert await leases.change(other)
    assert await leases.change(Lease(Partition(0, 1), "c", 1, 0, 5))
    assert sorted(await leases.held(1)) == [second, other]
    assert [lease.owner for lease in await leases.held(0)] == ["c"]


async def test_of_many_who_take_a_lease_at_once_one_has_it(ports: TimerPorts) -> None:
    wanted = [Lease(Partition(1, 0), f"o-{number}", 1, 15_000, 0) for number in range(12)]
    took = await asyncio.gather(*(ports.leases.change(lease) for lease in wanted))
    assert sum(took) == 1
    assert await ports.leases.held(1) == [wanted[took.index(True)]]


async def test_more_than_one_batch_can_be_sent(ports: TimerPorts) -> None:
    await ports.queue.send([])
    await ports.queue.send([Delayed(row_at(key, 1_000), number % 3) for number, key in enumerate(KEYS[:27])])
