"""One task queue in memory: hints that wait for a poll, polls that wait for a hint, and who polled lately.

A hint (*ref*) is any hashable value; what it means is the business of whoever offers and polls. A queue may lose or
repeat hints without harm, since each is checked before it acts (TQ-02); this one loses none while the process lives.
"""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

Ref = TypeVar("Ref")

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


@dataclass(slots=True)
class Waiting:
    """A hint without a poller yet."""

    prefer_worker: str
    since: float


@dataclass(slots=True)
class TaskQueue(Generic[Ref]):
    """Plain data and bookkeeping; time comes in as monotonic seconds."""

    ready: dict[Ref, Waiting] = field(default_factory=dict)
    """Oldest first."""
    ready_for: dict[str, dict[Ref, None]] = field(default_factory=dict)
    """The refs of ``ready`` that prefer a worker, by worker key."""
    polls: dict[Poll[Ref], None] = field(default_factory=dict)
    """Longest waiting first."""
    seen: dict[str, float] = field(default_factory=dict)
    """Pollers by identity, and when they last polled."""
    shut_down: dict[str, float] = field(default_factory=dict)
    """Keys of workers that are offered nothing more, and since when."""
    pushes: dict[str, dict[Push, float]] = field(default_factory=dict)
    """By worker key, for its next poll; and since when."""

    def offer(self, ref: Ref, prefer_worker: str, now: float) -> None:
        """Hands ``ref`` to a waiting poll, the preferred worker's if it has one, or keeps it; once only."""
        if ref in self.ready:
            return
        while self.polls:
            poll = self._poll_for(prefer_worker)
            del self.polls[poll]
            if not poll.future.done():  # else its caller gave up and has not run since
                poll.future.set_result(ref)
                return
        self._keep(ref, prefer_worker, now)

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

    def take_pushes(self, worker_key: str) -> list[Push]:
        return list(self.pushes.pop(worker_key)) if worker_key in self.pushes else []

    def put_back(self, ref: Ref, now: float) -> None:
        """A hint that was handed to a poll that nobody awaits any more: next in line again (WC-32)."""
        if self.polls or ref in self.ready:
            self.offer(ref, "", now)
            return
        behind = self.ready
        self.ready = {ref: Waiting("", now)}
        self.ready.update(behind)

    def take(self, worker_key: str, now: float) -> Ref | None:
        """The next hint for this worker: one that prefers it, unless another has waited too long."""
        if not self.ready:
            return None
        ref, waiting = next(iter(self.ready.items()))
        own = self.ready_for.get(worker_key) if worker_key else None
        if own and now - waiting.since < STICKY_WAIT_SECONDS:
            ref = next(iter(own))
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
        self.pushes.pop(worker_key, None)
        own = self.ready_for.pop(worker_key, {})
        for ref in own:
            self.ready[ref].prefer_worker = ""

    def forget_before(self, time: float) -> None:
        """Drops pollers and shut-down marks older than ``time``."""
        for book in (self.seen, self.shut_down):
            for name in [name for name, when in book.items() if when < time]:
                del book[name]
        for worker_key in [key for key, words in self.pushes.items() if max(words.values()) < time]:
            del self.pushes[worker_key]

    @property
    def idle(self) -> bool:
        return not (self.ready or self.polls or self.seen or self.shut_down or self.pushes)

    def _poll_for(self, prefer_worker: str) -> Poll[Ref]:
        if prefer_worker:
            for poll in self.polls:
                if poll.worker_key == prefer_worker:
                    return poll
        return next(iter(self.polls))

    def _keep(self, ref: Ref, prefer_worker: str, now: float) -> None:
        if prefer_worker and prefer_worker not in self.shut_down:
            self.ready_for.setdefault(prefer_worker, {})[ref] = None
        else:
            prefer_worker = ""
        self.ready[ref] = Waiting(prefer_worker, now)

    def _remove(self, ref: Ref) -> None:
        waiting = self.ready.pop(ref)
        if waiting.prefer_worker:
            own = self.ready_for[waiting.prefer_worker]
            del own[ref]
            if not own:
                del self.ready_for[waiting.prefer_worker]
