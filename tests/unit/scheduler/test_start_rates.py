"""So many starts a second for each namespace, and turns for those that come too late (LC-42)."""

from datetime import timedelta

from stepwell_server.scheduler.start_rates import StartRates
from tests.support.scheduled import T0, HandClock

SECOND = timedelta(seconds=1)


def test_thirty_a_second() -> None:
    clock = HandClock()
    rates = StartRates(clock)
    assert rates.allowance("a") == (30, SECOND)
    rates.spend("a", 30, 0)
    assert rates.allowance("a") == (0, SECOND)
    assert rates.allowance("b") == (30, SECOND), "of another namespace"
    clock.time = T0 + SECOND / 2
    assert rates.allowance("a")[0] == 15


def test_each_that_waits_has_the_next_turn() -> None:
    clock = HandClock()
    rates = StartRates(clock)
    rates.spend("a", 30, 0)
    for _ in range(90):
        rates.spend("a", 0, 1)
    assert rates.allowance("a")[1] == 3 * SECOND
    rates.spend("a", 0, 1_000)
    assert rates.allowance("a")[1] == 4 * SECOND, "a schedule takes one second at a time"
    clock.time = T0 + 10 * SECOND
    assert rates.allowance("a") == (30, SECOND)
