"""Large payloads become blobs of the run that refers to them; what is read is whole; all else is left alone."""

import dataclasses
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest
from stepwell.api.payloads import Payload

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history import codec
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.offload import REFERENCE, OffloadingLog
from stepwell_server.history.ports import Conflict, StateTooLarge, StoreUnavailable, VersionConflict
from stepwell_server.history.run_blobs import Owner, PayloadLost, RunBlobs
from tests.support.aws.clock import StandingClock
from tests.support.blobs import CountedBlobs, noise, with_input, with_memo
from tests.support.sample_commits import EPOCH, SampleRun, chain, sample_item

LARGE = 100_000
HOUR = timedelta(hours=1)


@dataclasses.dataclass
class World:
    backend: Backend
    blobs: CountedBlobs
    clock: StandingClock

    def process(self) -> OffloadingLog:
        """On the same store, with nothing remembered."""
        return OffloadingLog(self.backend.log, RunBlobs(self.blobs, self.clock), self.clock)

    async def raw(self, commit: Commit) -> Commit:
        found = await self.backend.log.get(commit.key, commit.seq)
        assert found is not None
        return found


@pytest.fixture
async def world() -> AsyncIterator[World]:
    backend = embedded_backend(":memory:")
    yield World(backend, CountedBlobs(), StandingClock(EPOCH))
    await backend.close()


