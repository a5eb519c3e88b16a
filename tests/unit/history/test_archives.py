"""What the archive writes, in which order, and what is left of it whenever its writer dies."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from stepwell.api.errors import Internal
from stepwell.api.events import HistoryEvent

from stepwell_server.adapters.folder_blobs import FolderBlobs
from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.history import archive_objects as objects
from stepwell_server.history.archives import Archives
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from stepwell_server.history.tasks import RecordVisibility
from tests.support.sample_commits import EPOCH, SampleRun

COMMITS = list(SampleRun(1, steps=20).commits())
EVENTS = [event for commit in COMMITS for event in commit.events]
KEY, RUN = COMMITS[0].key, COMMITS[0].run_id
SMALL_PART = 10


class Mortal(MemoryBlobs):
    """Dies behind so many writes."""

    left = 1_000

    def _live(self) -> None:
        if self.left == 0:
            raise StoreUnavailable("the process is dead")
        self.left -= 1

    async def put(self, key: str, data: bytes) -> None:
        self._live()
        await super().put(key, data)

    async def delete(self, keys: Sequence[str]) -> None:
        self._live()
        await super().delete(keys)


@pytest.fixture(autouse=True)
def parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "PART_EVENTS", SMALL_PART)


def shown() -> RecordVisibility:
    [task] = COMMITS[-1].tasks
    assert isinstance(task, RecordVisibility)
    return task


async def pages(of: Sequence[Commit] = COMMITS) -> AsyncIterator[Sequence[HistoryEvent]]:
    for commit in of:
        yield commit.events


async def written(blobs: MemoryBlobs) -> Archives:
    archives = Archives(blobs)
    await archives.write(COMMITS[-1], shown(), pages())
    return archives


async def read(archives: Archives) -> list[HistoryEvent]:
    run = await archives.run(KEY, RUN)
    assert run is not None
    found = [await archives.part(KEY, RUN, number) for number in range(run.parts)]
    return [event for part in found if part is not None for event in part[1]]


async def test_whatever_write_it_dies_behind_what_is_indexed_can_be_read_and_the_next_one_does_the_rest() -> None:
    whole = MemoryBlobs()
    assert await read(await written(whole)) == EVENTS
    deaths = 0
    while True:
        blobs = Mortal()
        blobs.left = deaths
        try:
            await written(blobs)
        except StoreUnavailable:
            archives = Archives(blobs)
            assert not (await archives.index("default", "", 9)).names, "the index comes last"
            if await archives.run(KEY, RUN) is not None:
                assert await read(archives) == EVENTS
            blobs.left = 1_000
            assert await read(await written(blobs)) == EVENTS
            assert blobs._blobs == whole._blobs, "the same bytes under the same names"
            deaths += 1
        else:
            break
    assert deaths == len(EVENTS) // SMALL_PART + 2


async def test_whatever_it_dies_behind_an_erasing_can_be_done_again() -> None:
    for left in range(4):
        blobs = Mortal()
        archives = await written(blobs)
        blobs.left = left
        try:
            await archives.erase(KEY, RUN)
        except StoreUnavailable:
            names = (await archives.index("default", "", 9)).names
            assert not names or await read(archives) == EVENTS, "out of the index first"
            blobs.left = 1_000
            assert await archives.erase(KEY, RUN)
        assert not blobs._blobs and not await archives.erase(KEY, RUN)


async def test_names_in_order_are_the_newest_close_first() -> None:
    times = [EPOCH + timedelta(days=days, seconds=seconds) for days in (0, 1, 40) for seconds in (0, 1, 7_200)]
    names = [objects.index_name("shop", time, "r") for time in times]
    assert names == sorted(names, reverse=True)
    for time, name in zip(times, names, strict=True):
        assert objects.index_before("shop", time) < name < objects.index_behind("shop", time)
        assert objects.index_behind("shop", time) <= objects.index_before("shop", time - timedelta(microseconds=1))


@pytest.mark.parametrize("awkward", ["..", ".hidden", "a/b", "日本", "-", "x" * 400, "o'brien #1"])
async def test_awkward_ids_have_names_of_their_own_inside_of_the_folder(awkward: str) -> None:
    name = objects.part_name(ExecutionKey(awkward, awkward), awkward[:100], 0)
    parts = name.split("/")
    assert len(parts) == 5 and all(part[:1].isalnum() or part[:1] == "=" for part in parts)
    assert name.isascii() and len(name) <= 900
    assert objects.index_of(awkward) != objects.index_of(awkward + "x")


@pytest.mark.parametrize("text", ["界" * 29, "界" * 33, "/" * 100, "x" * 255])
async def test_whatever_names_and_run_ids_may_be_a_folder_takes_them(text: str, tmp_path: Path) -> None:
    """Of which each part has 255 bytes at most. A run of an import has the id that its history says."""
    blobs = FolderBlobs(tmp_path)
    run_id = text[:100]
    for name in (
        objects.part_name(ExecutionKey(text, "w"), run_id, 0),
        objects.index_name(text, EPOCH, run_id),
    ):
        assert not (await blobs.list(name)).keys
        await blobs.put(name, b"there")
        assert await blobs.get(name) == b"there"


@pytest.mark.parametrize("damage", [b"", b"no gzip", objects.packed([b"{}"]), objects.packed([b'{"workflow_id": 1}'])])
async def test_what_cannot_be_read_is_named(damage: bytes) -> None:
    blobs = MemoryBlobs()
    name = objects.part_name(KEY, RUN, 0)
    await blobs.put(name, damage)
    with pytest.raises(Internal, match="cannot be read") as refused:
        await Archives(blobs).run(KEY, RUN)
    assert name in str(refused.value)
