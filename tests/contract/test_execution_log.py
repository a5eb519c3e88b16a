"""The contract of ExecutionLog: commit log and activity items."""

import asyncio

import msgspec
import pytest
from stepwell.api.payloads import Payload

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import Conflict, EventsPage, SequenceGap, VersionConflict
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun, sample_item


async def append_all(backend: Backend, run: SampleRun) -> list[Commit]:
    commits = list(run.commits())
    for commit in commits:
        await backend.log.append(commit)
    return commits


def other_writer(commit: Commit) -> Commit:
    """What a second writer would put at the same seq."""
    return msgspec.structs.replace(commit, nonce="of-the-second-writer", kind="Terminate")


async def test_an_unused_id_has_no_head(backend: Backend) -> None:
    assert await backend.log.head(ExecutionKey("default", "nobody")) is None


async def test_what_was_appended_is_read_back_whole(backend: Backend) -> None:
    run = SampleRun(1)
    for commit in run.commits():
        await backend.log.append(commit)
        assert await backend.log.head(commit.key) == commit
        assert await backend.log.get(commit.key, commit.seq) == commit
    assert await backend.log.get(commit.key, 99) is None


async def test_a_taken_seq_is_a_conflict_that_shows_what_took_it(backend: Backend) -> None:
    start, second, *_ = SampleRun(2).commits()
    await backend.log.append(start)
    await backend.log.append(second)
    with pytest.raises(Conflict) as refused:
        await backend.log.append(other_writer(second))
    assert refused.value.existing == second
    assert refused.value.existing.nonce != "of-the-second-writer"
    assert await backend.log.head(start.key) == second


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_a_commit_that_would_leave_a_gap_is_refused_and_writes_nothing(backend: Backend, kept: int) -> None:
    """Also behind commits that were written a moment ago, and beside others that wait."""
    commits = list(SampleRun(7).commits())
    for commit in commits[:kept]:
        await backend.log.append(commit)
    beside = next(SampleRun(8).commits())
    outcomes = await asyncio.gather(
        backend.log.append(commits[kept + 1], arm=EPOCH), backend.log.append(beside), return_exceptions=True
    )
    assert isinstance(outcomes[0], SequenceGap) and outcomes[1] is None
    assert str(kept + 2) in str(outcomes[0])
    assert await backend.log.head(commits[0].key) == (commits[kept - 1] if kept else None)
    assert await backend.log.head(beside.key) == beside
    for commit in commits[kept:]:
        await backend.log.append(commit)
    assert await backend.log.head(commits[0].key) == commits[-1]


async def test_commits_that_are_submitted_together_follow_one_another(embedded: Backend) -> None:
    commits = list(SampleRun(9).commits())
    await asyncio.gather(*(embedded.log.append(commit) for commit in commits))
    assert await embedded.log.head(commits[0].key) == commits[-1]


async def test_a_repeated_append_finds_its_own_nonce(backend: Backend) -> None:
    start = next(SampleRun(3).commits())
    await backend.log.append(start)
    with pytest.raises(Conflict) as refused:
        await backend.log.append(start)
    assert refused.value.existing.nonce == start.nonce


async def test_of_many_writers_of_one_seq_exactly_one_wins(backend: Backend) -> None:
    start = next(SampleRun(4).commits())
    rivals = [msgspec.structs.replace(start, nonce=f"writer-{number}") for number in range(20)]
    results = await asyncio.gather(*(backend.log.append(rival) for rival in rivals), return_exceptions=True)
    winners = [rival for rival, result in zip(rivals, results, strict=True) if result is None]
    losers = [result for result in results if result is not None]
    assert len(winners) == 1
    assert all(isinstance(loser, Conflict) and loser.existing == winners[0] for loser in losers)


async def test_a_conflict_in_a_batch_spoils_no_other_write(backend: Backend) -> None:
    taken = next(SampleRun(5).commits())
    await backend.log.append(taken)
    others = [next(SampleRun(number).commits()) for number in range(100, 150)]
    writes = [*others[:25], other_writer(taken), *others[25:]]
    results = await asyncio.gather(*(backend.log.append(write) for write in writes), return_exceptions=True)
    assert [type(result) for result in results] == [type(None)] * 25 + [Conflict] + [type(None)] * 25
    for other in others:
        assert await backend.log.head(other.key) == other


