"""The contract of ExecutionLog: the history that a reset run begins with."""

import pytest
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import BEGINNING
from stepwell_server.history.ports import EventsPage
from tests.support.sample_commits import EPOCH, SampleRun


def sample() -> tuple[SampleRun, list[tuple[HistoryEvent, ...]]]:
    """A run, and three parts that stand for what a reset gives it before its first commit."""
    run = SampleRun(4)
    events = [event for commit in SampleRun(5).commits() for event in commit.events]
    return run, [tuple(events[:3]), tuple(events[3:4]), tuple(events[4:9])]


async def put(backend: Backend, run: SampleRun, parts: list[tuple[HistoryEvent, ...]]) -> None:
    key = next(iter(run.commits())).key
    for number, events in enumerate(parts, 1):
        await backend.log.put_prefix(key, run.run_id, BEGINNING + number, events, now=EPOCH)


async def begun(backend: Backend) -> None:
    """The workflow id is there: another run of it is what a reset begins from."""
    await backend.log.append(next(iter(SampleRun(4, run=1).commits())))


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 9, 10, 1_000])
async def test_parts_come_before_commits_and_as_a_whole(backend: Backend, limit: int) -> None:
    run, parts = sample()
    first = SampleRun(4, run=1, steps=1)
    commits = list(first.commits())
    for commit in commits:
        await backend.log.append(commit)
    await put(backend, run, parts)
    key = commits[0].key
    own = list(SampleRun(4, first_seq=len(commits) + 1).commits())
    for commit in own:
        await backend.log.append(commit)
    expected = [(BEGINNING + number, events) for number, events in enumerate(parts, 1)]
    expected += [(commit.seq, commit.events) for commit in own]
    after_seq, seen = BEGINNING, list[HistoryEvent]()
    while True:
        page = await backend.log.read_events(key, run.run_id, after_seq, limit)
        if page.last_seq == after_seq:
            break
        taken = [(seq, events) for seq, events in expected if after_seq < seq <= page.last_seq]
        assert page.events == tuple(event for _, events in taken for event in events)
        assert page.last_seq in (seq for seq, _ in expected)
        without_last = [event for _, events in taken[:-1] for event in events]
        assert len(without_last) < limit
        seen += page.events
        after_seq = page.last_seq
    assert seen == [event for _, events in expected for event in events]
    from_commits = await backend.log.read_events(key, run.run_id, 0, 1_000)
    assert from_commits.events == tuple(event for commit in own for event in commit.events)


async def test_until_the_run_is_there_nobody_sees_its_parts(backend: Backend) -> None:
    run, parts = sample()
    await begun(backend)
    await put(backend, run, parts)
    key = next(iter(run.commits())).key
    assert await backend.log.read_events(key, run.run_id, BEGINNING, 1_000) == EventsPage((), BEGINNING)
    assert await backend.log.find_run(key, run.run_id) is None


async def test_a_part_that_is_put_again_stays_as_it_is(backend: Backend) -> None:
    run, parts = sample()
    for commit in SampleRun(4, run=1).commits():
        await backend.log.append(commit)
    await put(backend, run, parts)
    await put(backend, run, [parts[1], parts[0], parts[2]])
    (opening, *_) = SampleRun(4, first_seq=6).commits()
    await backend.log.append(opening)
    page = await backend.log.read_events(opening.key, run.run_id, BEGINNING, 3)
    assert page == EventsPage(parts[0], BEGINNING + 1)
    page = await backend.log.read_events(opening.key, run.run_id, BEGINNING + 1, 1)
    assert page == EventsPage(parts[1], BEGINNING + 2)


async def test_runs_have_prefixes_of_their_own(backend: Backend) -> None:
    run, parts = sample()
    commits = list(SampleRun(4, run=1).commits())
    for commit in commits:
        await backend.log.append(commit)
    await put(backend, run, parts)
    page = await backend.log.read_events(commits[0].key, commits[0].run_id, BEGINNING, 1_000)
    assert page.events == tuple(event for commit in commits for event in commit.events)
