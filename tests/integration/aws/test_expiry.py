"""Retention where the table deletes by itself, within days and in any order: no reader is ever misled, and no open run
loses anything.
"""

import random
from datetime import datetime, timedelta

import msgspec
import pytest
from stepwell.api.requests import RegisterNamespaceRequest

from stepwell_server.history.commit import BEGINNING, Commit
from stepwell_server.history.ports import EventsPage, SequenceGap, StoreUnavailable
from tests.integration.aws.conftest import Store
from tests.support.listed import list_executions
from tests.support.sample_commits import EPOCH, SampleRun, chain, owing, sample_item, two_runs

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def closed(number: int, **more: int) -> tuple[SampleRun, list[Commit], datetime]:
    """A run that is over, and when its retention is."""
    run = SampleRun(number, **more)
    commits = list(run.commits())
    assert commits[-1].expires_at is not None
    return run, commits, commits[-1].expires_at


def go_to(store: Store, time: datetime) -> None:
    store.clock.go(time - store.clock.now())


async def is_gone(store: Store, commit: Commit, run_id: str = "") -> bool:
    run_id = run_id or commit.run_id
    page = await store.log.read_events(commit.key, run_id, 0, 1_000)
    return page == EventsPage((), 0) and await store.log.find_run(commit.key, run_id) is None


async def test_a_closed_run_is_there_until_its_retention_is_over(store: Store) -> None:
    run, commits, over = closed(1)
    await store.append_all(commits)
    await store.expire(commits)
    go_to(store, over - HOUR)
    store.delete_expired()
    page = await store.log.read_events(commits[0].key, run.run_id, 0, 1_000)
    assert page.events == tuple(event for commit in commits for event in commit.events)
    go_to(store, over + HOUR)
    assert await is_gone(store, commits[0])
    head = await store.log.head(commits[0].key)
    assert head == commits[-1]  # so that its id goes on where it was
    listed = await list_executions(
        store.backend.visibility, "default", status=None, workflow_type="", after=None, limit=9
    )
    assert listed == []


async def test_an_open_run_never_expires(store: Store) -> None:
    commits = list(SampleRun(2).commits())[:-1]
    await store.append_all(commits)
    await store.log.put_activity(sample_item(SampleRun(2)))
    await store.expire(commits)
    assert [item for item in store.items() if "x" in item or "rx" in item] == []


async def test_the_end_of_a_run_costs_one_mark_for_each_of_its_items(store: Store) -> None:
    """Also of a run that said beforehand how long it may take: why, says docs/architecture/aws.md, Retention."""
    commits = [
        msgspec.structs.replace(commit, state=msgspec.structs.replace(commit.state, workflow_execution_timeout=DAY))
        for commit in SampleRun(4).commits()
    ]
    await store.append_all(commits[:-1])
    await store.expire(commits[:-1])
    assert not [item for item in store.items() if "x" in item]
    await store.append_all(commits[-1:])
    store.counter.reset()
    await store.expire(commits)
    assert store.counter.costs["exec", "update_item"].calls == len(store.items()) == len(commits)
    store.counter.reset()
    await store.expire(commits)
    assert ("exec", "update_item") not in store.counter.costs, "a repeat marks nothing"


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_deleted_first_no_open_state_comes_to_light(store: Store, seed: int) -> None:
    _, commits, over = closed(3)
    await store.append_all(commits)
    await store.expire(commits)
    go_to(store, over + HOUR)
    chance = random.Random(seed)
    for _ in range(6):
        store.delete_expired(chance)
        assert await store.log.head(commits[0].key) == commits[-1]
        assert await is_gone(store, commits[0])
    go_to(store, over + 7 * DAY + HOUR)
    store.delete_expired(chance)
    other = await store.another_process()
    assert await other.log.head(commits[0].key) is None
    again = list(SampleRun(3, run=1, start_time=store.clock.now()).commits())
    await other.append_all(again)
    store.delete_expired()
    assert await other.log.head(commits[0].key) == again[-1]
    assert (await other.log.read_events(commits[0].key, again[0].run_id, 0, 1_000)).events
    assert await is_gone(other, commits[0])
    await other.backend.close()


async def test_a_new_log_never_begins_below_the_rest_of_an_old_one(store: Store) -> None:
    """The table did not get to delete anything for a month; and the writer made the id itself, so it did not look."""
    _, commits, over = closed(4)
    await store.append_all(commits)
    await store.expire(commits)
    go_to(store, over + 30 * DAY)
    again = next(SampleRun(4, run=1, start_time=store.clock.now()).commits())
    other = await store.another_process()
    await other.log.append(again)
    assert store.sort_keys() == ["C#000000000001"]
    assert await store.log.head(again.key) == again
    await other.backend.close()


