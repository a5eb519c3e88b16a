"""The collector deletes what nothing needs, and nothing else, whenever it runs and wherever anybody dies."""

import itertools
import random
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import msgspec
import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.history.blob_collector import BlobCollector
from stepwell_server.history.commit import BEGINNING, Commit
from stepwell_server.history.offload import OffloadingLog
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.history.run_blobs import Owner, RunBlobs
from tests.support.aws.clock import StandingClock
from tests.support.blobs import CountedBlobs, noise, with_input, with_memo
from tests.support.sample_commits import EPOCH, SampleRun, owing, sample_item

SIZE = 9_000
HOUR = timedelta(hours=1)


class Died(BaseException):
    """The process did, between a put and the commit."""


class World:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.blobs = CountedBlobs()
        self.clock = StandingClock(EPOCH)

    def process(self) -> OffloadingLog:
        return OffloadingLog(self.backend.log, RunBlobs(self.blobs, self.clock), self.clock)

    def collector(self) -> BlobCollector:
        return BlobCollector(self.backend.log, self.blobs, self.clock)

    async def pass_of(self, hours: float = 0) -> int:
        """Goes on by so many hours, and then through all blobs; the number deleted."""
        self.clock.go(hours * HOUR)
        return (await self.collector().run(1e9)).deleted

    async def dies_behind_put(self) -> None:
        raise Died

    async def put_and_die(self, commit: Commit) -> None:
        self.blobs.behind_put = self.dies_behind_put
        with pytest.raises(Died):
            await self.process().append(commit)
        self.blobs.behind_put = None

    async def keys_of(self, commit: Commit) -> list[str]:
        prefix = Owner(commit.key, commit.run_id).prefix
        return [key for key in await self.blobs.keys() if key.startswith(prefix)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    backend = embedded_backend(":memory:")
    yield World(backend)
    await backend.close()


def large_run(number: int, memo: int | None = None) -> list[Commit]:
    commits = list(SampleRun(number).commits())
    commits[0] = with_input(commits[0], noise(SIZE, number))
    if memo is not None:
        commits = [with_memo(commit, note=noise(SIZE, memo)) for commit in commits]
    return commits


async def test_what_a_run_refers_to_stays_and_goes_with_the_run(world: World) -> None:
    commits = large_run(1, memo=100)
    log = world.process()
    for commit in commits:
        await log.append(commit)
    assert await world.pass_of(0) == await world.pass_of(30) == await world.pass_of(300) == 0
    assert await world.process().head(commits[0].key) == commits[-1]
    assert len(await world.blobs.keys()) == 2
    await world.backend.sweep(EPOCH + timedelta(days=400))
    assert await world.pass_of(25) == 2
    assert await world.blobs.keys() == ()


async def test_of_a_commit_that_never_came_the_blobs_go_after_a_day(world: World) -> None:
    """Of a run that never was, and of one that goes on."""
    start, second, *_ = large_run(1)
    await world.process().append(start)
    other, *_ = large_run(2)
    await world.put_and_die(with_memo(second, note=noise(SIZE, 50)))
    await world.put_and_die(other)
    assert len(await world.blobs.keys()) == 3
    assert await world.pass_of(20) == 0
    assert await world.pass_of(25) == 2
    assert len(await world.keys_of(start)) == 1
    assert await world.process().head(start.key) == start


async def test_a_commit_made_again_after_days_has_its_blobs_whatever_the_collector_does(world: World) -> None:
    """The same run, the same content, while the collector has looked and not yet deleted."""
    start, *_ = large_run(1)
    await world.put_and_die(start)
    world.clock.go(40 * HOUR)
    log = world.process()
    delete = world.blobs.inner.delete

    async def commit_first(keys: object) -> None:
        await log.append(start)
        world.blobs.inner.delete = delete  # type: ignore[method-assign]
        await delete(keys)  # type: ignore[arg-type]

    world.blobs.inner.delete = commit_first  # type: ignore[method-assign]
    assert (await world.collector().run(1e9)).deleted == 1
    assert len(await world.keys_of(start)) == 1
    assert await world.process().head(start.key) == start


@pytest.mark.parametrize("hours", [1, 13, 30, 300])
@pytest.mark.parametrize("behind", ["put", "last look at the clock"])
async def test_a_commit_that_lands_late_has_its_blobs(
    world: World, behind: str, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process stood still between put and commit, and the collector passed by."""
    start, *_ = large_run(1)
    append = world.backend.log.append

    async def pause() -> None:
        world.blobs.behind_put = None
        await world.pass_of(hours)

    async def late(commit: Commit, *, arm: datetime | None = None) -> None:
        await pause()
        await append(commit, arm=arm)

    if behind == "put":
        world.blobs.behind_put = pause
    else:
        monkeypatch.setattr(world.backend.log, "append", late)
    await world.process().append(start)
    await world.pass_of(48)
    assert await world.process().head(start.key) == start


async def test_items_keep_what_they_refer_to_now(world: World) -> None:
    """Progress that newer progress replaced goes, while the run goes on; results that wait stay."""
    start, *_ = large_run(1)
    start = with_schedule(start)
    log = world.process()
    await log.append(start)
    item = sample_item(SampleRun(1), 3)
    for version in range(1, 5):
        progress = (noise(SIZE, 10 + version),)
        await log.put_activity(msgspec.structs.replace(item, version=version, heartbeat_details=progress))
        world.clock.go(HOUR)
    assert await world.pass_of(40) == 3
    found = await world.process().get_activity(start.key, start.run_id, 3)
    assert found is not None and found.heartbeat_details == (noise(SIZE, 14),)


def with_schedule(start: Commit) -> Commit:
    """As if the first commit had scheduled an activity, with event id 3."""
    run = SampleRun(1)
    scheduled = next(
        event
        for commit in run.commits()
        for event in commit.events
        if "Scheduled" in type(event.attributes).__name__ and "Activity" in type(event.attributes).__name__
    )
    events = (*start.events, msgspec.structs.replace(scheduled, event_id=3))
    return msgspec.structs.replace(start, events=events)


async def test_parts_of_a_prefix_are_kept_for_a_reset_that_takes_its_time(world: World) -> None:
    base, *_ = large_run(1)
    log = world.process()
    await log.append(base)
    await log.put_prefix(base.key, "the-new-run", BEGINNING + 1, base.events, now=EPOCH)
    assert await world.pass_of(100) == 0
    assert await world.pass_of(100) == 1


async def test_a_closed_run_that_owes_keeps_what_it_is_to_deliver(world: World) -> None:
    """Also when its retention is over."""
    commits = large_run(1)
    *before, close = commits
    close = owing(close, close.run_id)
    log = world.process()
    for commit in [*before, close]:
        await log.append(commit)
    await world.backend.sweep(EPOCH + timedelta(days=400))
    assert await world.pass_of(48) == 0


async def test_a_run_that_waits_costs_two_reads_a_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = large_run(1)
    log = world.process()
    for commit in commits[:4]:
        await log.append(commit)
    assert await world.pass_of(48) == 0
    reads: list[int] = []
    get = world.backend.log.get

    async def counted(key: object, seq: int) -> object:
        reads.append(seq)
        return await get(key, seq)  # type: ignore[arg-type]

    monkeypatch.setattr(world.backend.log, "get", counted)
    for _ in range(5):
        world.blobs.counts.clear()
        assert await world.pass_of(25) == 0
        assert world.blobs.counts["get"] == 2 and not reads
    assert await world.pass_of(1) == 0
    await log.append(with_memo(commits[4], note=noise(SIZE, 9)))
    assert await world.pass_of(48) == 0 and reads == [1, 2, 3, 4, 5]


async def test_a_pass_goes_on_where_a_call_ended_or_failed(world: World) -> None:
    for number in range(30):
        await world.put_and_die(large_run(number)[0])
    world.clock.go(48 * HOUR)
    for left in range(29, 19, -1):
        assert (await world.collector().run(0.0)).deleted == 1
        assert len(await world.blobs.keys()) == left
    delete = world.blobs.inner.delete

    async def fail(keys: object) -> None:
        world.blobs.inner.delete = delete  # type: ignore[method-assign]
        raise StoreUnavailable("slow")

    world.blobs.inner.delete = fail  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await world.collector().run(0.0)
    assert (await world.collector().run(1e9)).deleted == 20
    assert await world.blobs.keys() == () and len(await world.blobs.keys("g/")) == 1
    assert await world.collector().run(1e9) == (0, 0)


async def test_what_is_nobodys_is_left_alone(world: World) -> None:
    start, *_ = large_run(1)
    await world.put_and_die(start)
    (key,) = await world.blobs.keys()
    strange = [Owner(start.key, "another").prefix + key.rpartition("/")[2], "p/x/y/z/readme"]
    for other in strange:
        await world.blobs.put(other, await world.blobs.get(key))
    assert await world.pass_of(48) == 1
    assert sorted(await world.blobs.keys()) == sorted(strange)


class Chances:
    """Runs that go on, processes that die between put and commit, days that pass, and a collector at any point: also
    between put and commit."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = random.Random(seed)
        self._runs = [large_run(number) for number in range(4)]
        self.written: list[list[Commit]] = [[] for _ in self._runs]
        self._log = world.process()

    async def go_on(self) -> None:
        number = self._chance.randrange(len(self._runs))
        done = self.written[number]
        if len(done) < len(self._runs[number]):
            commit = self._runs[number][len(done)]
            if self._chance.random() < 0.7:
                commit = with_memo(commit, note=noise(SIZE, self._chance.randrange(3)))
            self._world.blobs.behind_put = self._meanwhile
            try:
                await self._log.append(commit)
                done.append(commit)
            except Died:
                self._log = self._world.process()
            self._world.blobs.behind_put = None
        self._world.clock.go(self._chance.choice((0, 1, 3, 26)) * HOUR)
        await self._collect()

    async def _meanwhile(self) -> None:
        self._world.clock.go(self._chance.choice((0, 0, 1, 5, 14, 30)) * HOUR)
        if self._chance.random() < 0.5:
            await self._collect()
        if self._chance.random() < 0.2:
            raise Died

    async def _collect(self) -> None:
        await self._world.collector().run(self._chance.choice((0.0, 1e9)))


@pytest.mark.parametrize("seed", range(12))
async def test_anything_in_any_order(world: World, seed: int) -> None:
    """All that was acknowledged is read whole, always; in the end nothing is left that nothing needs."""
    chances = Chances(world, seed)
    for _ in range(60):
        await chances.go_on()
        for commit in itertools.chain(*chances.written):
            assert await world.process().get(commit.key, commit.seq) == commit
    for _ in range(2):
        await world.pass_of(60)
    started = [commits for commits in chances.written if commits]
    of_runs = {key for commits in started for key in await world.keys_of(commits[0])}
    assert set(await world.blobs.keys()) == of_runs
    await world.backend.sweep(world.clock.now() + timedelta(days=400))
    await world.pass_of(60)
    open_ones = {key for commits in started if len(commits) < 5 for key in await world.keys_of(commits[0])}
    assert set(await world.blobs.keys()) == open_ones
