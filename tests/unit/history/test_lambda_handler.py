"""The feed as a function: failures are reported alone, the rest of a batch is done, and nothing outlives the call."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import Gathered, Series
from stepwell_server.history import lambda_handler
from stepwell_server.history.feed import FeedRecord
from stepwell_server.history.lambda_handler import FeedHandler


class FeedOf:
    """Handles numbers: negative ones fail, 99 never ends."""

    def __init__(self) -> None:
        self.handled: list[int] = []
        self.settled: list[float] = []
        self.settles = True

    async def handle(self, record: FeedRecord) -> None:
        number: int = record.seq
        if number == 99:
            await asyncio.Event().wait()
        self.handled.append(number)
        if number < 0:
            raise OSError(f"record {number}")

    async def settle(self, seconds: float) -> bool:
        self.settled.append(seconds)
        return self.settles


def parse(record: Mapping[str, Any]) -> FeedRecord | None:
    number = record["dynamodb"]["number"]
    if number == 13:
        raise KeyError("no record of this table")
    return None if number == 0 else FeedRecord(None, number, None, True, None)  # type: ignore[arg-type]


def event(*numbers: int) -> dict[str, Any]:
    return {
        "Records": [
            {"eventName": "INSERT", "dynamodb": {"SequenceNumber": str(at), "number": number}}
            for at, number in enumerate(numbers)
        ]
    }


class Context:
    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds

    def get_remaining_time_in_millis(self) -> int:
        return self.milliseconds


@pytest.fixture
def feed() -> FeedOf:
    return FeedOf()


@pytest.fixture
def handler(feed: FeedOf) -> FeedHandler:
    return FeedHandler(feed, parse, asyncio.run, feed.settle)  # type: ignore[arg-type]


def failed(answer: Any) -> list[str]:
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_batch_without_failures(handler: FeedHandler, feed: FeedOf) -> None:
    assert failed(handler(event(1, 2, 0, 3))) == []
    assert sorted(feed.handled) == [1, 2, 3] and len(feed.settled) == 1


def test_what_fails_is_reported_alone_and_holds_up_nothing(
    handler: FeedHandler, feed: FeedOf, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed(handler(event(1, -2, 3, 13, 5))) == ["1", "3"]
    assert sorted(feed.handled) == [-2, 1, 3, 5]
    assert "Record 1 of the stream" in caplog.text


def test_a_batch_that_fails_as_a_whole_says_which(handler: FeedHandler) -> None:
    assert failed(handler(event(-1, -2))) == ["0", "1"]


def test_the_same_record_twice_in_a_batch(handler: FeedHandler) -> None:
    batch = event(1, -2)
    batch["Records"].append(dict(batch["Records"][1]))
    assert failed(handler(batch)) == ["1", "1"]


def test_what_is_not_done_in_time_fails_and_the_rest_does_not(
    handler: FeedHandler, feed: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lambda_handler, "_AT_ONCE", 1)
    assert failed(handler(event(1, 99, 2), Context(2_100))) == ["1", "2"], "what waits behind it is not done either"
    assert feed.handled == [1]


def test_work_that_is_left_in_the_background_is_waited_for(
    handler: FeedHandler, feed: FeedOf, caplog: pytest.LogCaptureFixture
) -> None:
    feed.settles = False
    handler(event(1), Context(30_000))
    assert 20 < feed.settled[0] < 29
    assert "deadlines" in caplog.text


def test_records_that_fail_are_counted_and_others_are_not(feed: FeedOf) -> None:
    metrics = Gathered()
    handler = FeedHandler(feed, parse, asyncio.run, feed.settle, metrics)  # type: ignore[arg-type]
    handler(event(1, 0, 2))
    assert metrics.take() == []
    handler(event(1, -2, 13, 4))
    assert metrics.take() == [Series(names.FAILED_RECORDS, {}, (2.0,))]
