"""What operations cost at the port, counted on the emulator's requests by item size (design section 12)."""

from datetime import timedelta

import pytest

from tests.integration.aws.conftest import Store
from tests.support.sample_commits import SampleRun, sample_item

MINUTE = timedelta(minutes=1)


async def test_a_start_is_one_commit_one_timer_and_one_strong_read(store: Store) -> None:
    start = next(SampleRun(1).commits())
    assert await store.log.head(start.key) is None
    await store.log.append(start, arm=start.time + MINUTE)
    assert store.counter.calls == {"exec put_item": 1, "exec query": 1, "timer put_item": 1}
    total = store.counter.total
    assert total.write_units <= 3 and total.read_units == 1


async def test_a_step_is_one_commit_and_no_read(store: Store) -> None:
    """A fused step of a run whose head this process has."""
    commits = list(SampleRun(2, steps=12).commits())
    await store.log.head(commits[0].key)
    await store.log.append(commits[0])
    units = []
    for commit in commits[1:]:
        store.counter.reset()
        await store.log.append(commit)
        assert store.counter.calls == {"exec put_item": 1}
        units.append(store.counter.total.write_units)
    assert max(units) <= 3
    assert units[1:-1] == [units[1]] * len(units[1:-1])  # the n-th costs what the first did


async def test_a_later_start_of_the_same_id_reads_once_as_well(store: Store) -> None:
    first = list(SampleRun(3).commits())
    await store.append_all(first)
    store.counter.reset()
    second = next(SampleRun(3, run=1, first_seq=len(first) + 1).commits())
    await store.log.head(second.key)
    await store.log.append(second)
    assert store.counter.calls == {"exec put_item": 1, "exec query": 1}


async def test_a_writer_that_did_not_look_pays_one_read(store: Store) -> None:
    commits = list(SampleRun(4).commits())
    await store.append_all(commits[:1])
    other = await store.another_process()
    await other.log.append(commits[1])
    await other.log.append(commits[2])
    assert other.counter.calls == {"exec get_item": 1, "exec put_item": 2}
    await other.backend.close()


async def test_a_queued_attempt_is_two_puts_of_its_item(store: Store) -> None:
    run = SampleRun(5)
    await store.log.put_activity(sample_item(run, version=1), arm=run.start_time + MINUTE)
    await store.log.put_activity(sample_item(run, version=2))
    assert store.counter.calls == {"exec put_item": 2, "timer put_item": 1}
    assert store.counter.total.write_units == 3


async def test_visibility_of_a_run_is_five_units(store: Store) -> None:
    commits = list(SampleRun(6).commits())
    for commit in commits:
        await store.backend.visibility.project(commit)
    assert store.counter.calls == {"vis put_item": 2}
    assert store.counter.total.write_units == 5


async def test_a_conflict_costs_the_item_that_is_there(store: Store) -> None:
    start = next(SampleRun(7).commits())
    await store.log.append(start)
    store.counter.reset()
    with pytest.raises(Exception, match="exists"):
        await store.log.append(start)
    assert store.counter.total.write_units == 1


async def test_retention_writes_each_item_once(store: Store) -> None:
    commits = list(SampleRun(8).commits())
    await store.append_all(commits)
    store.counter.reset()
    await store.expire(commits)
    assert store.counter.calls["exec update_item"] == len(commits)
    before = dict(store.counter.calls)
    await store.expire(commits[-1:])
    assert store.counter.calls["exec update_item"] == before["exec update_item"]


@pytest.mark.parametrize("length", [3, 60])
async def test_a_head_and_a_page_cost_the_same_in_a_long_history(store: Store, length: int) -> None:
    commits = list(SampleRun(9, steps=length).commits())
    await store.append_all(commits)
    store.counter.reset()
    assert await store.log.head(commits[0].key) == commits[-1]
    page = await store.log.read_events(commits[0].key, commits[0].run_id, commits[-1].seq - 2, 100)
    assert len(page.events) > 4
    assert store.counter.calls == {"exec query": 2}
    assert store.counter.total.read_units <= 4
