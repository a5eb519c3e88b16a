"""Signals: order, buffering, handlers that come late, and messages that do not fit (WC-01, WC-02, MS-12 to MS-15)."""

import logging

import pytest
from stepwell import workflow
from stepwell.api.payloads import Payload

from tests.support.histories import Driver


@workflow.defn
class Collector:
    def __init__(self) -> None:
        self.numbers: list[int] = []

    @workflow.signal
    def add(self, number: int) -> None:
        self.numbers.append(number)

    @workflow.query
    def seen(self) -> list[int]:
        return self.numbers

    @workflow.run
    async def run(self, enough: int) -> list[int]:
        await workflow.wait_condition(lambda: len(self.numbers) >= enough)
        return self.numbers


def test_all_signals_of_a_task_are_handled_before_main_goes_on() -> None:
    d = Driver(Collector, 1, cache=False)
    d.task()
    for number in range(5):
        d.history.signal("add", number)
    d.task()
    assert d.value() == [0, 1, 2, 3, 4]
    d.replay()


def test_signals_before_the_first_task() -> None:
    d = Driver(Collector, 2)
    d.history.signal("add", 1)
    d.history.signal("add", 2)
    d.task()
    assert d.value() == [1, 2]


def test_bad_signals_are_skipped_with_one_warning_each(caplog: pytest.LogCaptureFixture) -> None:
    d = Driver(Collector, 1)
    d.task()
    d.history.signal("add", {"a": 1})
    d.history.signal_raw("add", (Payload(metadata={"encoding": "binary/strange"}, data=b"\x00"),))
    d.history.signal("unknown", 1)
    with caplog.at_level(logging.WARNING):
        assert d.task().commands == ()
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 3
    assert all("workflow wf-1 (Collector, run run-1)" in message for message in messages)
    assert "signal 'add', argument 'number'" in messages[0] and "Expected `int`, got `object`" in messages[0]
    assert "unknown encoding 'binary/strange'" in messages[1]
    assert "signal 'unknown' skipped: there is no handler of that name (handlers: add)" in messages[2]
    d.history.signal("add", 7)
    caplog.clear()
    d.task()
    assert d.value() == [7]
    with caplog.at_level(logging.WARNING):
        d.replay()
    assert not caplog.records


@workflow.defn
class Late:
    @workflow.run
    async def run(self) -> list[str]:
        got: list[str] = []
        await workflow.sleep(1)
        workflow.set_signal_handler("word", lambda text: got.append(text))
        await workflow.wait_condition(lambda: len(got) == 2)
        return got


def test_signals_wait_for_a_handler(caplog: pytest.LogCaptureFixture) -> None:
    d = Driver(Late, cache=False)
    d.history.signal("word", "a")
    d.history.signal("word", "b")
    d.task()
    d.history.timer_fired()
    d.task()
    assert d.value() == ["a", "b"]


@workflow.defn
async def shipping() -> str:
    shipped = await workflow.wait_for_signal("shipped", timeout=14 * 24 * 3600)
    return f"shipped {shipped}" if shipped else "lost"


def test_wait_for_signal_takes_what_came_before() -> None:
    d = Driver(shipping)
    d.history.signal("shipped", "by sea")
    d.task()
    assert d.value() == "shipped by sea"


def test_wait_for_signal_in_time_cancels_the_timer() -> None:
    d = Driver(shipping, cache=False)
    d.task()
    assert d.kinds() == ["StartTimer"]
    d.history.signal("shipped")
    d.task()
    assert d.kinds() == ["CancelTimer", "CompleteWorkflowExecution"]
    assert d.value() == "shipped True"
    d.replay()


def test_wait_for_signal_times_out_with_none() -> None:
    d = Driver(shipping, cache=False)
    d.task()
    d.history.pass_time(14 * 24 * 3600)
    d.history.timer_fired()
    d.task()
    assert d.value() == "lost"


