"""Parts of items as blobs: which go, under which names, and what becomes of a writer that stands still."""

from datetime import timedelta

from stepwell_server.adapters.aws.attributes import from_attributes, size, to_attributes
from stepwell_server.adapters.aws.commit_items import MAX_ITEM_BYTES
from stepwell_server.adapters.aws.large_parts import LargeParts, PartBlobs, names_in
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.run_blobs import Owner, RunBlobs, hour_of, put_at
from tests.support.aws.clock import StandingClock
from tests.support.blobs import CountedBlobs, noise
from tests.support.sample_commits import EPOCH

HOUR = timedelta(hours=1)
OWNER = Owner(ExecutionKey("default", "order-1"), "run-1")


class World:
    def __init__(self) -> None:
        self.blobs = CountedBlobs()
        self.clock = StandingClock(EPOCH)
        self.parts = LargeParts(RunBlobs(self.blobs, self.clock))
        self.writing = PartBlobs(self.parts, OWNER, self.clock)


def item(head: int, events: int) -> dict[str, object]:
    return {"pk": "k", "run": "run-1", "h": noise(head).data, "e": noise(events, 1).data}


async def test_events_go_first_and_the_head_only_if_that_is_not_enough() -> None:
    for head, events, gone in ((100_000, 200_000, set()), (10_000, 500_000, {"er"}), (500_000, 10_000, {"er", "hr"})):
        world = World()
        whole = to_attributes(item(head, events))  # type: ignore[arg-type]
        small = await world.writing.small(whole)
        assert small.keys() & {"er", "hr"} == gone and size(small) <= MAX_ITEM_BYTES
        assert len(await world.blobs.keys()) == len(gone) == len(names_in(from_attributes(small)))
        back = await world.parts.whole(from_attributes(small), OWNER.key)
        assert {name: back[name] for name in ("h", "e")} == {name: whole[name]["B"] for name in ("h", "e")}


async def test_who_stands_still_before_the_write_begins_again() -> None:
    """The collector may have taken the blobs for garbage meanwhile."""
    world = World()

    async def pause() -> None:
        world.blobs.behind_put = None
        world.clock.go(30 * HOUR)

    world.blobs.behind_put = pause
    small = await world.writing.small(to_attributes(item(10_000, 500_000)))  # type: ignore[arg-type]
    (name,) = names_in(from_attributes(small))
    assert put_at(name) == hour_of(world.clock.now()) and len(await world.blobs.keys()) == 2


async def test_who_stands_still_during_the_write_puts_its_parts_again() -> None:
    for hours, puts in ((1, 1), (13, 2)):
        world = World()
        await world.writing.small(to_attributes(item(10_000, 500_000)))  # type: ignore[arg-type]
        keys = await world.blobs.keys()
        if hours > 12:
            await world.blobs.delete(keys)
        world.clock.go(hours * HOUR)
        await world.writing.landed()
        assert await world.blobs.keys() == keys and world.blobs.counts["put"] == puts
