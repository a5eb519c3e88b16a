"""Wires the embedded store: one database file with its owner, its threads and its connections, or ``:memory:``."""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from ...common.blobs import BlobStore
from ...common.clock import Clock, IdSource
from ...history.commit import ExecutionKey
from ...history.ports import StoreUnavailable
from ...namespaces.registry import Namespaces
from ..backend import Backend
from ..folder_blobs import FolderBlobs, archive_beside
from ..folder_objects import FolderObjects
from ..memory_blobs import MemoryBlobs
from ..system import SystemClock, SystemIds
from .backup import back_up
from .checkpoint import Checkpointer, grow_log
from .connection import MEMORY, open_for_checkpoints, open_read_only, open_writable, refuse_foreign
from .errors import DatabaseRefused
from .file_committer import FileCommitter
from .group_commit import BatchCommitter, InlineCommitter
from .ownership import Ownership
from .reads import Reader
from .store import SqliteControl, SqliteReads, SqliteStore


def embedded_backend(path: str | Path, *, clock: Clock | None = None, ids: IdSource | None = None) -> Backend:
    """Opens (or makes) the database at ``path`` and takes ownership of it; ``:memory:`` keeps everything in memory.

    Raises :class:`DatabaseInUse` when another process owns the file, and :class:`DatabaseRefused` when it is not ours,
    not readable or of a newer release; the file is then untouched.
    """
    store = _MemoryStore() if str(path) == MEMORY else _FileStore(Path(path).expanduser().resolve())
    clock = clock or SystemClock()
    ids = ids or SystemIds(clock)
    control = SqliteControl(store.ports, ids)
    return Backend(
        log=store.ports,
        timers=store.ports,
        visibility=store.ports,
        control=control,
        namespaces=Namespaces(control, clock, ids),
        clock=clock,
        ids=ids,
        token_key=store.token_key,
        database=store.name,
        sweep=store.sweep,
        backup=store.backup,
        close=store.close,
        is_quick=store.is_quick,
        exports=store.exports,
        archive=store.archive,
    )


def open_for_inspection(path: str | Path) -> SqliteReads:
    """The reads of all ports on a file that may be in use by its owner; changes nothing. Raises DatabaseRefused."""
    resolved = Path(path).expanduser().resolve()
    return SqliteReads(Reader(open_read_only(resolved)), Reader(open_read_only(resolved)))


class _Store:
    ports: SqliteStore
    exports: FolderObjects | None = None
    archive: BlobStore
    token_key: bytes
    name: str

    def is_quick(self) -> bool:
        return True

    async def sweep(self, closed_before: datetime, own: Mapping[str, datetime] | None = None) -> list[ExecutionKey]:
        keys: list[ExecutionKey] = []
        while True:
            swept = await self.ports.sweep(closed_before, own)
            keys += swept.keys
            if not swept.more:
                return keys
            # Let what queued up behind this batch go first.
            await asyncio.sleep(0)


class _FileStore(_Store):
    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self.exports = FolderObjects(path.with_name(f"{path.name}.exports"))
        self.archive = FolderBlobs(archive_beside(path))
        refuse_foreign(path)
        self._ownership: Ownership | None = Ownership(path)
        with ExitStack() as undo:
            undo.callback(self._ownership.release)
            try:
                self._open(path, undo)
            except (sqlite3.Error, StoreUnavailable) as error:
                raise DatabaseRefused(f"cannot open {path}: {error}; check the disk, or restore a backup") from error
            undo.pop_all()

    def _open(self, path: Path, undo: ExitStack) -> None:
        """All that may fail comes before the threads."""
        self._writer = open_writable(path)
        undo.callback(self._writer.close)
        grow_log(self._writer, path.with_name(path.name + "-wal"))
        fast = open_read_only(path)
        undo.callback(fast.close)
        slow = open_read_only(path)
        undo.callback(slow.close)
        checkpoint = open_for_checkpoints(path)
        undo.callback(checkpoint.close)
        reader = Reader(fast)
        self.token_key = reader.token_key()
        batches = BatchCommitter(self._writer)
        self._checkpointer = Checkpointer(self._writer, checkpoint)
        self._committer = FileCommitter(batches, self._checkpointer, path)
        self.ports = SqliteStore(reader, Reader(slow), self._committer)

    def is_quick(self) -> bool:
        return self._committer.is_quick

    async def backup(self, target: Path) -> None:
        if target.expanduser().resolve() == self._path:
            raise DatabaseRefused(f"cannot back up {self._path} to itself; name a new file")
        await asyncio.get_running_loop().run_in_executor(None, self._back_up, target)

    def _back_up(self, target: Path) -> None:
        source = open_read_only(self._path)
        try:
            back_up(source, target)
        finally:
            source.close()

    async def close(self) -> None:
        if self._ownership is None:
            return
        ownership, self._ownership = self._ownership, None
        await self._committer.close()
        self._checkpointer.close()
        self.ports.close()
        # The last connection to close copies the log into the database and removes it.
        self._writer.close()
        ownership.release()


class _MemoryStore(_Store):
    """One connection, on the event loop; the same tables, statements and transactions."""

    def __init__(self) -> None:
        self.name = "memory"
        self.archive = MemoryBlobs()
        self._connection = open_writable(MEMORY)
        reader = Reader(self._connection)
        self.token_key = reader.token_key()
        self._committer = InlineCommitter(self._connection)
        self.ports = SqliteStore(reader, None, self._committer)

    async def backup(self, target: Path) -> None:
        back_up(self._connection, target)

    async def close(self) -> None:
        await self._committer.close()
        self._connection.close()
