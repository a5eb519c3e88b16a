"""The archive: histories of closed runs, and an index of them, as blobs (OP-06).

Theory of operation. A run is written part by part, the first part last of its history, since it says how many there
are, and behind that its place in the index: so what the index shows can be read, and what is left of a write that broke
off is written again as it was, under the same names. It is erased the other way round: the first part, which tells
where in the index the run is, goes last.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from stepwell.api.errors import Internal
from stepwell.api.events import HistoryEvent

from ..common.blobs import BlobMissing, BlobStore
from . import archive_objects as objects
from .archive_objects import ArchivedRun, UnreadableArchive
from .commit import Commit, ExecutionKey
from .tasks import RecordVisibility

_PAGE = 1_000
_AT_ONCE = 16


class IndexPage(NamedTuple):
    names: tuple[str, ...]
    more: bool


class Archives:
    """Raises StoreUnavailable, StoreRefused as the blobs do."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    # --- writing ---

    async def write(
        self, commit: Commit, shown: RecordVisibility, pages: AsyncIterator[Sequence[HistoryEvent]]
    ) -> None:
        """The run that ``commit`` closed, from all of its events. May be repeated."""
        key, run_id = commit.key, shown.run_id
        cut, first, parts = objects.PartLines(), None, 0
        async for events in pages:
            for lines in cut.add(events):
                first = first or lines
                if parts:
                    await self._put_part(key, run_id, parts, lines)
                parts += 1
        rest = cut.rest()
        if rest or first is None:
            first = first or rest
            if parts:
                await self._put_part(key, run_id, parts, rest)
            parts += 1
        run = objects.archived_run(commit, shown, parts)
        line = objects.run_line(run)
        await self._put_part(key, run_id, 0, [line, *first])
        await self._blobs.put(objects.index_name(key.namespace, run.closed, run_id), objects.packed([line]))

    async def _put_part(self, key: ExecutionKey, run_id: str, number: int, lines: Sequence[bytes]) -> None:
        await self._blobs.put(objects.part_name(key, run_id, number), objects.packed(lines))

    # --- reading ---

    async def part(
        self, key: ExecutionKey, run_id: str, number: int
    ) -> tuple[ArchivedRun | None, list[HistoryEvent]] | None:
        """Events of a part; with the first one, the run. None when the archive has no such part. Raises Internal for
        what cannot be read."""
        name = objects.part_name(key, run_id, number)
        try:
            return objects.opened_part(await self._blobs.get(name), number)
        except BlobMissing:
            return None
        except UnreadableArchive as error:
            raise _unreadable(name, error) from error

    async def run(self, key: ExecutionKey, run_id: str) -> ArchivedRun | None:
        found = await self.part(key, run_id, 0)
        return None if found is None else found[0]

    async def index(self, namespace: str, after: str, limit: int) -> IndexPage:
        """Names in the index behind ``after``, newest close first."""
        page = await self._blobs.list(objects.index_of(namespace), after, limit)
        return IndexPage(page.keys, bool(page.after))

    async def indexed(self, names: Sequence[str]) -> list[ArchivedRun | None]:
        """None for those that were erased meanwhile."""
        return list(await asyncio.gather(*map(self._indexed, names)))

    async def _indexed(self, name: str) -> ArchivedRun | None:
        try:
            return objects.opened_run(await self._blobs.get(name))
        except BlobMissing:
            return None
        except UnreadableArchive as error:
            raise _unreadable(name, error) from error

    # --- erasing ---

    async def erase(self, key: ExecutionKey, run_id: str) -> bool:
        """All of a run; whether there was anything. May be repeated."""
        names: list[str] = []
        prefix, after = objects.history_prefix(key, run_id), ""
        while True:
            page = await self._blobs.list(prefix, after, _PAGE)
            names += page.keys
            if not page.after:
                break
            after = page.after
        if not names:
            return False
        run = await self.run(key, run_id)
        if run is not None:
            await self._blobs.delete([objects.index_name(key.namespace, run.closed, run_id)])
        await self._blobs.delete(names[1:])
        await self._blobs.delete(names[:1])
        return True

    async def erase_some(self, namespace: str) -> bool:
        """A thousand objects of a namespace; whether there may be more."""
        for prefix in (objects.index_of(namespace), objects.histories_of(namespace)):
            page = await self._blobs.list(prefix, limit=_PAGE)
            if page.keys:
                await self._blobs.delete(page.keys)
                return True
        return False


def _unreadable(name: str, error: UnreadableArchive) -> Internal:
    return Internal(f"object {name!r} of the archive cannot be read: {error}; restore it from a copy")
