"""Timeouts that share a timer: each comes in its time, or not at all."""

import asyncio
import heapq
from collections.abc import Iterator

import pytest

from stepwell_server.common.timeouts import Timeouts


class _Loop(asyncio.SelectorEventLoop):
    """Nothing but timers: its time is that of the next one."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def run_all(self) -> None:
        """Until nothing is scheduled."""
        while True:
            self.call_soon(self.stop)
            self.run_forever()
            if self._ready:  # type: ignore[attr-defined]
                continue
            timers = [timer for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
            if not timers:
                return
            self.now = heapq.nsmallest(1, [timer.when() for timer in timers])[0]


@pytest.fixture
def loop() -> Iterator[_Loop]:
    loop = _Loop()
    yield loop
    loop.close()


def test_each_comes_at_its_time(loop: _Loop) -> None:
    timeouts, came = Timeouts(), []

    async def begin() -> None:
        for seconds in (3.0, 1.0, 2.0, 1.0):
            timeouts.after(seconds, lambda after: came.append((after, loop.now)), seconds)

    loop.run_until_complete(begin())
    loop.run_all()
    assert came == [(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]


def test_what_is_called_off_does_not_come_and_nothing_is_kept_of_it(loop: _Loop) -> None:
    timeouts, came = Timeouts(), []

    async def begin() -> None:
        timeouts.after(500.0, came.append, "stays")
        for number in range(10_000):
            timeouts.call_off(timeouts.after(10.0 + number % 100, came.append, number))

    loop.run_until_complete(begin())
    assert len(timeouts._heap) < 1_100
    loop.run_all()
    assert came == ["stays"]
    assert not timeouts._heap
    assert not timeouts._waiting


def test_one_that_comes_may_call_off_another_that_is_due(loop: _Loop) -> None:
    timeouts, came = Timeouts(), []

    async def begin() -> None:
        timeouts.after(1.0, lambda: timeouts.call_off(second))
        second = timeouts.after(1.0, came.append, "second")
        timeouts.after(1.0, lambda: timeouts.after(1.0, came.append, "later"))

    loop.run_until_complete(begin())
    loop.run_all()
    assert came == ["later"]
    assert loop.now == 2.0


def test_one_that_fails_keeps_no_other_back(loop: _Loop) -> None:
    timeouts, came, told = Timeouts(), [], []
    loop.set_exception_handler(lambda loop, context: told.append(context["exception"]))

    async def begin() -> None:
        timeouts.after(1.0, lambda: 1 / 0)
        timeouts.after(1.0, came.append, "second")

    loop.run_until_complete(begin())
    loop.run_all()
    assert came == ["second"]
    assert [type(error) for error in told] == [ZeroDivisionError]
