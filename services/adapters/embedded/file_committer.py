"""The committer of a file: all writes of one turn of the event loop share one transaction and one fsync.

Who runs the transaction is decided by measurement. While the disk syncs in a fraction of a millisecond, the event loop
does it itself at the end of its turn: a hand-over to a thread and back costs as much as the fsync, and two threads that
both hold the interpreter lock for most of their time slow each other down (ADR 0003 has the figures). When commits take
longer than ``_SLOW``, when there is much to write, or when a checkpoint must be finished, the writer thread does it,
with all that comes in meanwhile as its next batch. Never both: one owner of the connection at any time.

Only what the loop commits itself tells how fast the disk is: the thread's times are mostly waits for the interpreter
lock, the more so the busier the loop is, and by them the thread would never be found dispensable again.
"""

import asyncio
import os
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ...history.ports import StoreUnavailable
from .checkpoint import Checkpointer
from .group_commit import MAX_BATCH, BatchCommitter, Call, Result, Waiting, run_batch, settle, size_of_work
from .writes import Write

_SLOW = 0.002
"""Seconds a transaction may take on the event loop; typical ones that take longer go to the thread."""

_MANY = 128
"""Writes from which on the thread is worth its hand-over."""

_WEIGHT = 0.1
"""Of the newest transaction in the running average of their duration."""

_LOOK_EVERY = 16
"""Batches that the thread commits, since the disk was slow, until the loop tries one."""

_LOOK_SECONDS = 1.0
"""How often to see whether the file still has its name."""

_CLOSED = "the store is closed"
_GONE = (
    "{} was deleted, moved or replaced while it was in use, and what is written to it now would be lost; move it back, "
    "or stop this process and restore a backup"
)


class FileCommitter:
    """Belongs to one event loop, that of the first write; a write from another raises RuntimeError."""

    def __init__(self, batches: BatchCommitter, checkpointer: Checkpointer, path: Path) -> None:
        self._batches = batches
        self._checkpointer = checkpointer
        self._path = path
        self._file = path.stat()
        self._look_again = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[Waiting] = []
        self._scheduled = False
        self._handed_over = False
        self._typical = 0.0
        """Seconds; of the transactions on the loop."""
        self._by_thread = 0
        """Batches that the thread has had since the loop's last, because that was slow."""
        self._closed = False
        self._queue: SimpleQueue[tuple[list[Waiting], asyncio.AbstractEventLoop] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="stepwell-writer", daemon=True)
        self._thread.start()

    @property
    def is_quick(self) -> bool:
        """Whether the event loop commits by itself, as the disk syncs in a fraction of its turn."""
        return self._typical <= _SLOW

    def submit(self, work: Write | Call) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._loop is not None:
                raise RuntimeError("this store belongs to another event loop; open and use it in one loop only")
            self._loop = loop
        future = loop.create_future()
        if self._closed:
            future.set_exception(StoreUnavailable(_CLOSED))
            return future
        self._waiting.append((work, future))
        if not self._scheduled and not self._handed_over:
            self._scheduled = True
            loop.call_soon(self._flush)
        return future

    async def close(self) -> None:
        self._closed = True
        while self._waiting or self._handed_over:
            await asyncio.sleep(0.001)
        self._queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)

    def _flush(self) -> None:
        self._scheduled = False
        if self._handed_over or not self._waiting:
            return
        batch = self._waiting[:MAX_BATCH]
        del self._waiting[:MAX_BATCH]
        if self._belongs_to_thread(batch):
            self._handed_over = True
            self._queue.put((batch, batch[0][1].get_loop()))
            return
        settle(self._commit_here(batch))
        self._checkpointer.after_commit(len(batch), sum(map(size_of_work, batch)))

    def _belongs_to_thread(self, batch: list[Waiting]) -> bool:
        if len(batch) > _MANY or self._checkpointer.can_finish or any(callable(work) for work, _ in batch):
            return True
        if self._typical <= _SLOW or self._by_thread >= _LOOK_EVERY:
            return False
        self._by_thread += 1
        return True

    def _commit_here(self, batch: list[Waiting]) -> list[Result]:
        begin = time.perf_counter()
        results = self._commit(batch)
        took = time.perf_counter() - begin
        self._typical = took if self._by_thread else self._typical + (took - self._typical) * _WEIGHT
        self._by_thread = 0
        return results

    def _commit(self, batch: list[Waiting]) -> list[Result]:
        now = time.perf_counter()
        if now >= self._look_again:
            if not self._is_there():
                return [(future, None, StoreUnavailable(_GONE.format(self._path))) for _, future in batch]
            self._look_again = now + _LOOK_SECONDS
        return run_batch(self._batches, batch)

    def _is_there(self) -> bool:
        """SQLite goes on writing to a file that has lost its name, and all of it is gone when the process ends."""
        try:
            return os.path.samestat(self._path.stat(), self._file)
        except OSError:
            return False

    def _run(self) -> None:
        while (taken := self._queue.get()) is not None:
            batch, loop = taken
            results = self._commit(batch)
            # The checkpoint comes first: once the results are delivered, the connection is the loop's again.
            self._checkpointer.after_commit(len(batch), sum(map(size_of_work, batch)))
            self._checkpointer.finish()
            loop.call_soon_threadsafe(self._landed, results)

    def _landed(self, results: list[Result]) -> None:
        self._handed_over = False
        settle(results)
        self._flush()
