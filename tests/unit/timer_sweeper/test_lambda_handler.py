"""The functions: partial failures, early and failing messages go back, what is no deadline is dropped by name."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import Gathered, Series
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.timer_sweeper import buckets
from stepwell_server.timer_sweeper.buckets import Awaited, Layout, TimerRow
from stepwell_server.timer_sweeper.due_messages import TRIES, DueMessages
from stepwell_server.timer_sweeper.lambda_handler import TickFailed, tick_handler, timers_handler
from stepwell_server.timer_sweeper.messages import encode
from stepwell_server.timer_sweeper.minute_tick import MinuteTick
from stepwell_server.timer_sweeper.ports import lag_recorder
from tests.support.timer_ports import MemoryBuckets, MemoryDelayQueue, MemoryLeases


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 11, 30, 12, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()


class Functions:
    """Both functions over ports in memory; ``outcome`` says what a firing does."""

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self.clock = Clock()
        self.rows = MemoryBuckets(Layout(), buckets.to_ms(self.clock.now()) - 60_000)
        self.leases = MemoryLeases()
        self.queue = MemoryDelayQueue()
        self.outcome: dict[str, bool | Exception] = {}
        self.fired: list[str] = []
        self.lags: list[float] = []
        messages = DueMessages(self.rows, self.queue, self.clock, self._fire, self.lags.append)
        self.metrics = Gathered()
        self.handler = timers_handler(messages, run, self.metrics)
        self.tick = tick_handler(MinuteTick(self.rows, self.leases, self.queue, self.clock), run)

    async def _fire(self, row: TimerRow) -> bool:
        self.fired.append(row.key.workflow_id)
        outcome = self.outcome.get(row.key.workflow_id, True)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def row(self, name: str, ahead: float = 0.0, age: float = 0.0) -> TimerRow:
        now = self.clock.now()
        row = buckets.row(ExecutionKey("default", name), now + timedelta(seconds=ahead), now, Awaited(1))
        return row._replace(armed_ms=row.armed_ms - round(age * 1_000))

    def deliver(self, *bodies: str, deliveries: int = 1) -> set[str]:
        """Message ids that are reported as failed."""
        records = [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"r{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(deliveries)},
                "eventSource": "aws:sqs",
            }
            for number, body in enumerate(bodies)
        ]
        response = self.handler({"Records": records}, None)
        return {failure["itemIdentifier"] for failure in response["batchItemFailures"]}


@pytest.fixture
def functions() -> Iterator[Functions]:
    loop = asyncio.new_event_loop()
    yield Functions(loop.run_until_complete)
    loop.close()


def test_only_what_must_come_again_is_reported(functions: Functions) -> None:
    functions.outcome["bad"] = StoreUnavailable("throttled")
    bodies = [encode(functions.row(name)) for name in ("good", "bad", "other")]
    assert functions.deliver(*bodies) == {"m1"}
    assert sorted(functions.fired) == ["bad", "good", "other"]
    assert functions.queue.postponed == [("r1", 1)]
    assert functions.lags == [0.0, 0.0, 0.0]
    assert functions.deliver(*bodies) == {"m1"}  # the processor keeps nothing from call to call


def test_all_may_fail_without_failing_the_call(functions: Functions) -> None:
    functions.outcome["bad"] = StoreUnavailable("throttled")
    assert functions.deliver(encode(functions.row("bad")), deliveries=3) == {"m0"}
    assert functions.queue.postponed == [("r0", 4)]


def test_a_message_that_comes_early_waits_in_the_queue(functions: Functions) -> None:
    assert functions.deliver(encode(functions.row("early", ahead=2.1))) == {"m0"}
    assert functions.fired == [] and functions.queue.postponed == [("r0", 3)]


def test_one_whose_write_may_still_come_is_kept_until_it_is_a_minute_old(functions: Functions) -> None:
    functions.outcome["young"] = functions.outcome["old"] = False
    bodies = [encode(functions.row("young", age=50)), encode(functions.row("old", age=60))]
    assert functions.deliver(*bodies, deliveries=7) == {"m0"}
    assert functions.queue.postponed == [("r0", 60)]


def test_one_that_a_slow_clock_has_armed_is_kept_for_a_minute_as_well(functions: Functions) -> None:
    functions.outcome["slow"] = functions.outcome["old"] = False
    bodies = [encode(functions.row("slow", age=240)), encode(functions.row("old", age=360))]
    assert functions.deliver(*bodies, deliveries=6) == {"m0"}
    assert functions.deliver(*bodies, deliveries=7) == set()


def test_what_cannot_be_fired_for_long_is_armed_anew_beyond_the_reach_of_the_tick(functions: Functions) -> None:
    functions.outcome["bad"] = StoreUnavailable("throttled")
    row = functions.row("bad")
    assert functions.deliver(encode(row), deliveries=TRIES) == set()
    (again,) = functions.rows.all()
    assert (again.key, again.fire_at, again.awaited, again.queued) == (row.key, row.fire_at, row.awaited, False)
    assert again.place_ms - row.place_ms > 120_000


def test_when_it_cannot_be_armed_anew_either_the_message_stays(functions: Functions) -> None:
    functions.outcome["bad"] = StoreUnavailable("throttled")

    async def put(row: TimerRow) -> None:
        raise StoreUnavailable("throttled as well")

    functions.rows.put = put  # type: ignore[method-assign]
    assert functions.deliver(encode(functions.row("bad")), deliveries=TRIES) == {"m0"}


def test_what_fails_is_counted_and_what_waits_on_purpose_is_not(functions: Functions) -> None:
    functions.outcome["young"] = False
    bodies = [encode(functions.row("young", age=50)), encode(functions.row("early", ahead=2.1))]
    assert functions.deliver(*bodies) == {"m0", "m1"}
    assert functions.metrics.take() == []
    functions.outcome["bad"] = functions.outcome["worse"] = StoreUnavailable("throttled")
    functions.deliver(*(encode(functions.row(name)) for name in ("good", "bad", "worse")))
    assert functions.metrics.take() == [Series(names.FAILED_RECORDS, {}, (2.0,))]


def test_lags_become_the_metric_in_milliseconds() -> None:
    metrics = Gathered()
    record = lag_recorder(metrics)
    record(1.5)
    record(-0.2)
    assert metrics.take() == [Series(names.TIMER_LAG, {}, (1_500.0, 0.0))]


def test_what_is_no_deadline_is_dropped_by_name_without_its_text(
    functions: Functions, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        assert functions.deliver('{"secret": 1}', encode(functions.row("good"))) == set()
    assert "m0" in caplog.text and "secret" not in caplog.text
    assert functions.fired == ["good"]


def test_a_tick_reports_and_fails_when_partitions_were_left(functions: Functions) -> None:
    assert functions.tick({}, None) == {"sent": 0, "swept": 0, "behind_seconds": 0.0}

    async def since() -> int:
        raise StoreUnavailable("down")

    functions.leases.leases.clear()
    functions.rows.since = since  # type: ignore[method-assign]
    with pytest.raises(TickFailed, match=r"20 partitions .* down"):
        functions.tick({}, None)