async def test_a_refused_commit_projects_nothing(backend: Backend) -> None:
    start, *_, close = SampleRun(6).commits()
    await backend.log.append(start)
    stale_close = msgspec.structs.replace(
        close, seq=1, base=0, state=msgspec.structs.replace(close.state, seq=1), nonce="stale"
    )
    with pytest.raises(Conflict):
        await backend.log.append(stale_close)
    listed = await list_executions(backend.visibility, "default", status=None, workflow_type="", after=None, limit=5)
    assert [info.status for info in listed] == ["RUNNING"]


async def test_a_refused_commit_changes_nothing_that_is_owed(embedded: Backend) -> None:
    start, *_, close = SampleRun(6).commits()
    await embedded.log.append(start)
    stale_close = msgspec.structs.replace(
        close, seq=1, base=0, state=msgspec.structs.replace(close.state, seq=1), nonce="stale"
    )
    with pytest.raises(Conflict):
        await embedded.log.append(stale_close)
    assert await embedded.visibility.owing(None, 5) == [start.key]


async def test_namespaces_and_ids_are_apart(backend: Backend) -> None:
    names = [("a", "x"), ("b", "x"), ("a", "X"), ("a", "x "), ("a", "日本" * 100), ("a", "x'\"\\%_")]
    for number, (namespace, workflow_id) in enumerate(names):
        run = SampleRun(number, namespace=namespace, workflow_id=workflow_id)
        await backend.log.append(next(run.commits()))
    for number, (namespace, workflow_id) in enumerate(names):
        head = await backend.log.head(ExecutionKey(namespace, workflow_id))
        assert head == next(SampleRun(number, namespace=namespace, workflow_id=workflow_id).commits())


async def test_events_come_in_whole_commits_up_to_a_limit(backend: Backend) -> None:
    run = SampleRun(7)
    commits = await append_all(backend, run)
    key = commits[0].key
    everything = tuple(event for commit in commits for event in commit.events)
    assert await backend.log.read_events(key, run.run_id, 0, 1_000) == EventsPage(everything, 5)
    assert await backend.log.read_events(key, run.run_id, 0, 1) == EventsPage(commits[0].events, 1)
    assert await backend.log.read_events(key, run.run_id, 0, len(commits[0].events)) == EventsPage(commits[0].events, 1)
    assert await backend.log.read_events(key, run.run_id, 2, 1) == EventsPage(commits[2].events, 3)
    assert await backend.log.read_events(key, run.run_id, 5, 100) == EventsPage((), 5)
    assert await backend.log.read_events(key, "another run", 0, 100) == EventsPage((), 0)
    assert await backend.log.read_events(ExecutionKey("default", "nobody"), run.run_id, 3, 9) == EventsPage((), 3)


async def test_commits_without_events_are_passed_over(backend: Backend) -> None:
    run = SampleRun(8)
    commits = list(run.commits())
    silent = [msgspec.structs.replace(commit, events=()) for commit in commits[1:4]]
    for commit in [commits[0], *silent, commits[4]]:
        await backend.log.append(commit)
    page = await backend.log.read_events(commits[0].key, run.run_id, 1, 1)
    assert page == EventsPage(commits[4].events, 5)
    assert (await backend.log.get(commits[0].key, 2)) == silent[0]


async def test_runs_of_one_id_follow_each_other_in_one_log(backend: Backend) -> None:
    first, second = SampleRun(9), SampleRun(9, run=1, first_seq=6)
    commits = await append_all(backend, first)
    later = await append_all(backend, second)
    key = commits[0].key
    assert await backend.log.head(key) == later[-1]
    assert await backend.log.find_run(key, first.run_id) == commits[-1]
    assert await backend.log.find_run(key, second.run_id) == later[-1]
    assert await backend.log.find_run(key, "neither") is None
    page = await backend.log.read_events(key, first.run_id, 0, 1_000)
    assert page.events == tuple(event for commit in commits for event in commit.events)
    page = await backend.log.read_events(key, second.run_id, 0, 1_000)
    assert page == EventsPage(tuple(event for commit in later for event in commit.events), 10)
    assert (await backend.log.read_events(key, first.run_id, 5, 10)).events == ()


