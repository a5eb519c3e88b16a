"""The contract of erasing one run: all that is its own goes, nothing of another run does, and again is harmless."""

from datetime import timedelta

import pytest
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import EventsPage
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun, chain, sample_item

NO_EVENT_IS_LATER = EPOCH + timedelta(days=1)


async def append(backend: Backend, commits: list[Commit]) -> None:
    for commit in commits:
        await backend.log.append(commit)


async def erase(backend: Backend, key: ExecutionKey, run_id: str) -> None:
    await backend.log.erase_run(key, run_id)
    await backend.visibility.remove(key, run_id, NO_EVENT_IS_LATER)


async def history(backend: Backend, key: ExecutionKey, run_id: str) -> tuple[HistoryEvent, ...]:
    commit = await backend.log.find_run(key, run_id)
    state = None if commit is None else commit.state_of(run_id)
    if state is None:
        assert await backend.log.read_events(key, run_id, 0, 1_000) == EventsPage((), 0)
        return ()
    return (await backend.log.read_events(key, run_id, state.first_seq - 1, 1_000)).events


async def listed(backend: Backend) -> list[str]:
    found = await list_executions(backend.visibility, "default", status=None, workflow_type="", after=None, limit=9)
    return [info.execution.run_id for info in found]


def events_of(commits: list[Commit], run_id: str) -> tuple[HistoryEvent, ...]:
    return tuple(event for commit in commits for event in commit.events_of(run_id))


async def test_the_newest_run_is_found_no_more_and_the_log_goes_on_behind_it(backend: Backend) -> None:
    run, other = SampleRun(1), SampleRun(2)
    commits = list(run.commits())
    key = commits[0].key
    await append(backend, commits)
    await append(backend, list(other.commits()))
    await backend.log.put_activity(sample_item(run))
    await backend.log.put_marker(key, "signal:1", b"3", expires_at=commits[-1].time, now=EPOCH)
    for _ in range(2):
        await erase(backend, key, run.run_id)
        assert await history(backend, key, run.run_id) == ()
        assert await listed(backend) == [other.run_id]
        assert await backend.log.head(key) == commits[-1]
        assert await backend.log.get_marker(key, "signal:1") is None
    again = list(SampleRun(1, run=1, first_seq=len(commits) + 1, start_time=commits[-1].time).commits())
    await append(backend, again)
    assert await history(backend, key, again[0].run_id) == events_of(again, again[0].run_id)
    for commit in commits:
        await backend.visibility.project(commit)  # a record of the feed that was late
    assert run.run_id not in await listed(backend)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0)])
async def test_runs_of_a_chain_go_one_by_one_in_any_order(backend: Backend, order: tuple[int, ...]) -> None:
    runs = chain(3, runs=3)
    flat = [commit for run in runs for commit in run]
    key, ids = flat[0].key, [run[0].run_id for run in runs]
    await append(backend, flat)
    left = list(ids)
    for number in order:
        await erase(backend, key, ids[number])
        left.remove(ids[number])
        for run_id in ids:
            expected = events_of(flat, run_id) if run_id in left else ()
            assert await history(backend, key, run_id) == expected, (order, number, run_id)
        assert sorted(await listed(backend)) == sorted(left)
    assert await backend.log.head(key) == flat[-1]


async def test_a_run_that_is_not_there_leaves_all_as_it_is(backend: Backend) -> None:
    commits = list(SampleRun(4).commits())
    await append(backend, commits)
    await erase(backend, commits[0].key, SampleRun(5).run_id)
    await erase(backend, ExecutionKey("default", "never"), SampleRun(5).run_id)
    assert await listed(backend) == [commits[0].run_id]
    assert await history(backend, commits[0].key, commits[0].run_id) == events_of(commits, commits[0].run_id)


async def test_what_is_left_is_let_go_only_while_nothing_else_is_there(backend: Backend) -> None:
    run = SampleRun(6)
    commits = list(run.commits())
    key = commits[0].key
    await append(backend, commits)
    await erase(backend, key, run.run_id)
    again = list(SampleRun(6, run=1, first_seq=len(commits) + 1, start_time=commits[-1].time).commits())
    await append(backend, again)
    await backend.log.forget(key, len(commits))
    assert await backend.log.head(key) == again[-1]
    assert await history(backend, key, again[0].run_id) == events_of(again, again[0].run_id)
