"""Deadlines that activity items armed, as far as this process remembers; the log's own are in its state.

Forgetting one only costs an arm that was not needed.
"""

from collections.abc import Callable
from datetime import datetime

from .commit import ExecutionKey
from .state import ExecutionState

_MAXIMUM = 100_000


class ArmedTimes:
    """``notify`` wakes whoever fires deadlines. Only a store's sole owner knows what has fired since, and may count on
    what it remembers."""

    def __init__(self, notify: Callable[[datetime, ExecutionKey], None], *, sole_owner: bool) -> None:
        self._notify = notify
        self._sole_owner = sole_owner
        self._times: dict[ExecutionKey, datetime] = {}

    def needed(self, key: ExecutionKey, state: ExecutionState, due: datetime | None, now: datetime) -> datetime | None:
        """``due`` when it must be armed; None when what is armed fires early enough."""
        if due is None:
            return None
        for armed in (state.armed, self._times.get(key)):
            if armed is not None and now < armed <= due:
                return None
        return due

    def fired(self, key: ExecutionKey, time: datetime) -> None:
        """What was armed for ``time`` fires now and is struck off then; a clock that goes back must not count on it."""
        if self._times.get(key) == time:
            del self._times[key]

    def closed(self, key: ExecutionKey) -> None:
        """A commit closed a run and struck off what it had armed, which an item may have armed as well."""
        self._times.pop(key, None)

    def armed(self, key: ExecutionKey, time: datetime | None) -> None:
        """An item armed ``time``."""
        if time is None:
            return
        if self._sole_owner:
            self._times.pop(key, None)
            self._times[key] = time
            if len(self._times) > _MAXIMUM:
                del self._times[next(iter(self._times))]
        self._notify(time, key)
