"""So many starts a second for each namespace, and turns for those that come too late (LC-42)."""

from datetime import timedelta

from stepwell.api import requests as r
from stepwell.api.namespaces import NamespaceLimits

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemIds
from stepwell_server.namespaces.registry import Namespaces
from stepwell_server.scheduler.start_rates import StartRates
from tests.support.scheduled import T0, HandClock

SECOND = timedelta(seconds=1)


def nobodys(clock: HandClock) -> Namespaces:
    return Namespaces(None, clock, SystemIds())


async def limited(clock: HandClock, starts_per_second: float) -> Namespaces:
    backend = embedded_backend(":memory:")
    namespaces = Namespaces(backend.control, clock, backend.ids)
    limits = NamespaceLimits(starts_per_second=starts_per_second)
    await namespaces.register(r.RegisterNamespaceRequest(namespace="a", limits=limits))
    await backend.close()
    return namespaces


def test_thirty_a_second() -> None:
    clock = HandClock()
    rates = StartRates(nobodys(clock), clock)
    assert rates.allowance("a") == (30, SECOND)
    rates.spend("a", 30, 0)
    assert rates.allowance("a") == (0, SECOND)
    assert rates.allowance("b") == (30, SECOND), "of another namespace"
    clock.time = T0 + SECOND / 2
    assert rates.allowance("a")[0] == 15


def test_each_that_waits_has_the_next_turn() -> None:
    clock = HandClock()
    rates = StartRates(nobodys(clock), clock)
    rates.spend("a", 30, 0)
    for _ in range(90):
        rates.spend("a", 0, 1)
    assert rates.allowance("a")[1] == 3 * SECOND
    rates.spend("a", 0, 1_000)
    assert rates.allowance("a")[1] == 4 * SECOND, "a schedule takes one second at a time"
    clock.time = T0 + 10 * SECOND
    assert rates.allowance("a") == (30, SECOND)


async def test_schedules_take_from_what_callers_take_from() -> None:
    clock = HandClock()
    namespaces = await limited(clock, 10)
    rates, callers = StartRates(namespaces, clock), namespaces.starts("a")
    assert callers is not None
    assert rates.allowance("a")[0] == 20 and rates.allowance("b")[0] == 30
    rates.spend("a", 18, 0)
    assert callers.available(clock.monotonic()) == 2
    callers.pay(2)
    clock.time = T0 + 60 * SECOND
    assert rates.allowance("a")[0] == 20 and callers.available(clock.monotonic()) == 20


async def test_callers_who_take_every_start_leave_half_to_schedules_and_no_more() -> None:
    """And the rate holds for both together."""
    clock = HandClock()
    namespaces = await limited(clock, 10)
    rates, callers = StartRates(namespaces, clock), namespaces.starts("a")
    assert callers is not None
    started = called = 0
    for step in range(1_000):
        clock.time = T0 + step * SECOND / 10
        taken = callers.available(clock.monotonic())
        callers.owe(taken)
        called += taken
        allowed, _ = rates.allowance("a")
        rates.spend("a", min(allowed, 3), 1)
        started += min(allowed, 3)
    assert 490 <= started <= 510 and 490 <= called <= 520


async def test_the_next_turn_is_as_far_as_the_namespaces_rate_has_it() -> None:
    clock = HandClock()
    rates = StartRates(await limited(clock, 0.1), clock)
    rates.spend("a", 1, 1)
    assert rates.allowance("a") == (0, 10 * SECOND)
    clock.time = T0 + 20 * SECOND
    assert rates.allowance("a") == (1, SECOND)