async def test_small_payloads_cost_no_request_and_no_second_encoding(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []
    encode = codec._parts

    def counted(commit: Commit) -> object:
        parts.append(commit.seq)
        return encode(commit)

    monkeypatch.setattr(codec, "_parts", counted)
    log = world.process()
    run = SampleRun(1)
    for commit in run.commits():
        large_enough = with_input(commit, noise(1_024)) if commit.seq == 1 else commit
        await log.append(large_enough)
        assert await log.head(commit.key) == large_enough
    await log.put_activity(sample_item(run))
    assert parts == [1, 2, 3, 4, 5]
    assert not world.blobs.counts


async def test_a_large_payload_is_one_put_and_a_replay_one_get(world: World) -> None:
    start = with_input(next(SampleRun(1).commits()), noise(LARGE), noise(100))
    log = world.process()
    await log.append(start)
    assert world.blobs.counts == {"put": 1}
    assert await log.head(start.key) == start
    page = await log.read_events(start.key, start.run_id, 0, 10)
    assert page.events == start.events
    assert world.blobs.counts == {"put": 1}
    other = world.process()
    for _ in range(3):
        assert await other.read_events(start.key, start.run_id, 0, 10) == page
        assert await other.get(start.key, 1) == start
        assert await other.find_run(start.key, start.run_id) == start
    assert world.blobs.counts == {"put": 1, "get": 1}
    stored = codec.encode_commit(await world.raw(start))
    assert len(stored.head) + len(stored.events) < 2_000


async def test_what_compresses_well_stays_where_it_is(world: World) -> None:
    start = with_input(next(SampleRun(1).commits()), Payload(data=b"abc" * 30_000), noise(8_000), noise(8_000, 1))
    await world.process().append(start)
    assert not world.blobs.counts and await world.raw(start) == start


async def test_what_rides_in_every_state_is_put_once(world: World) -> None:
    """By the process that put it, and by one that has read the state."""
    memo = noise(LARGE)
    commits = [with_memo(commit, note=memo) for commit in SampleRun(1).commits()]
    log = world.process()
    for commit in commits[:2]:
        await log.append(commit)
    world.clock.go(50 * HOUR)
    await log.append(commits[2])
    assert world.blobs.counts == {"put": 1}
    other = world.process()
    head = await other.head(commits[0].key)
    assert head == commits[2]
    for commit in commits[3:]:
        await other.append(with_memo(commit, note=head.state.memo["note"]))
    assert world.blobs.counts == {"put": 1, "get": 1}
    assert await world.process().head(head.key) == commits[-1]


async def test_what_passes_on_to_another_run_is_copied_first(world: World) -> None:
    """In the commit of both, by its own object: each run has its blob, and nothing is shared."""
    passed = noise(LARGE)
    first, second = chain(4)
    start = with_input(with_memo(first[0], note=passed), passed)
    shared = with_input(with_memo(second[0], note=passed), passed)
    assert shared.closed is not None
    closed_state = msgspec.structs.replace(shared.closed.state, memo={"note": passed})
    shared = msgspec.structs.replace(shared, closed=msgspec.structs.replace(shared.closed, state=closed_state))
    log = world.process()
    for commit in [start, *first[1:], shared]:
        await log.append(commit)
    owners = [Owner(commit.key, commit.run_id) for commit in (start, shared)]
    keys = await world.blobs.keys()
    assert len(keys) == 2 and [sum(key.startswith(owner.prefix) for key in keys) for owner in owners] == [1, 1]
    other = world.process()
    assert await other.head(start.key) == shared
    # The run before is over and erased; the commit is the next run's as well.
    await world.blobs.delete([key for key in keys if key.startswith(owners[0].prefix)])
    page = await world.process().read_events(start.key, shared.run_id, shared.seq - 1, 10)
    assert page.events == shared.events


async def test_a_missing_blob_is_told_by_run_and_key(world: World) -> None:
    start = with_input(next(SampleRun(1).commits()), noise(LARGE))
    await world.process().append(start)
    keys = await world.blobs.keys()
    await world.blobs.delete(keys)
    log = world.process()
    for read in (log.head(start.key), log.read_events(start.key, start.run_id, 0, 10), log.get(start.key, 1)):
        with pytest.raises(PayloadLost) as lost:
            await read
        assert start.run_id in str(lost.value) and keys[0] in str(lost.value)
    assert not issubclass(PayloadLost, StoreUnavailable)


async def test_a_conflict_shows_what_is_there_whole(world: World) -> None:
    start = with_input(next(SampleRun(1).commits()), noise(LARGE))
    await world.process().append(start)
    other = msgspec.structs.replace(with_input(start, noise(LARGE, 2)), nonce="other")
    with pytest.raises(Conflict) as refused:
        await world.process().append(other)
    assert refused.value.existing == start


async def test_nobody_can_forge_a_reference(world: World) -> None:
    """Not to what is there, not to what is not there, in commits, items and states; it comes back as it was given."""
    log = world.process()
    start = with_input(next(SampleRun(1).commits()), noise(LARGE))
    await log.append(start)
    name = (await world.blobs.keys())[0].rpartition("/")[2]
    run = SampleRun(2)
    for number, forged in enumerate((name, "f" * 64 + "-7a000", "")):
        payload = Payload(metadata={REFERENCE: forged, "encoding": "json/plain"}, data=b"1")
        run = SampleRun(10 + number)
        commit = with_memo(with_input(next(run.commits()), payload, noise(LARGE)), note=payload)
        item = msgspec.structs.replace(sample_item(run), heartbeat_details=(payload,))
        await log.append(commit)
        await log.put_activity(item)
        for reader in (log, world.process()):
            assert await reader.head(commit.key) == commit
            assert await reader.get_activity(commit.key, run.run_id, 5) == item


async def test_items_are_small_too(world: World) -> None:
    run = SampleRun(3)
    key = ExecutionKey("default", run.workflow_id)
    log = world.process()
    item = msgspec.structs.replace(sample_item(run), heartbeat_details=(noise(LARGE),))
    await log.append(next(run.commits()))
    await log.put_activity(item)
    done = msgspec.structs.replace(sample_item(run, version=2), result=(noise(LARGE, 2), noise(LARGE, 3)))
    await log.put_activity(done)
    assert world.blobs.counts["put"] == 3
    other = world.process()
    assert await other.get_activity(key, run.run_id, 5) == done
    assert await other.activities(key, run.run_id, [5, 6]) == [done]
    assert world.blobs.counts["get"] == 2
    with pytest.raises(VersionConflict) as refused:
        await other.put_activity(item)
    assert refused.value.existing == done
    many = tuple(noise(4_000, number) for number in range(200))
    await log.put_activity(msgspec.structs.replace(done, version=3, result=many))
    raw = await world.backend.log.get_activity(key, run.run_id, 5)
    assert raw is not None and len(codec.encode_activity_item(raw)) < 50_000
    assert (await world.process().activities(key, run.run_id, [5]))[0].result == many


async def test_a_result_goes_from_its_item_into_a_commit_without_another_put(world: World) -> None:
    """While its blob is young; later the commit gets its own, since the item's may have been given up meanwhile."""
    for waited, puts in ((0.5, 1), (30, 2)):
        world.blobs.counts.clear()
        run = SampleRun(int(waited) + 5)
        await world.process().put_activity(msgspec.structs.replace(sample_item(run, version=1), result=(noise(LARGE),)))
        world.clock.go(waited * HOUR)
        log = world.process()
        start = next(run.commits())
        item = await log.get_activity(start.key, run.run_id, 5)
        assert item is not None
        await log.append(with_input(start, *item.result))
        assert world.blobs.counts == {"put": puts, "get": 1}


async def test_what_is_over_a_limit_is_refused_before_anything_is_put(world: World) -> None:
    start = next(SampleRun(1).commits())
    memo = {str(number): noise(500_000, number) for number in range(17)}
    with pytest.raises(StateTooLarge, match="8388608"):
        await world.process().append(with_memo(start, **memo))
    assert not world.blobs.counts
    assert await world.backend.log.head(start.key) is None


async def test_a_store_that_is_out_of_reach_refuses_the_write(world: World) -> None:
    async def fail() -> None:
        raise StoreUnavailable("S3 is slow")

    world.blobs.behind_put = fail
    start = with_input(next(SampleRun(1).commits()), noise(LARGE))
    log = world.process()
    with pytest.raises(StoreUnavailable):
        await log.append(start)
    assert await world.backend.log.head(start.key) is None
    world.blobs.behind_put = None
    await log.append(start)
    assert await world.process().head(start.key) == start


async def test_prefixes_of_resets_are_copied_under_their_run(world: World) -> None:
    log = world.process()
    base = with_input(next(SampleRun(4, run=1).commits()), noise(LARGE))
    await log.append(base)
    page = await world.process().read_events(base.key, base.run_id, 0, 10)
    await log.put_prefix(base.key, "the-new-run", -(2**31) + 1, page.events, now=EPOCH)
    own = Owner(base.key, "the-new-run").prefix
    assert [key.endswith("-b") for key in await world.blobs.keys() if key.startswith(own)] == [True]


@pytest.mark.parametrize("threshold", [0, 4_095, 32_769])
def test_a_threshold_out_of_bounds_is_refused(world: World, threshold: int) -> None:
    with pytest.raises(ValueError, match="4096 to 32768"):
        OffloadingLog(world.backend.log, RunBlobs(world.blobs, world.clock), world.clock, threshold=threshold)
