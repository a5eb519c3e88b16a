"""One task queue in memory: hints that wait for a poll, polls that wait for a hint, and who polled lately.

A hint (*ref*) is any hashable value; what it means is the business of whoever offers and polls. A queue may lose or
repeat hints without harm, since each is checked before it acts (TQ-02); this one loses none while the process lives.
"""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from stepwell.api.common import Priority
from stepwell.api.requests import WorkerInfo

from .order import FRONT, Ordered, Place, Turns
from .rate_limit import RateLimit

Ref = TypeVar("Ref", bound=Hashable)

STICKY_WAIT_SECONDS = 1.0
"""A hint that has waited longer than this goes to whoever asks next, whatever worker it would rather have (TQ-07)."""


MAX_PUSHES = 100
"""Kept for a worker whose next poll has not come yet; what is more than that is lost."""


class Push(NamedTuple):
    """Word for one worker, in the answer of a poll that it has open. It may be lost: whatever it says is said again."""

    word: Hashable


@dataclass(eq=False, slots=True)
class Poll(Generic[Ref]):
    """One long poll that waits. ``future`` gets the hint, or None when it is to end empty."""

    worker_key: str
    identity: str
    future: "asyncio.Future[Ref | Push | None]"
    maximum: int = 1
    """How many hints it takes at once."""


@dataclass(slots=True)
class Waiting:
    """A hint without a poller yet."""

    prefer_worker: str
    since: float
    place: Place
    priority: Priority | None = None

    @property
    def fairness_key(self) -> str:
        return self.priority.fairness_key if self.priority is not None else ""


