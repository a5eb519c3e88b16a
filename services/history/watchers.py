"""Calls that wait for something to happen to a workflow execution: history long polls, results, queries."""

import asyncio
from collections.abc import Callable

from ..common.clock import Clock
from ..common.timeouts import Timeouts
from .commit import Commit, ExecutionKey


class _Watcher:
    __slots__ = ("future", "wants")

    def __init__(self, wants: Callable[[Commit], bool], future: "asyncio.Future[Commit | None]") -> None:
        self.wants = wants
        self.future = future


class Watchers:
    """Woken by commits made in this process. Who checks the state and waits without an await in between misses none.

    Where other processes commit as well, a wait ends every ``look_again`` seconds, so that its caller looks what they
    have done, and waits on unless it is ``over``.
    """

    def __init__(self, clock: Clock, look_again: float | None = None) -> None:
        self._clock = clock
        self._look_again = look_again
        self._waiting: dict[ExecutionKey, list[_Watcher]] = {}
        self._timeouts = Timeouts()
        self._stopped = False

    def over(self, ends: float) -> bool:
        """Whether a wait until ``ends`` that brought nothing is at its end."""
        return self._look_again is None or self._stopped or self._clock.monotonic() >= ends

    async def wait(self, key: ExecutionKey, wants: Callable[[Commit], bool], ends: float) -> Commit | None:
        """The first commit of ``key`` that ``wants`` approves; None at ``ends`` (of the monotonic clock), at a stop, or
        when it is time to look again."""
        timeout = ends - self._clock.monotonic()
        if timeout <= 0 or self._stopped:
            return None
        if self._look_again is not None:
            timeout = min(timeout, self._look_again)
        watcher = _Watcher(wants, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(key, []).append(watcher)
        number = self._timeouts.after(timeout, _end, watcher.future)
        try:
            return await watcher.future
        finally:
            self._timeouts.call_off(number)
            self._forget(key, watcher)

    def committed(self, key: ExecutionKey, commit: Commit) -> None:
        watchers = self._waiting.get(key)
        if watchers:
            for watcher in watchers:
                if not watcher.future.done() and watcher.wants(commit):
                    watcher.future.set_result(commit)

    def stop(self) -> None:
        """Ends all waits empty, those to come as well."""
        self._stopped = True
        for watchers in self._waiting.values():
            for watcher in watchers:
                _end(watcher.future)

    def _forget(self, key: ExecutionKey, watcher: _Watcher) -> None:
        watchers = self._waiting[key]
        watchers.remove(watcher)
        if not watchers:
            del self._waiting[key]


def _end(future: "asyncio.Future[Commit | None]") -> None:
    if not future.done():
        future.set_result(None)