async def test_run_ids_need_not_be_uuids(backend: Backend) -> None:
    run = SampleRun(10)
    run.run_id = "not-a-uuid/but 36 characters of an id"[:36]
    commits = await append_all(backend, run)
    assert await backend.log.find_run(commits[0].key, run.run_id) == commits[-1]


async def test_large_payloads_survive(backend: Backend) -> None:
    start = next(SampleRun(11).commits())
    first = start.events[0]
    large = (Payload(metadata={"encoding": "binary/plain"}, data=bytes(range(256)) * 8_192),)
    event = msgspec.structs.replace(first, attributes=msgspec.structs.replace(first.attributes, input=large))
    commit = msgspec.structs.replace(start, events=(event, *start.events[1:]))
    await backend.log.append(commit)
    assert await backend.log.head(start.key) == commit


async def test_a_write_stands_though_its_caller_was_cancelled(embedded: Backend) -> None:
    start = next(SampleRun(12).commits())

    async def write() -> None:
        await embedded.log.append(start)

    writing = asyncio.create_task(write())
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await embedded.timers.arm(start.key, EPOCH)  # a later write that was awaited: the earlier one is done as well
    assert await embedded.log.head(start.key) == start


async def test_an_item_is_put_version_by_version(backend: Backend) -> None:
    run = SampleRun(13)
    key = ExecutionKey(run.namespace, run.workflow_id)
    first, second = sample_item(run, version=1), sample_item(run, version=2)
    assert await backend.log.get_activity(key, run.run_id, 5) is None
    with pytest.raises(VersionConflict) as refused:
        await backend.log.put_activity(second)
    assert refused.value.existing is None
    await backend.log.put_activity(first)
    assert await backend.log.get_activity(key, run.run_id, 5) == first
    with pytest.raises(VersionConflict) as refused:
        await backend.log.put_activity(msgspec.structs.replace(first, identity="another"))
    assert refused.value.existing == first
    await backend.log.put_activity(second)
    for stale in (first, second, sample_item(run, version=4)):
        with pytest.raises(VersionConflict) as refused:
            await backend.log.put_activity(stale)
        assert refused.value.existing == second
    assert await backend.log.get_activity(key, run.run_id, 5) == second


async def test_of_many_writers_of_one_version_exactly_one_wins(backend: Backend) -> None:
    run = SampleRun(14)
    await backend.log.put_activity(sample_item(run))
    rivals = [msgspec.structs.replace(sample_item(run, version=2), identity=f"w{number}") for number in range(10)]
    results = await asyncio.gather(*(backend.log.put_activity(rival) for rival in rivals), return_exceptions=True)
    winners = [rival for rival, result in zip(rivals, results, strict=True) if result is None]
    assert len(winners) == 1
    losers = [result for result in results if result is not None]
    assert all(isinstance(loser, VersionConflict) and loser.existing == winners[0] for loser in losers)


async def test_items_are_read_together(backend: Backend) -> None:
    run, other = SampleRun(15), SampleRun(15, run=1)
    key = ExecutionKey(run.namespace, run.workflow_id)
    items = {number: sample_item(run, scheduled_event_id=number) for number in range(5, 205)}
    await asyncio.gather(*(backend.log.put_activity(item) for item in items.values()))
    await backend.log.put_activity(sample_item(other, scheduled_event_id=5))
    found = await backend.log.activities(key, run.run_id, [7, 300, 5, 204])
    assert sorted(found, key=lambda item: item.scheduled_event_id) == [items[5], items[7], items[204]]
    assert len(await backend.log.activities(key, run.run_id, list(items))) == 200
    assert await backend.log.activities(key, run.run_id, []) == []
    assert await backend.log.activities(ExecutionKey("default", "nobody"), run.run_id, [5]) == []
