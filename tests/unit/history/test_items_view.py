"""The view of activity items in memory: each is read once, and what it says is what the store has."""

from collections.abc import AsyncIterator

import pytest
from stepwell.api.enums import WorkflowIDConflictPolicy

from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.system import SystemIds
from stepwell_server.history import activity_item
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.items import ActivityItems
from stepwell_server.history.ports import VersionConflict
from tests.support.counting import CountingStore
from tests.support.history_run import Run, activity
from tests.unit.history.test_head_cache import commit_of

KEY = ExecutionKey("default", "order-1")


class World:
    def __init__(self, store: CountingStore, run: Run, items: ActivityItems) -> None:
        self.store, self.run, self.items = store, run, items
        self.ids = list(run.s.activities)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    backend = embedded_backend(":memory:")
    store = CountingStore(backend.log)  # type: ignore[arg-type]
    run = Run()
    await store.append(commit_of(run))
    run.accept(activity("1"), activity("2"), activity("3"))
    await store.append(commit_of(run))
    store.reset()
    items = ActivityItems(store, backend.ids, sole_owner=True, maximum_bytes=1_000_000)  # type: ignore[arg-type]
    yield World(store, run, items)
    await backend.close()


async def test_each_item_is_read_once(world: World) -> None:
    for _ in range(3):
        assert await world.items.read(KEY, "run-1", world.ids) == []
    assert world.store.counts["activities"] == 1
    world.run.take(world.ids[0])
    await world.items.put(world.run.items[world.ids[0]], None)
    (item,) = await world.items.read(KEY, "run-1", world.ids)
    assert item.scheduled_event_id == world.ids[0] and item.nonce
    assert await world.items.get(KEY, "run-1", world.ids[1]) is None
    assert world.store.counts["activities"] == 1


async def test_scheduled_just_now_needs_no_read(world: World) -> None:
    for scheduled_event_id in world.ids:
        world.items.scheduled(KEY, "run-1", scheduled_event_id)
    assert await world.items.read(KEY, "run-1", world.ids) == []
    assert world.store.counts["activities"] == 0


async def test_a_conflict_makes_it_look_again(world: World) -> None:
    first = world.run.take(world.ids[0])
    await world.items.put(first, None)
    with pytest.raises(VersionConflict):
        await world.items.put(first, None)
    assert (await world.items.get(KEY, "run-1", world.ids[0])) is not None
    assert world.store.counts["activities"] == 1


async def test_finished_ones_are_found_and_forgotten_once_the_history_has_them(world: World) -> None:
    world.items.scheduled(KEY, "run-1", world.ids[1])
    for scheduled_event_id in (world.ids[0], world.ids[2]):
        await world.items.put(world.run.take(scheduled_event_id), None)
    assert not world.items.may_be_finished(KEY, world.run.s)
    await world.items.put(world.run.finish(world.ids[0]), None)
    assert world.items.may_be_finished(KEY, world.run.s)
    (finished,) = await world.items.finished(world.run.s)
    assert activity_item.is_finished(finished)
    world.run.wake_up()
    world.items.committed(KEY, world.run.s)
    assert not world.items.may_be_finished(KEY, world.run.s)
    world.run.terminate()
    world.items.committed(KEY, world.run.s)
    assert world.items._views == {} and world.items._bytes == 0


async def test_bytes_are_bounded(world: World) -> None:
    small = ActivityItems(world.store, SystemIds(), sole_owner=True, maximum_bytes=1_000)
    for number in range(100):
        small.scheduled(ExecutionKey("default", str(number)), "run-1", 5)
    assert len(small._views) <= 11


async def test_a_run_that_replaces_another_has_none_of_its_items(world: World) -> None:
    """Items are told apart by run and scheduled event, and the next run schedules the same event ids."""
    world.run.take(world.ids[0])
    await world.items.put(world.run.items[world.ids[0]], None)
    world.run.start("run-2", workflow_id_conflict_policy=WorkflowIDConflictPolicy.TERMINATE_EXISTING)
    await world.store.append(commit_of(world.run))
    world.items.committed(KEY, world.run.s)
    assert not world.items.may_be_finished(KEY, world.run.s)
    world.run.accept(activity("1"))
    assert list(world.run.s.activities) == [5] and 5 in world.ids
    assert await world.items.read(KEY, "run-2", [5]) == []
    assert len(await world.items.read(KEY, "run-1", [5])) == 1