@dataclass(slots=True)
class TaskQueue(Generic[Ref]):
    """Plain data and bookkeeping; time comes in as monotonic seconds."""

    ready: dict[Ref, Waiting] = field(default_factory=dict)
    order: Ordered[Ref] = field(default_factory=Ordered)
    """The refs of ``ready``, as they are to go out."""
    ready_for: dict[str, Ordered[Ref]] = field(default_factory=dict)
    """Those that prefer a worker, by worker key."""
    turns: Turns = field(default_factory=Turns)
    limit: RateLimit | None = None
    """Of hints that go out; the last worker that set one says how many (TQ-08)."""
    polls: dict[Poll[Ref], None] = field(default_factory=dict)
    """Longest waiting first."""
    seen: dict[str, float] = field(default_factory=dict)
    """Pollers by identity, and when they last polled."""
    workers: dict[str, WorkerInfo] = field(default_factory=dict)
    """What those have said of themselves last, and some that are forgotten as pollers in a moment."""
    shut_down: dict[str, float] = field(default_factory=dict)
    """Keys of workers that are offered nothing more, and since when."""
    pushes: dict[str, dict[Push, float]] = field(default_factory=dict)
    """By worker key, for its next poll; and since when."""

    def offer(self, ref: Ref, prefer_worker: str, now: float, priority: Priority | None = None) -> None:
        """Hands ``ref`` to a waiting poll, the preferred worker's if it has one, or keeps it; once only."""
        if ref in self.ready:
            return
        if not self.ready:  # else a poll waits for the rate limit, and others go first
            poll = self._poll_for(prefer_worker)
            if poll is not None and self._may_go(now):
                self._hand(poll, ref)
                return
        self._keep(ref, prefer_worker, now, priority)
        self.drain(now)

    def drain(self, now: float) -> None:
        """Hands what waits to polls that wait, as far as the rate limit allows."""
        while self.ready and (poll := self._poll_for("")) is not None:
            ref = self.take(poll.worker_key, now)
            if ref is None:
                return
            self._hand(poll, ref)

    def seconds_to_drain(self, now: float) -> float | None:
        """Until :meth:`drain` has something to do; None when that is not a matter of time."""
        if self.limit is None or not self.ready or not self.polls:
            return None
        return self.limit.seconds_to_next(now)

    def set_limit(self, rate: float, now: float) -> bool:
        """Whether that is another limit than there was."""
        if self.limit is None:
            self.limit = RateLimit(rate, now)
        elif self.limit.rate != rate:
            self.limit.change(rate, now)
        else:
            return False
        return True

    def not_gone_out(self) -> None:
        """A hint that was taken led to no task: it does not count for the rate limit."""
        if self.limit is not None:
            self.limit.give_back()

    def push(self, word: Push, worker_key: str, now: float) -> None:
        """Hands ``word`` to an open poll of that worker, or keeps it for the next."""
        for poll in self.polls:
            if poll.worker_key == worker_key and not poll.future.done():
                del self.polls[poll]
                poll.future.set_result(word)
                return
        if worker_key in self.shut_down:
            return
        kept = self.pushes.setdefault(worker_key, {})
        if len(kept) < MAX_PUSHES:
            kept[word] = now

    def room(self, now: float) -> int:
        """How many more hints could go out now, to polls that wait."""
        places = sum(poll.maximum for poll in self.polls if not poll.future.done()) - len(self.ready)
        if places > 0 and self.limit is not None:
            places = min(places, self.limit.available(now))
        return max(places, 0)

    def has_open_poll(self) -> bool:
        return any(not poll.future.done() for poll in self.polls)

    def withdraw(self, ref: Ref) -> None:
        """A hint that waits goes elsewhere."""
        if ref in self.ready:
            self._remove(ref)

    def take_pushes(self, worker_key: str) -> list[Push]:
        return list(self.pushes.pop(worker_key)) if worker_key in self.pushes else []

    def put_back(self, ref: Ref, now: float) -> None:
        """A hint that was handed to a poll that nobody awaits any more: next in line again (WC-32)."""
        self.not_gone_out()
        if ref in self.ready:
            return
        poll = self._poll_for("")
        if poll is not None and self._may_go(now):
            self._hand(poll, ref)
            return
        place = self.turns.front()
        self.ready[ref] = Waiting("", now, place)
        self.order.add(ref, place)

    def take(self, worker_key: str, now: float) -> Ref | None:
        """The next hint for this worker: one that prefers it, unless another has waited too long or is more urgent."""
        if not self.ready or not self._may_go(now):
            return None
        ref = self.order.first()
        waiting = self.ready[ref]
        own = self.ready_for.get(worker_key) if worker_key else None
        if own and now - waiting.since < STICKY_WAIT_SECONDS:
            mine = own.first()
            if waiting.place.level == FRONT or self.ready[mine].place.level <= waiting.place.level:
                ref = mine
        self._remove(ref)
        return ref

    def close_poll(self, poll: Poll[Ref]) -> None:
        """Ends a waiting poll empty; does nothing when it has got its hint."""
        self.polls.pop(poll, None)
        if not poll.future.done():
            poll.future.set_result(None)

    def shut_down_worker(self, worker_key: str, identity: str, now: float) -> None:
        """Ends the worker's open polls empty, and forgets it as a poller."""
        if worker_key:
            self.shut_down[worker_key] = now
        for poll in list(self.polls):
            if poll.worker_key == worker_key and (worker_key or poll.identity == identity):
                self.close_poll(poll)
        if not any(poll.identity == identity for poll in self.polls):
            self.seen.pop(identity, None)
            self.workers.pop(identity, None)
        self.pushes.pop(worker_key, None)
        for ref in self.ready_for.pop(worker_key, ()):
            self.ready[ref].prefer_worker = ""

    def forget_before(self, time: float) -> None:
        """Drops pollers and shut-down marks older than ``time``."""
        for book in (self.seen, self.shut_down):
            for name in [name for name, when in book.items() if when < time]:
                del book[name]
        for identity in [identity for identity in self.workers if identity not in self.seen]:
            del self.workers[identity]
        for worker_key in [key for key, words in self.pushes.items() if max(words.values()) < time]:
            del self.pushes[worker_key]

    @property
    def idle(self) -> bool:
        return not (self.ready or self.polls or self.seen or self.shut_down or self.pushes)

    def _poll_for(self, prefer_worker: str) -> Poll[Ref] | None:
        """An open one, of that worker if it has one, else the one that has waited longest."""
        if prefer_worker:
            for poll in self.polls:
                if poll.worker_key == prefer_worker and not poll.future.done():
                    return poll
        while self.polls:
            poll = next(iter(self.polls))
            if not poll.future.done():
                return poll
            del self.polls[poll]  # its caller gave up and has not run since
        return None

    def _hand(self, poll: Poll[Ref], ref: Ref) -> None:
        del self.polls[poll]
        poll.future.set_result(ref)

    def _may_go(self, now: float) -> bool:
        return self.limit is None or self.limit.take(now)

    def _keep(self, ref: Ref, prefer_worker: str, now: float, priority: Priority | None) -> None:
        place = self.turns.place(priority)
        if prefer_worker and prefer_worker not in self.shut_down:
            self.ready_for.setdefault(prefer_worker, Ordered()).add(ref, place)
        else:
            prefer_worker = ""
        self.ready[ref] = Waiting(prefer_worker, now, place, priority)
        self.order.add(ref, place)

    def _remove(self, ref: Ref) -> None:
        waiting = self.ready.pop(ref)
        self.order.remove(ref)
        self.turns.left(waiting.place, waiting.fairness_key)
        if waiting.prefer_worker:
            own = self.ready_for[waiting.prefer_worker]
            own.remove(ref)
            if not own:
                del self.ready_for[waiting.prefer_worker]
