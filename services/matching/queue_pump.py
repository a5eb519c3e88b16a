"""Between task queues outside and the pollers of this process: brings hints to polls that wait here, and takes to the
queues what waits here for nobody.

Theory of operation. While polls wait on a queue, messages of it are received, no more than could go out now, and their
hints offered to matching like any other. A message is settled when its hint has led to a task or was out of date; a
process that dies before that leaves it to come back when its lease ends. A hint that finds no poll within a moment (its
caller went away, a delay ended, a worker could not be reached) goes back: a leased message by ending its lease, any
other as a new message. Nothing here has to happen: what goes wrong, leases and deadlines repair.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

from stepwell.api.common import Priority

from ..common.clock import Clock
from .ports import LONGEST_WAIT, QueueError, Received, TaskQueues
from .queue_name import QueueName
from .service import Matching

log = logging.getLogger(__name__)

LEASE_SECONDS = 60
"""Of received messages: long enough for a start call that has to be tried again."""

_GRACE = 0.5
"""Seconds that a hint is kept for a poll to come: a worker that got a task asks again at once."""

_LIMITED = 0.1
"""Seconds between looks whether the rate limit of a queue lets more go out."""

_FIRST_PAUSE = 0.5
_LAST_PAUSE = 30.0

Read = Callable[[str], tuple[Hashable, Priority | None]]
Write = Callable[[Hashable, Priority | None], str | None]


class _Held(NamedTuple):
    received: Received
    ends: float


class _Kept(NamedTuple):
    """A hint that waits for nobody."""

    ref: Hashable
    priority: Priority | None
    message: str


class QueuePump:
    """``read`` makes of a message the hint that pollers take, and raises ValueError for what is none; ``write`` makes
    the message of a hint, None for one that means something in this process alone. ``start`` on the event loop of
    ``matching``."""

    def __init__(self, matching: Matching, queues: TaskQueues, clock: Clock, read: Read, write: Write) -> None:
        self._matching = matching
        self._queues = queues
        self._clock = clock
        self._read = read
        self._write = write
        self._receiving: dict[QueueName, set[asyncio.Task[None]]] = {}
        self._partitions: dict[QueueName, int] = {}
        """Of queues that are being received, as last heard."""
        self._returning: dict[QueueName, asyncio.TimerHandle] = {}
        self._held: dict[tuple[QueueName, Hashable], _Held] = {}
        """Messages whose hints are here, by when they were received."""
        self._used: list[Received] = []
        self._settling: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()
        self._stopped = False

    def start(self) -> None:
        self._matching.watch(self)

    async def stop(self) -> None:
        """Ends receiving, and gives back all that waits here or is held. Stop matching first, so that no poll takes
        more."""
        self._stopped = True
        kept = list(self._returning)
        for name in kept:
            self._returning.pop(name).cancel()
        tasks = [*(task for running in self._receiving.values() for task in running), *self._others]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._settling is not None:
            await asyncio.wait([self._settling])
        for name in kept:
            await self._return(name)
        held, self._held = [held.received for held in self._held.values()], {}
        if held:
            await self._end_leases(held)

    # --- what matching says ---

    def poll_waits(self, name: QueueName) -> None:
        running = self._receiving.setdefault(name, set())
        while not self._stopped and len(running) < self._partitions.get(name, 1):
            task = asyncio.get_running_loop().create_task(self._receive(name))
            running.add(task)
            task.add_done_callback(lambda done: self._received(name, done))

    def hint_kept(self, name: QueueName) -> None:
        self._return_in(name, _GRACE)

    def hint_used(self, name: QueueName, ref: Hashable) -> None:
        held = self._held.pop((name, ref), None)
        if held is not None:
            self._settle(held.received)

    # --- receiving ---

    def _received(self, name: QueueName, done: "asyncio.Task[None]") -> None:
        running = self._receiving[name]
        running.discard(done)
        if not running:
            del self._receiving[name]
            self._partitions.pop(name, None)
        if done.cancelled():
            return
        if (error := done.exception()) is not None:
            log.error("Receiving from task queue %r of %r failed", name.task_queue, name.namespace, exc_info=error)
        elif self._matching.has_waiting_poller(name):
            self.poll_waits(name)  # it came in the moment in which this one ended

    async def _receive(self, name: QueueName) -> None:
        """One of as many as the queue has partitions; ends when no poll waits."""
        failures = 0
        while self._matching.has_waiting_poller(name):
            room = self._matching.room(name)
            if not room:
                await asyncio.sleep(_LIMITED)
                continue
            try:
                self._partitions[name] = await self._queues.partitions(name)
                self.poll_waits(name)
                received = await self._queues.receive(name, room, LONGEST_WAIT, LEASE_SECONDS)
            except Exception as error:
                failures += 1
                await self._pause(name, failures, error)
            else:
                failures = 0
                self._take(name, received)

    async def _pause(self, name: QueueName, failures: int, error: Exception) -> None:
        pause = min(_FIRST_PAUSE * 2 ** min(failures - 1, 10), _LAST_PAUSE)
        log.warning(
            "Task queue %r of %r cannot be received; trying again in %.1f s (%s)",
            name.task_queue,
            name.namespace,
            pause,
            error,
            exc_info=None if isinstance(error, QueueError) else error,
        )
        await asyncio.sleep(pause)

    def _take(self, name: QueueName, received: Iterable[Received]) -> None:
        now = self._clock.monotonic()
        self._forget_ended(now)
        for one in received:
            try:
                ref, priority = self._read(one.body)
            except ValueError as error:
                self._spawn(self._set_aside(one, str(error)))
                continue
            earlier = self._held.pop((name, ref), None)
            if earlier is not None and earlier.received.message_id != one.message_id:
                self._held[name, ref] = earlier
                self._settle(one)  # the same hint twice: one message of it is enough
                continue
            self._held[name, ref] = _Held(one, now + LEASE_SECONDS)
            self._matching.offer(name, ref, priority=priority)

    def _forget_ended(self, now: float) -> None:
        while self._held:
            first = next(iter(self._held))
            if self._held[first].ends > now:
                return
            del self._held[first]

    # --- settling ---

    def _settle(self, received: Received) -> None:
        self._used.append(received)
        if self._settling is None:
            self._settling = asyncio.get_running_loop().create_task(self._settle_all())

    async def _settle_all(self) -> None:
        """One request at a time, so that those that come meanwhile share the next."""
        try:
            while self._used:
                batch, self._used = self._used, []
                try:
                    await self._queues.settle(batch)
                except Exception as error:
                    # They come back when their leases end, and are found out of date.
                    log.warning("%d messages could not be settled (%s)", len(batch), error)
        finally:
            self._settling = None

    async def _set_aside(self, received: Received, reason: str) -> None:
        """It would come back for ever."""
        queue = received.queue
        log.error(
            "Message %s of task queue %r of %r is set aside: %s",
            received.message_id,
            queue.task_queue,
            queue.namespace,
            reason,
        )
        try:
            await self._queues.set_aside([received], reason)
        except QueueError as error:
            log.warning("Message %s could not be set aside and comes back (%s)", received.message_id, error)

    # --- giving back ---

    def _return_in(self, name: QueueName, seconds: float) -> None:
        if not self._stopped and name not in self._returning:
            self._returning[name] = asyncio.get_running_loop().call_later(seconds, self._return_soon, name)

    def _return_soon(self, name: QueueName) -> None:
        del self._returning[name]
        if not self._matching.has_waiting_poller(name):
            self._spawn(self._return(name))

    async def _return(self, name: QueueName) -> None:
        """What waits for nobody goes to the queue, where pollers elsewhere find it."""
        leased: list[Received] = []
        others: list[_Kept] = []
        for ref, priority in self._matching.kept(name):
            held = self._held.pop((name, ref), None)
            if held is not None:
                leased.append(held.received)
            elif (message := self._write(ref, priority)) is not None:
                others.append(_Kept(ref, priority, message))
            else:
                continue
            self._matching.withdraw(name, ref)
        if leased:
            await self._end_leases(leased)
        if others:
            await self._send(name, others)

    async def _end_leases(self, held: Sequence[Received]) -> None:
        try:
            await self._queues.extend(held, 0)
        except QueueError as error:
            log.warning("%d messages come back only when their leases end (%s)", len(held), error)

    async def _send(self, name: QueueName, hints: Sequence[_Kept]) -> None:
        sent = await asyncio.gather(
            *(self._queues.send(name, hint.message, fairness_key=_key(hint.priority)) for hint in hints),
            return_exceptions=True,
        )
        failed = [hint for hint, result in zip(hints, sent, strict=True) if result is not None]
        if not failed:
            return
        error = next(result for result in sent if result is not None)
        where = "wait for their deadlines" if self._stopped else "stay in this process"
        log.warning("%d hints of task queue %r %s (%s)", len(failed), name.task_queue, where, error)
        if not self._stopped:
            self._return_in(name, _LAST_PAUSE)  # before offering, which would have them returned within a moment
            for hint in failed:
                self._matching.offer(name, hint.ref, priority=hint.priority)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)


def _key(priority: Priority | None) -> str:
    return "" if priority is None else priority.fairness_key
