"""The container's reader of the stream: nothing is left out, whatever becomes of shards, readers and records."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from stepwell_server.adapters.aws import stream_reader
from stepwell_server.adapters.aws.shard_leases import ShardLeases
from stepwell_server.adapters.aws.stream_reader import StreamReader
from stepwell_server.adapters.aws.stream_records import Record
from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.ports import StoreUnavailable
from tests.support.aws.streams import EmulatedStream, MemoryLeases

UNAVAILABLE = StoreUnavailable("throttled")


class Consumer:
    def __init__(self) -> None:
        self.handled: list[str] = []
        self.aside: list[str] = []
        self.fail: dict[str, list[Exception]] = {}
        self.fail_aside: list[Exception] = []

    async def handle(self, record: Record) -> None:
        name = record["dynamodb"]["Keys"]["pk"]["S"]
        if self.fail.get(name):
            raise self.fail[name].pop()
        self.handled.append(name)

    async def set_aside(self, record: Record, shard_id: str, error: Exception) -> None:
        if self.fail_aside:
            raise self.fail_aside.pop()
        self.aside.append(record["dynamodb"]["Keys"]["pk"]["S"])


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LOOK_SECONDS", "_IDLE_SECONDS", "_FIRST_PAUSE", "_LAST_PAUSE"):
        monkeypatch.setattr(stream_reader, name, 0.005)


@pytest.fixture
def stream() -> EmulatedStream:
    stream = EmulatedStream()
    stream.add_shard("a")
    return stream


@pytest.fixture
def leases() -> MemoryLeases:
    return MemoryLeases()


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@asynccontextmanager
async def reading(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, owner: str = "one"
) -> AsyncIterator[StreamReader]:
    shard_leases: ShardLeases = leases  # type: ignore[assignment]
    reader = StreamReader(
        stream,  # type: ignore[arg-type]
        "arn",
        shard_leases,
        consumer.handle,
        consumer.set_aside,
        SystemClock(),
        owner,
        lambda error: isinstance(error, StoreUnavailable),
    )
    reader.start()
    yield reader
    await reader.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def test_what_was_written_before_a_reader_came_is_read_and_what_comes_later(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    stream.put("a", "before")
    async with reading(stream, leases, consumer):
        await until(lambda: consumer.handled == ["before"])
        stream.put("a", "after")
        await until(lambda: consumer.handled == ["before", "after"])
        await until(lambda: leases.leases["a"].after.endswith("2"))


async def test_a_child_is_read_behind_its_parent_also_when_it_has_records_first(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    stream.add_shard("b", "a")
    for number in range(450):
        stream.put("a", f"a{number}")
    stream.put("b", "b0")
    stream.closed.add("a")
    async with reading(stream, leases, consumer):
        await until(lambda: "b0" in consumer.handled)
    assert consumer.handled.index("b0") == 450 and leases.leases["a"].done


async def test_a_reader_that_follows_goes_on_where_the_last_one_was(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    stream.put("a", "1")
    async with reading(stream, leases, consumer):
        await until(lambda: leases.leases.get("a") is not None and bool(leases.leases["a"].after))
    stream.put("a", "2")
    leases.leases["a"] = leases.leases["a"]._replace(until_ms=0)  # its lease has run out
    async with reading(stream, leases, consumer, "two"):
        await until(lambda: "2" in consumer.handled)
    assert consumer.handled == ["1", "2"]


async def test_a_shard_is_read_by_one_of_two_readers(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    async with reading(stream, leases, consumer, "one"), reading(stream, leases, consumer, "two"):
        for number in range(100):
            stream.put("a", str(number))
            await asyncio.sleep(0)
        await until(lambda: len(consumer.handled) >= 100)
        await asyncio.sleep(0.05)
    assert max(Counter(consumer.handled).values()) == 1


async def test_a_reader_whose_lease_was_taken_stops_at_its_next_checkpoint(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    async with reading(stream, leases, consumer):
        await until(lambda: "a" in leases.leases)
        far = leases.leases["a"].changed("two", 2**62)
        leases.leases["a"] = far
        stream.put("a", "1")
        await until(lambda: consumer.handled == ["1"])
        stream.put("a", "2")
        await asyncio.sleep(0.05)
    assert consumer.handled == ["1"] and leases.leases["a"] == far


async def test_without_checkpoints_all_is_read_again_and_nothing_left_out(
    stream: EmulatedStream, consumer: Consumer
) -> None:
    for name in ("1", "2"):
        async with reading(stream, MemoryLeases(), consumer):
            stream.put("a", name)
            await until(lambda name=name: name in consumer.handled)
    assert Counter(consumer.handled) == {"1": 2, "2": 1}


async def test_expired_iterators_are_made_anew_behind_the_checkpoint(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer
) -> None:
    async with reading(stream, leases, consumer):
        for number in range(3):
            stream.put("a", str(number))
            await until(lambda number=number: len(consumer.handled) == number + 1)
            stream.expire_iterators()
    assert consumer.handled == ["0", "1", "2"]


async def test_what_was_trimmed_is_passed_over_loudly(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(5):
        stream.put("a", str(number))
    async with reading(stream, leases, consumer):
        await until(lambda: bool(leases.leases) and leases.leases["a"].after.endswith("5"))
    for number in range(5, 9):
        stream.put("a", str(number))
    stream.trim("a", 7)
    leases.leases["a"] = leases.leases["a"]._replace(until_ms=0)
    async with reading(stream, leases, consumer):
        await until(lambda: "8" in consumer.handled)
    assert consumer.handled == [*map(str, range(5)), "7", "8"] and "deadlines" in caplog.text


async def test_a_poison_record_is_set_aside_and_the_shard_goes_on(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.fail = {"poison": [ValueError("unreadable")] * 99, "shaky": [OSError("once"), OSError("twice")]}
    for name in ("1", "poison", "shaky", "2"):
        stream.put("a", name)
    async with reading(stream, leases, consumer):
        await until(lambda: bool(leases.leases) and leases.leases["a"].after.endswith("4"))
        assert sorted(consumer.handled) == ["1", "2", "shaky"]
        stream.put("a", "3")
        await until(lambda: "3" in consumer.handled)
    assert consumer.aside == ["poison"] and "is set aside" in caplog.text
    assert len(consumer.fail["poison"]) == 99 - 5


async def test_what_cannot_even_be_kept_holds_up_nothing(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.fail = {"poison": [ValueError("unreadable")] * 99}
    consumer.fail_aside = [OSError("no queue")] * 99
    stream.put("a", "poison")
    stream.put("a", "1")
    async with reading(stream, leases, consumer):
        await until(lambda: bool(leases.leases) and leases.leases["a"].after.endswith("2"))
    assert consumer.handled == ["1"] and "kept nowhere" in caplog.text


async def test_an_outage_sets_nothing_aside(stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer) -> None:
    consumer.fail = {"1": [UNAVAILABLE] * 20}
    stream.put("a", "1")
    stream.raises = {name: [UNAVAILABLE] * 3 for name in ("describe_stream", "get_shard_iterator", "get_records")}
    async with reading(stream, leases, consumer):
        await until(lambda: consumer.handled == ["1"])
        leases.raises = [UNAVAILABLE] * 3
        stream.put("a", "2")
        await until(lambda: leases.leases["a"].after.endswith("2"))
    assert consumer.aside == []


async def test_an_error_that_should_pass_and_does_not_holds_up_the_shard_for_minutes_only(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "_PASSES_SECONDS", 0.05)
    consumer.fail = {"stuck": [UNAVAILABLE] * 10_000}
    stream.put("a", "stuck")
    async with reading(stream, leases, consumer):
        stream.put("a", "1")
        await until(lambda: consumer.handled == ["1"] and consumer.aside == ["stuck"])


async def test_a_lease_is_renewed_while_records_take_long(
    stream: EmulatedStream, leases: MemoryLeases, consumer: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "LEASE", timedelta(seconds=0.15))
    consumer.fail = {"slow": [UNAVAILABLE] * 60}
    stream.put("a", "slow")
    async with reading(stream, leases, consumer, "one"), reading(stream, leases, consumer, "two"):
        await until(lambda: consumer.handled == ["slow"])
        await asyncio.sleep(0.05)
    assert consumer.handled == ["slow"] and leases.leases["a"].counter > 2
