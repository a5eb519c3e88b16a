"""Askings of a long poll that nobody holds come further and further apart; those of one that is held do not."""

import asyncio
import itertools
import time

import pytest
from stepwell.client import pacing
from stepwell.client.pacing import Pace


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    asked: list[float] = []

    async def sleep(seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return asked


async def test_pauses_double_while_calls_come_back_at_once(pauses: list[float]) -> None:
    pace = Pace()
    for _ in range(9):
        pace.asking()
        await pace.came_empty()
    assert all(before < after for before, after in itertools.pairwise(pauses[:6]))
    assert pauses[0] < 0.06 and 1.8 <= pauses[-1] <= pacing.LONGEST_PAUSE


async def test_a_call_that_was_held_is_asked_again_at_once(
    pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace()
    pace.asking()
    await pace.came_empty()
    pace.asking()
    later = time.monotonic() + 20
    monkeypatch.setattr(time, "monotonic", lambda: later)
    await pace.came_empty()
    assert len(pauses) == 1


async def test_no_pause_is_longer_than_what_is_left(pauses: list[float]) -> None:
    pace = Pace()
    for _ in range(3):
        pace.asking()
        await pace.came_empty(0.01)
    assert max(pauses) <= 0.01
