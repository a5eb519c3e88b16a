"""Deadlock detection (PM-23, WK-25): workflow code that does not yield is interrupted, with the stack of where it
stood.

Workflow code runs on the event loop's own thread, so only another thread can notice that it blocks. The watchdog
raises :class:`WorkflowDeadlock` in the blocked thread; code blocked inside a C call sees it when that call returns.
"""

import ctypes
import sys
import threading
import time
import traceback
from types import TracebackType

_CHECKS_PER_TIMEOUT = 8


class WorkflowDeadlock(BaseException):
    """Raised inside workflow code. Not an ``Exception``: a handler for those must not keep the thread blocked."""


class Watchdog:
    """Watches one thread, normally the one that runs the event loop. ``with watchdog:`` marks workflow code.

    ``timeout`` is in seconds; None disables it (debug mode).
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self._lock = threading.Lock()
        self._entered: float | None = None
        self._thread_id = 0
        self._stack: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self.timeout is None or self._thread is not None:
            return
        self._thread = threading.Thread(target=self._watch, name="stepwell-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1)

    def __enter__(self) -> "Watchdog":
        self._stack = None
        self._thread_id = threading.get_ident()
        self._entered = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._entered = None
            if self._stack is not None:
                # It may have finished between being seen and being interrupted; then the interrupt is taken back.
                _raise_in(self._thread_id, None)

    @property
    def blocked_stack(self) -> str | None:
        """Where the code stood when its time was up, or None when it was in time. Valid until the next entry."""
        return self._stack

    def _watch(self) -> None:
        assert self.timeout is not None
        while not self._stop.wait(self.timeout / _CHECKS_PER_TIMEOUT):
            entered = self._entered
            if entered is None or self._stack is not None or time.monotonic() - entered < self.timeout:
                continue
            with self._lock:
                if self._entered == entered:
                    self._stack = _stack_of(self._thread_id)
                    _raise_in(self._thread_id, WorkflowDeadlock)


def _stack_of(thread_id: int) -> str:
    frame = sys._current_frames().get(thread_id)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""


def _raise_in(thread_id: int, error: type[BaseException] | None) -> None:
    argument = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), argument)
