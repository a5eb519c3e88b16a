"""Workflow ids whose log is gone and that have another one by now, while a process stood still that knew the first:
what it does then, it does to nothing of the second, though the seqs are the same."""

from datetime import timedelta

import pytest

from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.markers import MarkersTable
from stepwell_server.history.commit import Commit
from stepwell_server.history.ports import Marker, SequenceGap
from tests.integration.aws.conftest import Store
from tests.integration.aws.test_expiry import closed, go_to
from tests.support.sample_commits import SampleRun

DAY = timedelta(days=1)


async def used_anew(store: Store, number: int, known: int, commits: int) -> tuple[list[Commit], list[Commit]]:
    """The commits of a run, of which this process has written the first ``known``, and so many of the run that its id
    has had since: of the first all was deleted."""
    _, first, over = closed(number)
    await store.append_all(first[:known])
    other = await store.another_process()
    await other.append_all(first[known:])
    await other.expire(first)
    go_to(store, over + 8 * DAY)
    store.delete_expired()
    assert store.items() == []
    again = list(SampleRun(number, run=1, start_time=store.clock.now()).commits())[:commits]
    await other.append_all(again)
    await other.backend.close()
    return first, again


async def test_nothing_is_appended_behind_the_same_seq_of_another_log(store: Store) -> None:
    first, again = await used_anew(store, 1, 2, 2)
    with pytest.raises(SequenceGap):
        await store.log.append(first[2], arm=store.clock.now())
    assert await store.log.head(first[0].key) == again[-1]


async def test_no_run_begins_behind_a_head_that_is_of_another_log(store: Store) -> None:
    """What was decided, about the id and the policy for it, was decided on another run."""
    _, commits, _ = closed(2)
    _, again = await used_anew(store, 2, len(commits), len(commits))
    late = next(SampleRun(2, run=2, first_seq=len(commits) + 1, start_time=store.clock.now()).commits())
    with pytest.raises(SequenceGap):
        await store.log.append(late)
    assert await store.log.head(late.key) == again[-1]
    await store.log.append(late)


async def test_late_marks_of_a_run_leave_the_run_that_has_its_seqs_now(store: Store) -> None:
    _, commits, _ = closed(3)
    first, again = await used_anew(store, 3, 0, len(commits))
    await store.expire(first)
    assert [item for item in store.items() if "x" in item] == []
    page = await store.log.read_events(again[0].key, again[0].run_id, 0, 1_000)
    assert page.events == tuple(event for commit in again for event in commit.events)


async def test_what_was_to_be_let_go_late_is_not_that_of_another_log(store: Store) -> None:
    _, again = await used_anew(store, 4, 0, 3)
    await store.log.forget(again[0].key, 3)
    assert [item for item in store.items() if "x" in item] == []


async def test_a_claim_that_was_made_again_is_not_erased_late(store: Store) -> None:
    """With the same value; it holds until another time."""
    key = closed(5)[1][0].key
    now = store.clock.now()
    markers = MarkersTable(store.clients.service("dynamodb"), store.cell.names.exec_table)
    await markers.put(key, "signal:a", Marker(b"3", now + DAY), now)
    late = from_attributes(store.items()[0])
    store.clock.go(2 * DAY)
    there = await markers.put(key, "signal:a", Marker(b"3", store.clock.now() + DAY), store.clock.now())
    await markers._delete(late)
    assert await markers.get(key, "signal:a") == there
    await markers.erase(key, 3, 3)
    assert await markers.get(key, "signal:a") is None
