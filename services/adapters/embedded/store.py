"""The ports of history on one SQLite database: writes go to the committer, reads to a connection of their own."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from stepwell.api.events import HistoryEvent
from stepwell.api.limits import HISTORY_PAGE_EVENTS

from ...common.clock import IdSource
from ...common.control import ControlRecord, check_size
from ...history import codec
from ...history.activity_item import ActivityItem
from ...history.commit import Commit, ExecutionKey
from ...history.ports import EventsPage, Marker
from ...visibility.attributes import ValueType
from ...visibility.filters import Filter, Query
from ...visibility.pages import Counted, Page, Position
from ..large_states import LargeStates
from . import control, erasing, prefixes
from .group_commit import Committer
from .markers import MarkerPuts, Put
from .reads import Reader
from .retention import Swept, sweep_batch
from .searching import ORDERED_BY
from .values import to_us
from .writes import AppendCommit, Arm, DropFired, PutItem, WriteTables

T = TypeVar("T")


class SqliteReads:
    """The reading half of all three ports.

    Short reads run on the calling thread, since handing one over costs more than the read. Lists and long pages run on
    a thread, with a connection of their own (``slow``; None: on the calling thread as well).
    """

    def __init__(self, fast: Reader, slow: Reader | None) -> None:
        self._fast, self._slow = fast, slow

    async def head(self, key: ExecutionKey) -> Commit | None:
        return self._fast.head(key)

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        return self._fast.commit(key, seq)

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return self._fast.newest_of_run(key, run_id)

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        if limit <= HISTORY_PAGE_EVENTS:
            return self._fast.events(key, run_id, after_seq, limit)
        return await self._read(lambda reader: reader.events(key, run_id, after_seq, limit))

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        return self._fast.activity(key, run_id, scheduled_event_id)

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        return self._fast.activities(key, run_id, scheduled_event_ids)

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        return self._fast.marker(key, name)

    async def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        return self._fast.due(now, limit)

    async def next_fire(self) -> datetime | None:
        return self._fast.next_fire()

    @property
    def ordered_by(self) -> frozenset[str]:
        return ORDERED_BY

    async def search(self, namespace: str, query: Query, *, after: Position | None, limit: int) -> Page:
        return await self._read(lambda reader: reader.search(namespace, query, after, limit))

    async def scan(self, namespace: str, filter_: Filter, *, after: Position | None, limit: int) -> Page:
        """One index is gone along in any case, so the newest first costs no more than any other order."""
        return await self.search(namespace, Query(filter_), after=after, limit=limit)

    async def count(self, namespace: str, query: Query, *, after: Position | None) -> Counted:
        return await self._read(lambda reader: reader.count(namespace, query))

    async def attribute_types(self, namespace: str) -> Mapping[str, ValueType]:
        return await self._read(lambda reader: reader.attribute_types(namespace))

    async def owing(self, after: ExecutionKey | None, limit: int) -> list[ExecutionKey]:
        return await self._read(lambda reader: reader.owing(after, limit))

    async def _read(self, query: Callable[[Reader], T]) -> T:
        if self._slow is None:
            return query(self._fast)
        return await asyncio.get_running_loop().run_in_executor(None, query, self._slow)

    def close(self) -> None:
        """Closes the connections that are the reads' own."""
        if self._slow is not None:
            self._fast.close()
            self._slow.close()


class SqliteStore(SqliteReads):
    """ExecutionLog, TimerIndex and VisibilityStore in one, since they are one file."""

    def __init__(self, fast: Reader, slow: Reader | None, committer: Committer) -> None:
        super().__init__(fast, slow)
        self._submit: Callable[[Any], asyncio.Future[Any]] = committer.submit
        self._markers = MarkerPuts(committer)
        self._large = LargeStates()

    def append(self, commit: Commit, *, arm: datetime | None = None) -> Awaitable[None]:
        """No coroutine around the future: each step waits for one, and what waits is what the collector looks at."""
        write = AppendCommit.of(commit, arm)
        self._large.look_at(commit, write.size)
        return self._submit(write)

    async def project(self, commit: Commit) -> None:
        """Done with the commit."""

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        await self._submit(PutItem.of(item, arm))

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        part = codec.encode_events(events)

        def work(connection: sqlite3.Connection, tables: WriteTables) -> None:
            prefixes.put(connection, key, run_id, seq, part, to_us(now))

        await self._submit(work)

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        return await self._markers.put(Put(key, name, value, to_us(expires_at), to_us(now)))

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        def work(connection: sqlite3.Connection, tables: WriteTables) -> bool:
            return erasing.erase_batch(connection, tables, key, run_id)

        while await self._submit(work):
            await asyncio.sleep(0)  # what queued up behind this batch goes first

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        def work(connection: sqlite3.Connection, tables: WriteTables) -> None:
            erasing.forget(connection, tables, key, seq)

        await self._submit(work)

    async def remove(self, key: ExecutionKey, run_id: str, last: datetime) -> None:
        """Done with ``erase_run``."""

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        await self._submit(Arm(key, to_us(fire_at)))

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        if rows:
            await self._submit(DropFired([(to_us(fire_at), key) for fire_at, key in rows]))

    async def get_control(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        return self._fast.control_record(kind, namespace, id)

    async def put_control(self, record: ControlRecord, arm: datetime | None) -> None:

        def work(connection: sqlite3.Connection, tables: WriteTables) -> None:
            control.put(connection, record, arm)

        await self._submit(work)

    async def delete_control(self, record: ControlRecord) -> None:
        def work(connection: sqlite3.Connection, tables: WriteTables) -> None:
            control.delete(connection, record)

        await self._submit(work)

    async def list_control(self, kind: str, namespace: str, after: str, limit: int) -> list[ControlRecord]:
        return await self._read(lambda reader: reader.control_records(kind, namespace, after, limit))

    async def sweep(self, closed_before: datetime, own: Mapping[str, datetime] | None = None) -> Swept:
        """One batch of retention; call again while ``more``. Raises StoreUnavailable."""
        closed_before_us = to_us(closed_before)
        own_us = {namespace: to_us(time) for namespace, time in (own or {}).items()}

        def work(connection: sqlite3.Connection, tables: WriteTables) -> Swept:
            return sweep_batch(connection, tables, closed_before_us, own_us)

        swept: Swept = await self._submit(work)
        return swept


class SqliteControl:
    """ControlStore on the same file."""

    def __init__(self, store: SqliteStore, ids: IdSource) -> None:
        self._store = store
        self._ids = ids

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        return await self._store.get_control(kind, namespace, id)

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        check_size(record)
        if record.version == 1:
            record = record._replace(incarnation=self._ids.nonce())
        await self._store.put_control(record, arm)
        return record

    async def delete(self, record: ControlRecord) -> None:
        await self._store.delete_control(record)

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        return await self._store.list_control(kind, namespace, after, limit)
