"""Wrappers around the engine's ports that inject faults and tell the model of every durable write.

What the store does runs in the store's own process: a write that an engine has sent is made, or not, whatever becomes
of the engine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from stepwell.api.common import Priority
from stepwell.api.events import HistoryEvent

from stepwell_server.common.clock import Clock
from stepwell_server.common.control import ControlRecord, ControlStore, wake_up_id
from stepwell_server.history.activity_item import ActivityItem
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.ports import (
    ActivityTaskRef,
    Conflict,
    Dispatcher,
    EventsPage,
    ExecutionLog,
    Marker,
    QueryTaskRef,
    TimerIndex,
    WorkflowTaskRef,
)
from stepwell_server.history.task_tokens import ActivityToken
from tests.simulation.faults import Faults
from tests.simulation.history_rules import Violation
from tests.simulation.loop import CURRENT_PROCESS, Process
from tests.simulation.model import Model

T = TypeVar("T")


class Store(ExecutionLog, TimerIndex, Protocol):
    """What an adapter's store is to the engine."""


class Disk:
    """The store behind a process of its own, with the model told of each write before anybody can read it."""

    def __init__(self, store: Store, model: Model, clock: Clock, fail: Callable[[BaseException], None]) -> None:
        self.store = store
        self._model = model
        self._clock = clock
        self._fail = fail
        self._process = Process("disk")
        self._busy = asyncio.Lock()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Goes on with ``work`` also when the caller is cancelled or dies; then nobody hears of it."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._process.spawn(self._alone(work, answer, CURRENT_PROCESS.get()))
        return await answer

    async def _alone(self, work: Coroutine[Any, Any, T], answer: "asyncio.Future[T]", caller: Process | None) -> None:
        async with self._busy:
            try:
                outcome: T | Exception = await work
            except Exception as error:
                if isinstance(error, Violation):
                    self._fail(error)
                outcome = error
        if answer.done() or (caller is not None and not caller.alive):
            return
        if isinstance(outcome, Exception):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)

    async def append(self, commit: Commit) -> None:
        try:
            await self.store.append(commit)
        except Conflict:
            self._model.seen["conflict"] += 1
            raise
        try:
            self._model.append(commit, self._clock.now())
        except (KeyError, ValueError, TypeError) as error:
            raise Violation(f"{commit.workflow_id} commit {commit.seq} ({commit.kind}): the model is lost") from error
        state = commit.state
        if state.deleted and await self.store.find_run(commit.key, state.run_id) is not None:
            raise Violation(f"{commit.workflow_id} commit {commit.seq}: a run is called deleted that is still found")

    async def put_activity(self, item: ActivityItem) -> None:
        await self.store.put_activity(item)
        self._model.put_activity(item, self._clock.now())

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], now: datetime
    ) -> None:
        await self.store.put_prefix(key, run_id, seq, events, now=now)
        self._model.put_prefix(run_id, seq, events)

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        await self.store.arm(key, fire_at)
        self._model.arm(key, fire_at)

    async def put_control(self, control: ControlStore, record: ControlRecord, arm: datetime | None) -> ControlRecord:
        stored = await control.put(record, arm=arm)
        if arm is not None:
            self._model.arm(ExecutionKey(record.namespace, wake_up_id(record.kind, record.id)), arm)
        return stored

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        await self.store.fired(rows)
        for fire_at, key in rows:
            self._model.fired(key, fire_at, self._clock.now())


