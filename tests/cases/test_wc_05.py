"""WC-05: backoff arithmetic: overflow, caps and gaps that shrink."""

import asyncio
import itertools
import time
from collections import defaultdict
from datetime import timedelta
from typing import Any

import pytest
from stepwell import activity, workflow
from stepwell.api.enums import PendingActivityState
from stepwell.api.requests import PendingActivityInfo
from stepwell.common import RetryPolicy
from stepwell.exceptions import ApplicationError

from tests.support.cases import ATTEMPT, EVERYWHERE, IN_PROCESS, Case, until

CLOCK = 0.002
"""Seconds by which two readings of a clock may be off: database times have milliseconds."""


@workflow.defn
class Stubborn:
    """One activity that fails at once until a certain attempt; meanwhile signals come and other activities run."""

    def __init__(self) -> None:
        self.others = 0

    @workflow.signal
    async def nudge(self) -> None:
        done = await workflow.execute_activity("other", start_to_close_timeout=ATTEMPT, result_type=int)
        self.others += done

    @workflow.run
    async def run(self, key: str, succeed_at: int, initial: float, coefficient: float, maximum: float | None) -> int:
        await workflow.execute_activity(
            "fail",
            args=[key, succeed_at],
            start_to_close_timeout=ATTEMPT,
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=initial),
                backoff_coefficient=coefficient,
                maximum_interval=None if maximum is None else timedelta(seconds=maximum),
            ),
        )
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.others


class Attempts:
    """The activities, and when the failing one was started."""

    def __init__(self) -> None:
        self.started: dict[str, list[float]] = defaultdict(list)

    @activity.defn(name="fail")
    async def fail(self, key: str, succeed_at: int) -> None:
        self.started[key].append(time.monotonic())
        assert activity.info().attempt == len(self.started[key])
        if activity.info().attempt < succeed_at:
            raise ApplicationError("not yet", type="NotYet")

    @activity.defn(name="other")
    async def other(self) -> int:
        return 1

    def gaps(self, key: str) -> list[float]:
        times = self.started[key]
        return [after - before for before, after in itertools.pairwise(times)]


def expected(initial: float, coefficient: float, maximum: float | None, count: int) -> list[float]:
    """As documented: initial x coefficient^(n-1), at most the maximum, which is 100 initial intervals by default."""
    cap = 100 * initial if maximum is None else maximum
    found, gap = [], initial
    for _ in range(count):
        found.append(min(gap, cap))
        gap = min(gap * coefficient, cap)  # no power: it could overflow here as well
    return found


def check(gaps: list[float], wanted: list[float]) -> None:
    """No gap is shorter than asked for. Longer ones are the machine's: a quarter must be near what was asked for."""
    assert len(gaps) == len(wanted)
    short = [(gap, want) for gap, want in zip(gaps, wanted, strict=True) if gap < want - CLOCK]
    assert short == []
    slack = sorted(gap - want for gap, want in zip(gaps, wanted, strict=True))
    assert slack[len(slack) // 4] < 0.25, slack


PLANS: dict[str, tuple[int, float, float, float | None]] = {
    "a: the product is more than a duration can be": (16, 0.001, 1_000_000.0, None),
    "a: the power is more than a float can be": (16, 0.001, 1e40, None),
    "b": (4, 0.2, 2.0, 3600.0),
    "all at the maximum": (8, 0.05, 1.0, 0.05),
}


async def test_gaps(case: Case) -> None:
    """Tried: activities that fail at once, without a limit of attempts: initial 1 ms and coefficients 1,000,000 and
    1e40 without a maximum, for 16 attempts; initial 200 ms, coefficient 2, maximum 1 h, four attempts; coefficient 1.

    Right: gap n is the smaller of initial x coefficient^(n-1) and the maximum (100 initial intervals where none is
    given): never zero, negative, or shorter than the one before; (b) starts 0.2, 0.4, 0.8.
    """
    attempts = Attempts()
    async with case.worker([Stubborn], [attempts.fail, attempts.other]):
        handles = [await case.start(Stubborn.run, key, *plan, id=key) for key, plan in PLANS.items()]
        await asyncio.gather(*(handle.result() for handle in handles))
    for key, (succeed_at, initial, coefficient, maximum) in PLANS.items():
        check(attempts.gaps(key), expected(initial, coefficient, maximum, succeed_at - 1))
    assert expected(0.2, 2.0, 3600.0, 3) == [0.2, 0.4, 0.8]


async def test_other_traffic_does_not_wake_a_waiting_retry(case: Case) -> None:
    """Tried (c): initial 200 ms, coefficient 1, eight attempts (the case's seconds, in fifths), while the workflow gets
    a signal every 60 ms, whose handler runs another activity to its end.

    Right: no gap is under 200 ms, and the other activities did run meanwhile.
    """
    attempts = Attempts()
    async with case.worker([Stubborn], [attempts.fail, attempts.other]):
        handle = await case.start(Stubborn.run, "c", 8, 0.2, 1.0, None, id="c")
        sent = 0
        while len(attempts.started["c"]) < 8:
            await handle.signal(Stubborn.nudge)
            sent += 1
            await asyncio.sleep(0.06)
        others = await handle.result()
    check(attempts.gaps("c"), [0.2] * 7)
    assert others == sent > 7


@pytest.mark.parametrize("setting", [IN_PROCESS[0], EVERYWHERE[2]], ids=str, indirect=True)
@pytest.mark.parametrize(
    ("initial", "coefficient", "maximum", "wanted"),
    [(0.001, 1e6, 600.0, [0.001, 600.0]), (300.0, 2.0, 3600.0, [300.0]), (1e-3, 1e300, None, [0.001, 0.1])],
)
async def test_describe_says_when(
    case: Case, initial: float, coefficient: float, maximum: float | None, wanted: list[float]
) -> None:
    """Tried: the next attempt's time is read from describe while the activity waits for it, also for gaps far too long
    to be waited for here.

    Right: it lies as far behind the failed attempt's start as the policy says; never before it.
    """
    attempts = Attempts()
    async with case.worker([Stubborn], [attempts.fail, attempts.other]):
        handle = await case.start(Stubborn.run, "d", 1000, initial, coefficient, maximum, id="d")

        async def waiting() -> PendingActivityInfo | None:
            activities: Any = (await handle.describe()).pending_activities
            if not activities or activities[0].attempt <= len(wanted):
                return None
            return activities[0] if activities[0].state is PendingActivityState.SCHEDULED else None

        found = await until(waiting)
        assert found.next_attempt_schedule_time is not None and found.last_started_time is not None
        gap = (found.next_attempt_schedule_time - found.last_started_time).total_seconds()
        assert wanted[-1] - CLOCK <= gap < wanted[-1] + 30
        assert found.last_failure is not None and found.last_failure.message == "not yet"
        await handle.terminate(reason="read")
