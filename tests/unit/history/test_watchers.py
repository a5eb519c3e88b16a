"""Waiting for commits: only what is wanted wakes, and nothing is left behind."""

import asyncio

from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.watchers import Watchers
from tests.support.history_run import Run
from tests.unit.history.test_head_cache import commit_of

KEY = ExecutionKey("default", "order-1")
CLOCK = SystemClock()


def within(seconds: float) -> float:
    return CLOCK.monotonic() + seconds


async def test_only_a_wanted_commit_wakes() -> None:
    watchers, run = Watchers(CLOCK), Run()

    def signaled(commit: Commit) -> bool:
        return commit.state.signal_count > 0

    waiting = asyncio.ensure_future(watchers.wait(KEY, signaled, within(60.0)))
    await asyncio.sleep(0)
    watchers.committed(KEY, commit_of(run))
    run.accept()
    run.signal()
    watchers.committed(ExecutionKey("default", "other"), commit_of(run))
    assert not waiting.done()
    watchers.committed(KEY, commit_of(run))
    woken = await asyncio.wait_for(waiting, 30)
    assert woken is not None and woken.seq == run.s.seq
    assert watchers._waiting == {}


async def test_ends_empty_in_time_when_cancelled_and_at_a_stop() -> None:
    watchers = Watchers(CLOCK)
    assert await watchers.wait(KEY, lambda commit: True, within(0.0)) is None
    assert await watchers.wait(KEY, lambda commit: True, within(0.01)) is None
    waiting = asyncio.ensure_future(watchers.wait(KEY, lambda commit: True, within(5.0)))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert watchers._waiting == {}
    waiting = asyncio.ensure_future(watchers.wait(KEY, lambda commit: True, within(5.0)))
    await asyncio.sleep(0)
    watchers.stop()
    assert await waiting is None
    assert await watchers.wait(KEY, lambda commit: True, within(5.0)) is None


async def test_where_others_commit_a_wait_ends_to_look_again_and_is_not_over() -> None:
    watchers = Watchers(CLOCK, look_again=0.01)
    ends = within(60.0)
    assert await watchers.wait(KEY, lambda commit: True, ends) is None
    assert not watchers.over(ends)
    assert watchers.over(within(0.0))
    watchers.stop()
    assert watchers.over(ends)
