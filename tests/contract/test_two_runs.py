"""The contract of a commit that closes one run and opens the next: each reader of either run gets its own part."""

from datetime import timedelta

import pytest
from stepwell.api.enums import WorkflowExecutionStatus

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import Commit
from stepwell_server.history.ports import Conflict, EventsPage
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun, chain

RUNNING, COMPLETED = WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.COMPLETED


async def append(backend: Backend, commits: list[list[Commit]]) -> list[Commit]:
    flat = [commit for run in commits for commit in run]
    for commit in flat:
        await backend.log.append(commit, arm=commit.deadline)
    return flat


def history(flat: list[Commit], run_id: str) -> tuple[object, ...]:
    return tuple(event for commit in flat for event in commit.events_of(run_id))


async def test_it_is_one_commit_and_is_read_back_whole(backend: Backend) -> None:
    first, second = chain(1)
    for commit in [*first, *second]:
        await backend.log.append(commit)
        assert await backend.log.head(commit.key) == commit
        assert await backend.log.get(commit.key, commit.seq) == commit
    shared = second[0]
    assert shared.closed is not None and shared.seq == len(first) + 1
    with pytest.raises(Conflict) as refused:
        await backend.log.append(shared)
    assert refused.value.existing == shared


async def test_each_run_has_its_own_history(backend: Backend) -> None:
    commits = chain(2, runs=3)
    flat = await append(backend, commits)
    key = flat[0].key
    for run in commits:
        run_id = run[0].run_id
        page = await backend.log.read_events(key, run_id, 0, 1_000)
        assert page.events == history(flat, run_id)
        assert [event.event_id for event in page.events] == list(range(1, 24))
        assert page.events[-1].event_type == "WorkflowExecutionCompleted"


async def test_a_history_is_paged_into_the_commit_that_ends_it(backend: Backend) -> None:
    commits = chain(3)
    flat = await append(backend, commits)
    key, run_id, shared = flat[0].key, flat[0].run_id, commits[1][0]
    assert shared.closed is not None
    before = await backend.log.read_events(key, run_id, 0, 1)
    assert before == EventsPage(flat[0].events, 1)
    last = await backend.log.read_events(key, run_id, shared.seq - 1, 1)
    assert last == EventsPage(shared.closed.events, shared.seq)
    assert await backend.log.read_events(key, run_id, shared.seq, 100) == EventsPage((), shared.seq)
    assert await backend.log.read_events(key, shared.run_id, 0, 1) == EventsPage(shared.events, shared.seq)
    assert await backend.log.read_events(key, shared.run_id, shared.seq, 1) == EventsPage(
        commits[1][1].events, shared.seq + 1
    )


async def test_the_newest_commit_of_the_run_that_it_closed(backend: Backend) -> None:
    commits = chain(4)
    flat = await append(backend, commits)
    key, run_id, shared = flat[0].key, flat[0].run_id, commits[1][0]
    found = await backend.log.find_run(key, run_id)
    assert found == shared
    state = found.state_of(run_id)
    assert state is not None and state.status is COMPLETED and state.run_id == run_id
    newest = await backend.log.find_run(key, shared.run_id)
    assert newest == commits[1][-1] and newest.state_of(run_id) is None and newest.events_of(run_id) == ()


async def test_a_close_and_a_later_start_share_nothing(backend: Backend) -> None:
    (first,) = chain(5, runs=1)
    second = list(SampleRun(5, run=1, first_seq=len(first) + 1).commits())
    flat = await append(backend, [first, second])
    page = await backend.log.read_events(flat[0].key, flat[0].run_id, 0, 1_000)
    assert page == EventsPage(tuple(event for commit in first for event in commit.events), len(first))
    assert await backend.log.find_run(flat[0].key, flat[0].run_id) == first[-1]


async def test_both_runs_are_listed_as_they_are(backend: Backend) -> None:
    commits = chain(6)
    first, second = commits
    await append(backend, [first, second[:1]])
    shared = second[0]
    assert shared.closed is not None
    infos = await list_executions(backend.visibility, "default", status=None, workflow_type="", after=None, limit=9)
    by_run = {info.execution.run_id: info for info in infos}
    old, new = by_run[first[0].run_id], by_run[shared.run_id]
    ended = shared.closed.state
    assert (old.status, old.close_time) == (COMPLETED, ended.close_time)
    assert (old.history_length, old.history_size_bytes) == (ended.next_event_id - 1, ended.history_size)
    assert (new.status, new.close_time) == (RUNNING, None)
    assert (new.history_length, new.history_size_bytes) == (2, shared.state.history_size)
    running = await list_executions(
        backend.visibility, "default", status=RUNNING, workflow_type="", after=None, limit=9
    )
    assert [info.execution.run_id for info in running] == [shared.run_id]


async def test_the_next_run_owes_what_its_first_commit_says(embedded: Backend) -> None:
    first, second = chain(6)
    await append(embedded, [first, second[:1]])
    assert await embedded.visibility.owing(None, 9) == [second[0].key]


async def test_what_the_closed_run_had_armed_is_struck_off_and_the_next_runs_is_kept(embedded: Backend) -> None:
    first, second = chain(7)
    shared = second[0]
    assert shared.closed is not None and shared.closed.state.armed != shared.state.armed
    await append(embedded, [first])
    assert await embedded.timers.next_fire() == shared.closed.state.armed
    await embedded.log.append(shared, arm=shared.state.armed)
    rows = await embedded.timers.due(EPOCH + timedelta(days=1), 9)
    assert rows == [(shared.state.armed, shared.key)]


async def test_a_time_that_both_runs_need_stays_armed(embedded: Backend) -> None:
    """It may have been armed before the commit was written, in a write of its own."""
    first, second = chain(8)
    shared = second[0]
    assert shared.closed is not None and shared.closed.state.armed is not None
    await append(embedded, [first])
    armed = shared.closed.state.armed
    shared.state.armed = armed
    await embedded.timers.arm(shared.key, armed)
    await embedded.log.append(shared)
    assert await embedded.timers.next_fire() == armed
