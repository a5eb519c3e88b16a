"""Matching in memory: the task queues of this process, their long polls and their delayed hints.

Nothing here is durable. What is lost with the process is derived again from the newest states before serving
(``history/recovery``), and deadlines repair the rest.
"""

import asyncio
import math
from collections.abc import Hashable
from datetime import datetime, timedelta
from typing import Protocol

from stepwell.api import limits
from stepwell.api.common import Priority
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import PollerInfo, WorkerInfo

from ..common.clock import Clock
from ..common.timeouts import Timeouts
from .queue_name import QueueName as QueueName
from .task_queue import Poll, Push, TaskQueue

_UNLOAD_EVERY_SECONDS = 60.0
_POLLER_SEEN_SECONDS = limits.POLLER_SEEN.total_seconds()


class Watcher(Protocol):
    """Who brings hints from elsewhere, and takes elsewhere what waits here for nobody (``queue_pump``)."""

    def poll_waits(self, name: QueueName) -> None:
        """A poll found nothing and waits now."""
        ...

    def hint_kept(self, name: QueueName) -> None:
        """A hint waits, and no poll does."""
        ...

    def hint_used(self, name: QueueName, ref: Hashable) -> None:
        """A hint that was taken has led to a task, or was out of date: it is needed no more."""
        ...