class FaultyLog:
    """Arms and writes as two steps, as on DynamoDB: a crash may come between them, before, or after."""

    def __init__(self, disk: Disk, faults: Faults) -> None:
        self._disk = disk
        self._store = disk.store
        self._faults = faults

    async def append(self, commit: Commit, *, arm: datetime | None = None) -> None:
        await self._write(commit.key, arm, self._disk.append(commit))

    async def put_activity(self, item: ActivityItem, *, arm: datetime | None = None) -> None:
        await self._write(ExecutionKey(item.namespace, item.workflow_id), arm, self._disk.put_activity(item))

    async def _write(self, key: ExecutionKey, arm: datetime | None, write: Coroutine[Any, Any, None]) -> None:
        try:
            await self._faults.crash("crash_before_write")
            self._faults.refuse_write()
            if arm is not None:
                await self._disk.do(self._disk.arm(key, arm))
                await self._faults.crash("crash_after_arm")
        except BaseException:
            write.close()
            raise
        await self._disk.do(write)
        await self._faults.crash("crash_after_write")
        self._faults.lose_answer()

    async def put_prefix(
        self, key: ExecutionKey, run_id: str, seq: int, events: Sequence[HistoryEvent], *, now: datetime
    ) -> None:
        await self._faults.crash("crash_before_write")
        self._faults.refuse_write()
        await self._disk.do(self._disk.put_prefix(key, run_id, seq, events, now))
        await self._faults.crash("crash_after_write")
        self._faults.lose_answer()

    async def head(self, key: ExecutionKey) -> Commit | None:
        return await self._disk.do(self._store.head(key))

    async def get(self, key: ExecutionKey, seq: int) -> Commit | None:
        return await self._disk.do(self._store.get(key, seq))

    async def read_events(self, key: ExecutionKey, run_id: str, after_seq: int, limit: int) -> EventsPage:
        return await self._disk.do(self._store.read_events(key, run_id, after_seq, limit))

    async def find_run(self, key: ExecutionKey, run_id: str) -> Commit | None:
        return await self._disk.do(self._store.find_run(key, run_id))

    async def get_activity(self, key: ExecutionKey, run_id: str, scheduled_event_id: int) -> ActivityItem | None:
        return await self._disk.do(self._store.get_activity(key, run_id, scheduled_event_id))

    async def activities(
        self, key: ExecutionKey, run_id: str, scheduled_event_ids: Sequence[int]
    ) -> list[ActivityItem]:
        return await self._disk.do(self._store.activities(key, run_id, scheduled_event_ids))

    async def put_marker(
        self, key: ExecutionKey, name: str, value: bytes, *, expires_at: datetime, now: datetime
    ) -> Marker:
        await self._faults.crash("crash_before_write")
        self._faults.refuse_write()
        there = await self._disk.do(self._store.put_marker(key, name, value, expires_at=expires_at, now=now))
        await self._faults.crash("crash_after_write")
        self._faults.lose_answer()
        return there

    async def get_marker(self, key: ExecutionKey, name: str) -> Marker | None:
        return await self._disk.do(self._store.get_marker(key, name))

    async def erase_run(self, key: ExecutionKey, run_id: str) -> None:
        await self._delete(self._store.erase_run(key, run_id))

    async def forget(self, key: ExecutionKey, seq: int) -> None:
        await self._delete(self._store.forget(key, seq))

    async def _delete(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await self._faults.crash("crash_before_write")
            self._faults.refuse_write()
        except BaseException:
            work.close()
            raise
        await self._disk.do(work)
        await self._faults.crash("crash_after_write")
        self._faults.lose_answer()


class FaultyTimers:
    """Delivers deadlines late or again."""

    def __init__(self, disk: Disk, faults: Faults) -> None:
        self._disk = disk
        self._store = disk.store
        self._faults = faults
        self._late: dict[tuple[datetime, ExecutionKey], datetime] = {}
        self._again: list[tuple[datetime, ExecutionKey]] = []

    async def arm(self, key: ExecutionKey, fire_at: datetime) -> None:
        await self._faults.crash("crash_before_write")
        self._faults.refuse_write()
        await self._disk.do(self._disk.arm(key, fire_at))
        await self._faults.crash("crash_after_arm")

    async def due(self, now: datetime, limit: int) -> list[tuple[datetime, ExecutionKey]]:
        rows = await self._disk.do(self._store.due(now, limit))
        delivered = [row for row in rows if self._is_on_time(row, now)]
        again, self._again = self._again[:1], self._again[1:]
        if delivered and self._faults.strikes("firing_repeated"):
            self._again.append(delivered[-1])
        return again + delivered

    def _is_on_time(self, row: tuple[datetime, ExecutionKey], now: datetime) -> bool:
        if row in self._late:
            return now >= self._late[row]
        if self._faults.strikes("firing_delayed"):
            self._late[row] = now + timedelta(seconds=self._faults.delay(5.0))
            return False
        return True

    async def next_fire(self) -> datetime | None:
        return await self._disk.do(self._store.next_fire())

    async def fired(self, rows: Sequence[tuple[datetime, ExecutionKey]]) -> None:
        await self._faults.crash("crash_before_write")
        await self._disk.do(self._disk.fired(rows))
        for row in rows:
            self._late.pop(row, None)


class FaultyControl:
    """Writes fail, land without an answer, or are the last thing that a process does."""

    def __init__(self, disk: Disk, control: ControlStore, faults: Faults) -> None:
        self._disk = disk
        self._control = control
        self._faults = faults

    async def get(self, kind: str, namespace: str, id: str) -> ControlRecord | None:
        return await self._disk.do(self._control.get(kind, namespace, id))

    async def list(self, kind: str, namespace: str, *, after: str = "", limit: int) -> list[ControlRecord]:
        return await self._disk.do(self._control.list(kind, namespace, after=after, limit=limit))

    async def put(self, record: ControlRecord, *, arm: datetime | None = None) -> ControlRecord:
        return await self._write(self._disk.put_control(self._control, record, arm))

    async def delete(self, record: ControlRecord) -> None:
        await self._write(self._control.delete(record))

    async def _write(self, write: Coroutine[Any, Any, T]) -> T:
        try:
            await self._faults.crash("crash_before_write")
            self._faults.refuse_write()
        except BaseException:
            write.close()
            raise
        written = await self._disk.do(write)
        await self._faults.crash("crash_after_write")
        self._faults.lose_answer()
        return written


class FaultyDispatcher:
    """Loses, repeats, delays and so reorders what history offers to matching."""

    def __init__(self, inner: Dispatcher, faults: Faults, offered: set[Any], kill_a_worker: Callable[[], None]) -> None:
        """``offered`` outlives the engine: what was offered before, by any incarnation."""
        self._inner = inner
        self._kill_a_worker = kill_a_worker
        self._faults = faults
        self._offered = offered

    async def offer_workflow_task(
        self,
        task_queue: str,
        ref: WorkflowTaskRef,
        prefer_worker: str = "",
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        for delay in self._deliveries(ref):
            await _later(delay, self._inner.offer_workflow_task(task_queue, ref, prefer_worker, not_before, priority))

    async def offer_activity_task(
        self,
        task_queue: str,
        ref: ActivityTaskRef,
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        for delay in self._deliveries(ref):
            await _later(delay, self._inner.offer_activity_task(task_queue, ref, not_before, priority))

    async def offer_query_task(self, task_queue: str, ref: QueryTaskRef, prefer_worker: str = "") -> None:
        """Not struck: a query that is lost is asked again by its caller, and the simulation's callers do not."""
        await self._inner.offer_query_task(task_queue, ref, prefer_worker)

    def takes_eagerly(self, namespace: str, task_queue: str) -> bool:
        return self._inner.takes_eagerly(namespace, task_queue)

    def push_cancel(self, task_queue: str, worker_key: str, token: ActivityToken) -> None:
        """Best effort: heartbeats are there for what is lost."""
        if not self._faults.strikes("offer_lost"):
            self._inner.push_cancel(task_queue, worker_key, token)

    def _deliveries(self, ref: WorkflowTaskRef | ActivityTaskRef) -> list[float]:
        first = ref not in self._offered
        self._offered.add(ref)
        if self._faults.strikes("worker_crash_before_offer"):
            self._kill_a_worker()
        if (first and self._faults.drop_first_offers) or self._faults.strikes("offer_lost"):
            return []
        times = 2 if self._faults.strikes("offer_repeated") else 1
        return [self._faults.delay(20.0) if self._faults.strikes("offer_delayed") else 0.0 for _ in range(times)]


async def _later(delay: float, delivery: Coroutine[Any, Any, None]) -> None:
    """Delivers, at once or while the caller goes on."""
    if not delay:
        await delivery
        return
    process = CURRENT_PROCESS.get()
    if process is None:
        delivery.close()
        raise RuntimeError("an offer was made outside of any engine")

    async def deliver() -> None:
        await asyncio.sleep(delay)
        await delivery

    process.spawn(deliver())