async def test_what_is_late_of_a_run_ends_nothing_of_it_when_it_has_come_again(store: Store) -> None:
    """By an import: the same run id, in a log that counts from 1."""
    _, former, over = closed(9, steps=1)
    await store.append_all(former)
    await store.expire(former)
    go_to(store, over + 30 * DAY)
    store.delete_expired()
    assert store.sort_keys() == []
    again = [
        msgspec.structs.replace(commit, time=commit.time + 60 * DAY) for commit in SampleRun(9, steps=4).commits()
    ][:-1]
    assert again[0].run_id == former[0].run_id and again[-1].seq > former[-1].seq
    other = await store.another_process()
    await other.append_all(again)
    await other.expire(former)
    assert not [item for item in store.items() if item.keys() & {"x", "rx", "cx"}]
    await other.backend.close()


async def test_a_start_holds_on_to_a_head_that_is_about_to_expire(store: Store) -> None:
    _, commits, over = closed(5)
    await store.append_all(commits)
    await store.expire(commits)
    go_to(store, over + 7 * DAY - HOUR)
    assert await store.log.head(commits[0].key) == commits[-1]
    second = list(SampleRun(5, run=1, first_seq=len(commits) + 1, start_time=store.clock.now()).commits())
    await store.log.append(second[0])
    store.clock.go(2 * HOUR)
    store.delete_expired()
    assert store.sort_keys() == [f"C#{len(commits):012d}", f"C#{len(commits) + 1:012d}"]
    for commit in second[1:]:
        await store.log.append(commit)
    page = await store.log.read_events(commits[0].key, second[0].run_id, len(commits), 1_000)
    assert len(page.events) == 23


async def test_who_slept_until_all_was_deleted_writes_nothing(store: Store) -> None:
    _, commits, over = closed(6)
    await store.append_all(commits[:2])  # this process knows the open state, and sleeps
    other = await store.another_process()
    await other.append_all(commits[2:])
    await other.expire(commits)
    go_to(store, over + 8 * DAY)
    store.delete_expired()
    assert store.items() == []
    with pytest.raises(SequenceGap):
        await store.log.append(commits[2], arm=store.clock.now())
    assert store.items() == [] and store.items(store.cell.names.timer_table) == []
    await other.backend.close()


async def test_a_chain_expires_run_by_run(store: Store) -> None:
    *first, end = SampleRun(7).commits()
    second = list(SampleRun(7, run=1, first_seq=end.seq, start_time=end.time + DAY).commits())
    second[0] = two_runs(end, second[0])
    flat = [*first, *second]
    shared, key = second[0], first[0].key
    await store.append_all([*first, shared])
    await store.expire([*first, shared])
    assert shared.closed is not None and shared.closed.state.close_time is not None
    go_to(store, shared.closed.state.close_time + 7 * DAY + HOUR)
    store.delete_expired()
    assert await is_gone(store, first[0])
    assert await store.log.head(key) == shared
    page = await store.log.read_events(key, shared.run_id, 0, 1_000)
    assert page.events == shared.events
    await store.append_all(second[1:])
    await store.expire(flat)
    await store.expire(flat)
    page = await store.log.read_events(key, shared.run_id, shared.seq - 1, 1_000)
    assert len(page.events) == 23


async def test_what_is_still_owed_stays_and_goes_with_the_next_run(store: Store) -> None:
    first, second = chain(8)
    owed = [owing(commit, first[0].run_id) for commit in second[:1]]
    await store.append_all([*first, *owed])
    await store.expire([*first, *owed])
    assert [item for item in store.items() if "x" in item or "cx" in item] == []
    await store.append_all(second[1:])
    await store.expire(second[1:])
    items = {item["sk"]["S"]: item for item in store.items() if item["sk"]["S"].startswith("C#")}
    assert all("x" in item for item in items.values()) and "cx" in items[f"C#{second[0].seq:012d}"]


async def test_activities_and_prefixes_go_with_their_run(store: Store) -> None:
    run, commits, over = closed(9)
    events = [event for commit in SampleRun(99).commits() for event in commit.events]
    scheduled = [
        event.event_id for commit in commits for event in commit.events if event.event_type == "ActivityTaskScheduled"
    ]
    await store.append_all(commits)
    for number in scheduled[:2]:
        await store.log.put_activity(sample_item(run, scheduled_event_id=number))
    await store.expire(commits)
    go_to(store, over + HOUR)
    store.delete_expired()
    assert store.sort_keys("A#") == []
    await store.log.put_prefix(commits[0].key, "of nobody", BEGINNING + 1, events[:4], now=store.clock.now())
    store.clock.go(8 * DAY)
    store.delete_expired()
    assert store.sort_keys("B#") == []