def test_a_signal_that_comes_with_the_timeout_wins() -> None:
    d = Driver(shipping)
    d.task()
    d.history.timer_fired()
    d.history.signal("shipped", "late")
    d.task()
    assert d.value() == "shipped late"
    assert d.kinds() == ["CompleteWorkflowExecution"]


def test_a_signal_that_does_not_fit_is_skipped_while_waiting(caplog: pytest.LogCaptureFixture) -> None:
    @workflow.defn
    async def number() -> int | None:
        return await workflow.wait_for_signal("n", result_type=int)

    d = Driver(number)
    d.history.signal("n", "x")
    d.history.signal("n", 3)
    d.task()
    assert d.value() == 3
    assert "signal 'n' skipped" in caplog.text


@workflow.defn
class Slow:
    def __init__(self) -> None:
        self.done = 0

    @workflow.signal
    async def work(self, seconds: float) -> None:
        await workflow.sleep(seconds)
        self.done += 1

    @workflow.run
    async def run(self, wait: bool) -> int:
        await workflow.sleep(1)
        if wait:
            await workflow.wait_condition(workflow.all_handlers_finished)
        return self.done


def test_all_handlers_finished() -> None:
    d = Driver(Slow, True, cache=False)
    d.history.signal("work", 100.0)
    d.task()
    d.history.timer_fired("2")
    assert d.task().commands == ()
    d.history.timer_fired("1")
    d.task()
    assert d.value() == 1


def test_unfinished_handlers_are_told_about(caplog: pytest.LogCaptureFixture) -> None:
    d = Driver(Slow, False)
    d.history.signal("work", 100.0)
    d.task()
    d.history.timer_fired("2")
    d.task()
    assert d.value() == 0
    assert "these signal handlers were running: work" in caplog.text


@workflow.defn
class Careless:
    @workflow.signal(unfinished_policy=workflow.HandlerUnfinishedPolicy.ABANDON)
    async def work(self) -> None:
        await workflow.sleep(100)

    @workflow.run
    async def run(self) -> bool:
        await workflow.sleep(1)
        return workflow.all_handlers_finished()


def test_unfinished_handlers_may_be_abandoned_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    d = Driver(Careless)
    d.history.signal("work")
    d.task()
    d.history.timer_fired("2")
    d.task()
    assert d.value() is False
    assert caplog.text == ""


@workflow.defn
class Initialised:
    @workflow.init
    def __init__(self, names: list[str]) -> None:
        self.names = names

    @workflow.signal
    def add(self, name: str) -> None:
        self.names.append(name)

    @workflow.run
    async def run(self, names: list[str]) -> list[str]:
        return self.names


@pytest.mark.parametrize("cache", [True, False])
def test_a_signal_before_the_first_task_finds_the_arguments(cache: bool) -> None:
    d = Driver(Initialised, ["ann"], cache=cache)
    d.history.signal("add", "bob")
    d.task()
    assert d.value() == ["ann", "bob"]
    d.replay()


def test_a_condition_that_turns_true_with_its_timeout_is_true() -> None:
    @workflow.defn
    class Racing:
        ready = False

        @workflow.signal
        def go(self) -> None:
            self.ready = True

        @workflow.run
        async def run(self) -> str:
            await workflow.wait_condition(lambda: self.ready, timeout=5)
            return "in time"

    d = Driver(Racing)
    d.task()
    d.history.timer_fired()
    d.history.signal("go")
    d.task()
    assert d.value() == "in time"


@pytest.mark.parametrize(("holds", "expected"), [(True, "true"), (False, "timed out")])
def test_a_condition_with_timeout_zero(holds: bool, expected: str) -> None:
    @workflow.defn
    async def once(value: bool) -> str:
        try:
            await workflow.wait_condition(lambda: value, timeout=0)
        except TimeoutError:
            return "timed out"
        return "true"

    d = Driver(once, holds)
    d.task()
    assert d.value() == expected
    assert d.kinds() == ["CompleteWorkflowExecution"]
