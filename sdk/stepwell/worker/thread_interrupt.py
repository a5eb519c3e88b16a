"""Raises cancellation inside a threaded activity, and never outside of it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..exceptions import CancelledError
from .async_exceptions import raise_in, take_back


class ThreadInterrupt:
    """Covers one activity call in one thread. ``interrupt`` may come at any time and from any thread; it is raised at
    most once, between :meth:`enter` and :meth:`leave`, and not while shielded (AC-38)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id: int | None = None
        self._shields = 0
        self._wanted = False
        self._raised = False

    def enter(self) -> None:
        with self._lock:
            self._thread_id = threading.get_ident()
            self._raise_if_due()

    def leave(self) -> None:
        with self._lock:
            if self._raised and self._thread_id is not None:
                # Asked for but not yet raised: it must not hit whatever the thread does next.
                take_back(CancelledError)
            self._thread_id = None

    def interrupt(self) -> None:
        with self._lock:
            self._wanted = True
            self._raise_if_due()

    @contextmanager
    def shield(self) -> Iterator[None]:
        with self._lock:
            self._shields += 1
        try:
            yield
        finally:
            with self._lock:
                self._shields -= 1
                due = self._wanted and not self._raised and self._shields == 0
                self._raised = self._raised or due
            if due:
                raise CancelledError("Cancelled")

    def _raise_if_due(self) -> None:
        if self._wanted and not self._raised and self._shields == 0 and self._thread_id is not None:
            self._raised = True
            raise_in(self._thread_id, CancelledError)
