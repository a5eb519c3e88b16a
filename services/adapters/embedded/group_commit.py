"""Group commit: every write that waits shares one transaction, and so one fsync, with all others that wait.

``file_committer.py`` is the committer of a file. ``:memory:`` has nothing to wait for; there the same transaction runs
on the event loop itself, at the end of its current turn, which keeps tests on a virtual clock deterministic.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from typing import Any, Protocol

from ...history import codec
from ...history.ports import StoreUnavailable
from .writes import AppendCommit, PutItem, Unmet, Write, WriteTables

_log = logging.getLogger(__name__)

MAX_BATCH = 512
"""Writes in one transaction; bounds how long the first of them waits for the last."""

_CLOSED = "the store is closed"

Call = Callable[[sqlite3.Connection, WriteTables], Any]
"""A piece of work of another kind (a retention batch) that runs in a transaction of its own."""

Waiting = tuple[Write | Call, "asyncio.Future[Any]"]


class Committer(Protocol):
    """Where writes go. A future is done when the write is durable, or known not to be."""

    def submit(self, work: Write | Call) -> "asyncio.Future[Any]":
        """The future raises Conflict, VersionConflict or StoreUnavailable, or gives what a Call returned."""
        ...

    async def close(self) -> None:
        """Commits what was submitted before, then refuses."""
        ...


class BatchCommitter:
    """Commits one batch. Used by one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.tables = WriteTables(connection)

    def commit(self, writes: list[Write]) -> list[Exception | None]:
        """One outcome per write: None when it is durable. Never raises: what went wrong is an outcome."""
        try:
            self._transaction(writes)
        except Unmet:
            return self._one_by_one(writes)
        except sqlite3.Error as error:
            if len(writes) > 1 and not isinstance(error, sqlite3.OperationalError):
                return self._one_by_one(writes)  # one of them is at fault, not the disk
            return [self._unavailable(error) for _ in writes]
        except Exception as error:  # a value that SQLite has no type for, or a fault of ours
            if len(writes) > 1:
                return self._one_by_one(writes)
            _log.exception("a write failed")
            return [error]
        return [None] * len(writes)

    def call(self, work: Call) -> Any:
        """Runs ``work`` in a transaction. Raises StoreUnavailable and what ``work`` raises."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            result = work(self.connection, self.tables)
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise self._unavailable(error) from error
        except BaseException:
            self._roll_back()
            raise
        return result

    def _transaction(self, writes: list[Write]) -> None:
        execute, tables = self.connection.execute, self.tables
        try:
            plan = tables.plan(writes)
            if plan.is_one_statement:  # which is a transaction by itself, at a third of the calls
                tables.carry_out(plan)
                return
            execute("BEGIN IMMEDIATE")
            tables.carry_out(plan)
            execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _one_by_one(self, writes: list[Write]) -> list[Exception | None]:
        """Each write in its own transaction; rare, so its fsyncs do not matter."""
        outcomes: list[Exception | None] = []
        for write in writes:
            try:
                self._transaction([write])
                outcomes.append(None)
            except Unmet:
                outcomes.append(self._conflict(write))
            except sqlite3.Error as error:
                outcomes.append(self._unavailable(error))
            except Exception as error:
                _log.exception("a write failed")
                outcomes.append(error)
        return outcomes

    def _conflict(self, write: Write) -> Exception:
        try:
            return self.tables.conflict(write)
        except sqlite3.Error as error:
            return self._unavailable(error)
        except codec.UnreadableRecord as error:
            return error

    def _roll_back(self) -> None:
        self.tables.forget()
        if self.connection.in_transaction:
            try:
                self.connection.execute("ROLLBACK")
            except sqlite3.Error:
                _log.exception("rolling back a failed transaction failed; SQLite does it when the file is next used")

    def _unavailable(self, error: sqlite3.Error) -> StoreUnavailable:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            text = "the disk (or the database's page limit) is full; free some space, then the engine goes on by itself"
        else:
            text = f"the database cannot be written: {error}"
        unavailable = StoreUnavailable(text)
        unavailable.__cause__ = error
        return unavailable


class InlineCommitter:
    """The committer of ``:memory:``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._batches = BatchCommitter(connection)
        self._waiting: list[Waiting] = []
        self._closed = False

    def submit(self, work: Write | Call) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if self._closed:
            future.set_exception(StoreUnavailable(_CLOSED))
            return future
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((work, future))
        return future

    async def close(self) -> None:
        self._closed = True
        self._flush()

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        if batch:
            settle(run_batch(self._batches, batch))


Result = tuple["asyncio.Future[Any]", Any, BaseException | None]


def run_batch(batches: BatchCommitter, batch: list[Waiting]) -> list[Result]:
    """Writes first, in one transaction; then each Call in its own."""
    writes: list[Write] = []
    futures: list[asyncio.Future[Any]] = []
    calls: list[tuple[Call, asyncio.Future[Any]]] = []
    for work, future in batch:
        if callable(work):
            calls.append((work, future))
        else:
            writes.append(work)
            futures.append(future)
    results: list[Result] = []
    if writes:
        outcomes = batches.commit(writes)
        results = [(future, None, outcome) for future, outcome in zip(futures, outcomes, strict=True)]
    for call, future in calls:
        try:
            results.append((future, batches.call(call), None))
        except Exception as error:
            results.append((future, None, error))
    return results


def size_of_work(waiting: Waiting) -> int:
    """Bytes of its records; what a checkpoint will have to copy grows with them."""
    work = waiting[0]
    if isinstance(work, AppendCommit):
        return len(work.head) + len(work.events or b"")
    return len(work.item) if isinstance(work, PutItem) else 0


def settle(results: list[Result]) -> None:
    for future, value, error in results:
        if future.done():
            continue  # its caller was cancelled; the write stands
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