class Matching:
    """Task queues made on demand. Call it from one event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queues: dict[QueueName, TaskQueue[Hashable]] = {}
        self._delayed: dict[tuple[QueueName, Hashable], asyncio.TimerHandle] = {}
        self._draining: dict[QueueName, asyncio.TimerHandle] = {}
        """Queues where hints and polls wait for the rate limit."""
        self.has_limits = False
        """Whether a rate limit was ever set. Mostly none was, so that no queue need be asked for its own."""
        self._started = clock.monotonic()
        self._unloaded = self._started
        self._timeouts = Timeouts()
        self._stopped = False
        self._watcher: Watcher | None = None

    def watch(self, watcher: Watcher) -> None:
        self._watcher = watcher

    # --- offering ---

    def offer(
        self,
        name: QueueName,
        ref: Hashable,
        prefer_worker: str = "",
        not_before: datetime | None = None,
        priority: Priority | None = None,
    ) -> None:
        """A hint that work waits, from ``not_before`` on. A repeat of one that is still here changes nothing, except
        that one without a delay ends the delay of an earlier one."""
        if self._stopped:
            return
        handle = self._delayed.pop((name, ref), None)
        if handle is not None:
            handle.cancel()
        if not_before is not None:
            delay = (not_before - self._clock.now()).total_seconds()
            if delay > 0:
                loop = asyncio.get_running_loop()
                self._delayed[name, ref] = loop.call_later(delay, self._undelay, name, ref, prefer_worker, priority)
                return
        self._offer(name, ref, prefer_worker, priority)

    def put_back(self, name: QueueName, ref: Hashable) -> None:
        """A hint that was taken and could not be delivered goes to the front again; a push is lost."""
        if not self._stopped and not isinstance(ref, Push):
            queue = self._queue(name)
            queue.put_back(ref, self._clock.monotonic())
            self._drain_in_time(name, queue)
            self._tell_if_kept(name, queue)

    def used(self, name: QueueName, ref: Hashable) -> None:
        """A hint that was taken has led to a task, or was out of date."""
        if self._watcher is not None:
            self._watcher.hint_used(name, ref)

    def not_gone_out(self, name: QueueName) -> None:
        """A hint that was taken led to no task, and is not put back: it does not count for the rate limit."""
        queue = self._queues.get(name)
        if queue is not None:
            queue.not_gone_out()

    def is_limited(self, name: QueueName) -> bool:
        """Whether a rate limit is set for the queue (TQ-08)."""
        queue = self._queues.get(name)
        return queue is not None and queue.limit is not None

    def _undelay(self, name: QueueName, ref: Hashable, prefer_worker: str, priority: Priority | None) -> None:
        del self._delayed[name, ref]
        self._offer(name, ref, prefer_worker, priority)

    def _offer(self, name: QueueName, ref: Hashable, prefer_worker: str, priority: Priority | None) -> None:
        queue = self._queue(name)
        queue.offer(ref, prefer_worker, self._clock.monotonic(), priority)
        self._drain_in_time(name, queue)
        self._tell_if_kept(name, queue)

    def _tell_if_kept(self, name: QueueName, queue: TaskQueue[Hashable]) -> None:
        if self._watcher is not None and queue.ready and not queue.has_open_poll():
            self._watcher.hint_kept(name)

    def _drain_in_time(self, name: QueueName, queue: TaskQueue[Hashable]) -> None:
        if queue.limit is None or name in self._draining:
            return
        seconds = queue.seconds_to_drain(self._clock.monotonic())
        if seconds is not None:
            self._draining[name] = asyncio.get_running_loop().call_later(seconds, self._drain, name)

    def _drain(self, name: QueueName) -> None:
        del self._draining[name]
        queue = self._queues.get(name)
        if queue is not None:
            queue.drain(self._clock.monotonic())
            self._drain_in_time(name, queue)

    def push(self, name: QueueName, worker_key: str, word: Hashable) -> None:
        """Says ``word`` to that worker in the answer of its open poll of the queue, or of the next; may be lost."""
        if not self._stopped:
            self._queue(name).push(Push(word), worker_key, self._clock.monotonic())

    # --- polling ---

    async def poll(
        self,
        name: QueueName,
        worker: WorkerInfo,
        timeout: float,
        rate_limit: float | None = None,
        maximum: int = 1,
    ) -> Hashable | None:
        """The next hint, or a :class:`Push`; None after ``timeout`` seconds without one, or when the worker or the
        engine shuts down. ``rate_limit`` is from now on the queue's, in hints per second; None leaves it as it is.
        ``maximum``: how many hints the caller can do with (``take_more``)."""
        queue = self._queue(name)
        now = self._clock.monotonic()
        if self._stopped or worker.worker_key in queue.shut_down:
            return None
        queue.seen[worker.identity] = now
        queue.workers[worker.identity] = worker
        if rate_limit is not None:
            self.has_limits = True
            if queue.set_limit(rate_limit, now) and name in self._draining:
                self._draining.pop(name).cancel()
                self._drain_in_time(name, queue)
        pushes = queue.take_pushes(worker.worker_key)
        if pushes:
            for word in pushes[1:]:
                queue.push(word, worker.worker_key, now)
            return pushes[0]
        ref = queue.take(worker.worker_key, now)
        if ref is not None or timeout <= 0:
            return ref
        return await self._wait(name, queue, worker, timeout, maximum)

    def take_more(self, name: QueueName, worker: WorkerInfo, maximum: int) -> list[Hashable]:
        """Up to ``maximum`` further hints that wait now, for a poll that takes several, and whatever was pushed."""
        queue = self._queue(name)
        now = self._clock.monotonic()
        taken: list[Hashable] = [*queue.take_pushes(worker.worker_key)]
        while len(taken) < maximum and (ref := queue.take(worker.worker_key, now)) is not None:
            taken.append(ref)
        return taken

    async def _wait(
        self, name: QueueName, queue: TaskQueue[Hashable], worker: WorkerInfo, timeout: float, maximum: int
    ) -> Hashable | None:
        future: asyncio.Future[Hashable | None] = asyncio.get_running_loop().create_future()
        poll = Poll(worker.worker_key, worker.identity, future, maximum)
        queue.polls[poll] = None
        self._drain_in_time(name, queue)
        if self._watcher is not None:
            self._watcher.poll_waits(name)
        number = self._timeouts.after(timeout, queue.close_poll, poll)
        try:
            return await poll.future
        except asyncio.CancelledError:
            # The match may have been made before the cancellation reached the waiter (WC-32).
            if future.done() and not future.cancelled() and (ref := future.result()) is not None:
                if isinstance(ref, Push):
                    queue.push(ref, worker.worker_key, self._clock.monotonic())
                else:
                    self.put_back(name, ref)
            raise
        finally:
            self._timeouts.call_off(number)
            queue.polls.pop(poll, None)
            if worker.worker_key not in queue.shut_down:
                queue.seen[worker.identity] = self._clock.monotonic()
                queue.workers[worker.identity] = worker
            self._tell_if_kept(name, queue)

    def shut_down_worker(self, namespace: str, task_queue: str, worker: WorkerInfo) -> None:
        """Ends the worker's open polls of that task queue empty; it is offered nothing more (TQ-07)."""
        now = self._clock.monotonic()
        for kind in TaskQueueKind:
            name = QueueName(namespace, task_queue, kind)
            queue = self._queue(name)
            queue.shut_down_worker(worker.worker_key, worker.identity, now)
            queue.forget_before(now - _POLLER_SEEN_SECONDS)

    # --- looking ---

    def has_waiting_poller(self, name: QueueName) -> bool:
        queue = self._queues.get(name)
        return queue is not None and queue.has_open_poll()

    def room(self, name: QueueName) -> int:
        """How many more hints could go out now, to polls that wait; not more than the rate limit allows."""
        queue = self._queues.get(name)
        return 0 if queue is None else queue.room(self._clock.monotonic())

    def kept(self, name: QueueName) -> list[tuple[Hashable, Priority | None]]:
        """Hints that wait for a poller now."""
        queue = self._queues.get(name)
        return [] if queue is None else [(ref, queue.ready[ref].priority) for ref in queue.order]

    def withdraw(self, name: QueueName, ref: Hashable) -> None:
        """A hint that waits here goes elsewhere."""
        queue = self._queues.get(name)
        if queue is not None:
            queue.withdraw(ref)

    def pollers(self, name: QueueName) -> tuple[PollerInfo, ...]:
        """Workers that poll now or did in the last five minutes (TQ-21), latest first."""
        queue = self._queues.get(name)
        if queue is None:
            return ()
        now, wall = self._clock.monotonic(), self._clock.now()
        queue.forget_before(now - _POLLER_SEEN_SECONDS)
        for poll in queue.polls:
            queue.seen[poll.identity] = now
        return tuple(
            PollerInfo(identity=identity, last_access_time=wall - timedelta(seconds=now - when))
            for identity, when in sorted(queue.seen.items(), key=lambda item: -item[1])
        )

    def task_queues(self, namespace: str) -> list[str]:
        """Those that are in memory: every queue that was polled in the last five minutes is."""
        return list(dict.fromkeys(name.task_queue for name in self._queues if name.namespace == namespace))

    def worker(self, name: QueueName, identity: str) -> WorkerInfo | None:
        """What that poller said of itself, as long as it counts as one."""
        queue = self._queues.get(name)
        return None if queue is None else queue.workers.get(identity)

    def seconds_without_poller(self, name: QueueName) -> float:
        """0 while a poll waits; since this process began when nobody ever polled."""
        queue = self._queues.get(name)
        now = self._clock.monotonic()
        if queue is None:
            return now - self._started
        return 0.0 if queue.polls else now - max(queue.seen.values(), default=self._started)

    def ever_polled(self, name: QueueName) -> bool:
        """Whether anybody polled the queue in the last five minutes of this process's life."""
        queue = self._queues.get(name)
        return queue is not None and bool(queue.seen or queue.polls)

    def seconds_since_shutdown(self, name: QueueName) -> float:
        """Since the last of its workers said that it stops; infinite when none has lately."""
        queue = self._queues.get(name)
        last = None if queue is None else max(queue.shut_down.values(), default=None)
        return math.inf if last is None else self._clock.monotonic() - last

    def backlog(self, name: QueueName) -> int:
        """Hints that wait for a poller now; delayed ones not counted."""
        queue = self._queues.get(name)
        return 0 if queue is None else len(queue.ready)

    # --- life ---

    def stop(self) -> None:
        """Ends all open polls empty and takes no further hints."""
        self._stopped = True
        for handle in self._delayed.values():
            handle.cancel()
        self._delayed.clear()
        for handle in self._draining.values():
            handle.cancel()
        self._draining.clear()
        for queue in self._queues.values():
            for poll in list(queue.polls):
                queue.close_poll(poll)

    def _queue(self, name: QueueName) -> TaskQueue[Hashable]:
        queue = self._queues.get(name)
        if queue is None:
            self._unload_idle()
            queue = self._queues[name] = TaskQueue()
        return queue

    def _unload_idle(self) -> None:
        now = self._clock.monotonic()
        if now - self._unloaded < _UNLOAD_EVERY_SECONDS:
            return
        self._unloaded = now
        for name, queue in list(self._queues.items()):
            queue.forget_before(now - _POLLER_SEEN_SECONDS)
            if queue.idle:
                del self._queues[name]