async def test_an_activity_of_a_run_that_has_come_again_begins_anew(store: Store) -> None:
    """What it was in the former life is in the table still, with its result."""
    run, commits, over = closed(10)
    (number, *_) = [
        event.event_id for commit in commits for event in commit.events if event.event_type == "ActivityTaskScheduled"
    ]
    await store.append_all(commits)
    for version in (1, 2):
        await store.log.put_activity(sample_item(run, scheduled_event_id=number, version=version))
    await store.expire(commits)
    go_to(store, over - HOUR)
    assert await store.log.get_activity(commits[0].key, run.run_id, number) is not None
    go_to(store, over + HOUR)
    assert await store.log.get_activity(commits[0].key, run.run_id, number) is None
    assert await store.log.activities(commits[0].key, run.run_id, [number]) == []
    for version in (1, 2):
        anew = sample_item(run, scheduled_event_id=number, version=version)
        await store.log.put_activity(anew)
        assert await store.log.get_activity(commits[0].key, run.run_id, number) == anew
    (item,) = [item for item in store.items() if item["sk"]["S"].startswith("A#")]
    assert "x" not in item


class _Crash(Exception):
    pass


async def test_a_crash_between_any_two_writes_is_safe_and_made_good(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    dynamodb = store.clients.service("dynamodb")
    original = dynamodb.call
    for number in range(20, 60):
        run, commits, over = closed(number)
        await store.append_all(commits)
        left = number - 20

        async def dies(operation: str, /, **parameters: object) -> object:
            nonlocal left
            if left == 0:
                raise _Crash
            left -= 1
            return await original(operation, **parameters)

        monkeypatch.setattr(dynamodb, "call", dies)
        finished = True
        try:
            await store.expire(commits[-1:])
        except _Crash:
            finished = False
        monkeypatch.setattr(dynamodb, "call", original)
        items = {item["sk"]["S"]: item for item in store.items() if item["pk"]["S"].endswith(run.workflow_id)}
        rest = [item for sk, item in items.items() if sk != f"C#{len(commits):012d}"]
        if "x" in items[f"C#{len(commits):012d}"]:
            assert all("x" in item for item in rest)
        await store.expire(commits[-1:])
        marked = [item for item in store.items() if item["pk"]["S"].endswith(run.workflow_id)]
        assert all("x" in item for item in marked)
        assert min(int(item["x"]["N"]) for item in marked) >= over.timestamp()
        if finished:
            return
    raise AssertionError("it never came to its end")


async def test_a_prefix_that_expired_before_its_commit_is_refused(store: Store) -> None:
    events = [event for commit in SampleRun(99).commits() for event in commit.events]
    opening = next(SampleRun(10).commits())
    opening.state.prefix_tail_seq = BEGINNING + 1
    await store.log.put_prefix(opening.key, opening.run_id, BEGINNING + 1, events[:4], now=EPOCH)
    store.clock.go(8 * DAY)
    with pytest.raises(StoreUnavailable, match="took too long"):
        await store.log.append(opening)
    assert store.sort_keys() == []


async def test_a_claimed_prefix_stays(store: Store) -> None:
    events = [event for commit in SampleRun(99).commits() for event in commit.events]
    opening = next(SampleRun(11).commits())
    opening.state.prefix_tail_seq = BEGINNING + 1
    await store.log.put_prefix(opening.key, opening.run_id, BEGINNING + 1, events[:4], now=EPOCH)
    await store.log.append(opening)
    store.clock.go(100 * DAY)
    store.delete_expired()
    page = await store.log.read_events(opening.key, opening.run_id, BEGINNING, 1_000)
    assert page.events == (*events[:4], *opening.events)


async def test_a_namespace_keeps_its_runs_as_long_as_it_says(store: Store) -> None:
    await store.backend.namespaces.register(RegisterNamespaceRequest(namespace="shop", retention=DAY))
    run = SampleRun(50, namespace="shop")
    commits = list(run.commits())
    close_time = commits[-1].state.close_time
    assert close_time is not None
    await store.append_all(commits)
    await store.expire(commits)
    go_to(store, close_time + DAY - HOUR)
    store.delete_expired()
    page = await store.log.read_events(commits[0].key, run.run_id, 0, 1_000)
    assert page.events == tuple(event for commit in commits for event in commit.events)
    go_to(store, close_time + DAY + HOUR)
    store.delete_expired()
    assert await is_gone(store, commits[0])
    listed = await list_executions(store.backend.visibility, "shop", status=None, workflow_type="", after=None, limit=9)
    assert listed == []
