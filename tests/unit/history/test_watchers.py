"""Waiting for commits: only what is wanted wakes, and nothing is left behind."""

import asyncio

from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.watchers import Watchers
from tests.support.history_run import Run
from tests.unit.history.test_head_cache import commit_of

KEY = ExecutionKey("default", "order-1")


async def test_only_a_wanted_commit_wakes() -> None:
    watchers, run = Watchers(), Run()

    def signaled(commit: Commit) -> bool:
        return commit.state.signal_count > 0

    waiting = asyncio.ensure_future(watchers.wait(KEY, signaled, 5.0))
    await asyncio.sleep(0)
    watchers.committed(KEY, commit_of(run))
    run.accept()
    run.signal()
    watchers.committed(ExecutionKey("default", "other"), commit_of(run))
    assert not waiting.done()
    watchers.committed(KEY, commit_of(run))
    woken = await asyncio.wait_for(waiting, 1)
    assert woken is not None and woken.seq == run.s.seq
    assert watchers._waiting == {}


async def test_ends_empty_in_time_when_cancelled_and_at_a_stop() -> None:
    watchers = Watchers()
    assert await watchers.wait(KEY, lambda commit: True, 0.0) is None
    assert await watchers.wait(KEY, lambda commit: True, 0.01) is None
    waiting = asyncio.ensure_future(watchers.wait(KEY, lambda commit: True, 5.0))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert watchers._waiting == {}
    waiting = asyncio.ensure_future(watchers.wait(KEY, lambda commit: True, 5.0))
    await asyncio.sleep(0)
    watchers.stop()
    assert await waiting is None
    assert await watchers.wait(KEY, lambda commit: True, 5.0) is None
