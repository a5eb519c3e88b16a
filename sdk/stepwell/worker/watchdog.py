"""Deadlock detection (PM-23, WK-25): workflow code that does not yield is interrupted, with the stack of where it
stood.

Workflow code runs on the event loop's own thread, so only another thread can notice that it blocks. The watchdog
raises :class:`WorkflowDeadlock` in the blocked thread. In the main thread a signal does that, which also ends waits
inside C code (a lock, a sleep, a socket); in another thread, code blocked inside a C call sees it when that call
returns. What does not end for a second timeout is logged and interrupted again.

An ``async`` activity that holds up the loop is only reported: it may be in the middle of an effect.
"""

import logging
import signal
import sys
import threading
import traceback
from time import monotonic
from types import FrameType, TracebackType
from typing import Protocol

from .async_exceptions import raise_in, take_back

_CHECKS_PER_TIMEOUT = 8
_SIGNAL: int | None = getattr(signal, "SIGURG", None) if hasattr(signal, "pthread_kill") else None
"""Ignored by a process that does not ask for it, and asked for by next to nobody; the Go runtime interrupts its
threads with it for the same reasons."""

_log = logging.getLogger("stepwell.worker")
_by_signal: list["Watchdog"] = []


class WorkflowDeadlock(BaseException):
    """Raised inside workflow code. Not an ``Exception``: a handler for those must not keep the thread blocked."""


class Described(Protocol):
    """An attempt of an activity."""

    def description(self) -> str: ...


class LoopHold:
    """Which attempt's code the loop runs at this moment. Written at each of its turns, so two plain attributes."""

    __slots__ = ("attempt", "turn")

    def __init__(self) -> None:
        self.attempt: Described | None = None
        self.turn = 0


class Watchdog:
    """Watches one thread, normally the one that runs the event loop. ``with watchdog:`` marks workflow code.

    ``timeout`` is in seconds; None disables it (debug mode). Activities are seen through ``hold``.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.hold = LoopHold()
        self._loop_thread_id = 0
        self._held_turn = 0
        self._held_since: float | None = None
        self._lock = threading.Lock()
        self.began = 0.0
        """When workflow code was last entered, by the monotonic clock."""
        self._entered: float | None = None
        self._thread_id = 0
        self.blocked_stack: str | None = None
        """Where the code stood when its time was up, or None when it was in time. Valid until the next entry."""
        self._interrupts = 0
        self._wanted = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, *, interrupts: bool = True) -> None:
        """In the thread to be watched. Without ``interrupts`` nothing but activities runs there."""
        if self.timeout is None or self._thread is not None:
            return
        if interrupts:
            _take_signal(self)
        self._loop_thread_id = threading.get_ident()
        self._thread = threading.Thread(target=self._watch, name="stepwell-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1)
            _give_signal_back(self)

    def __enter__(self) -> "Watchdog":
        self.blocked_stack = None
        self._thread_id = threading.get_ident()
        self.began = self._entered = monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """The end of workflow code. Again after a :class:`WorkflowDeadlock`, which may have come as the code ended."""
        self._entered = None  # from here on no signal raises
        with self._lock:
            self._wanted = False
            if self.blocked_stack is not None and self not in _by_signal:
                # It may have finished between being seen and being interrupted; then the interrupt is taken back.
                take_back(WorkflowDeadlock)

    leave = __exit__

    def _watch(self) -> None:
        assert self.timeout is not None
        while not self._stop.wait(self.timeout / _CHECKS_PER_TIMEOUT):
            entered = self._entered
            if entered is None:
                self._look_at_activity(self.timeout)
                continue
            blocked = monotonic() - entered
            allowed = self.timeout if self.blocked_stack is None else self.timeout * (self._interrupts + 1)
            if blocked < allowed:
                continue
            with self._lock:
                if self._entered == entered:
                    self._interrupt(blocked)

    def _look_at_activity(self, timeout: float) -> None:
        turn, attempt = self.hold.turn, self.hold.attempt
        if attempt is None or turn != self._held_turn:
            self._held_turn, self._held_since = turn, monotonic()
            return
        if self._held_since is None:
            return  # reported
        held = monotonic() - self._held_since
        if held < timeout:
            return
        self._held_since = None
        stack = _stack_of(self._loop_thread_id)
        if self.hold.attempt is attempt and self.hold.turn == turn:
            _log.warning(
                "%s has held up its whole worker for %.1f s, timeouts included: async activities share its event loop. "
                "Make it a plain def, which runs in a thread, or await asyncio.to_thread(…) for what blocks. "
                "It is at:\n%s",
                attempt.description(),
                held,
                stack,
            )

    def _interrupt(self, blocked: float) -> None:
        stack = _stack_of(self._thread_id)
        if self.blocked_stack is None:
            self.blocked_stack = stack
            self._interrupts = 1
        else:
            self._interrupts += 1
            if self._interrupts == 2:
                _log.error(
                    "Workflow code holds up its whole worker for %.1f s and goes on. It is at:\n%s", blocked, stack
                )
        if self in _by_signal and self._thread_id == threading.main_thread().ident:
            assert _SIGNAL is not None
            self._wanted = True
            signal.pthread_kill(self._thread_id, _SIGNAL)
        else:
            raise_in(self._thread_id, WorkflowDeadlock)

    def signalled(self) -> None:
        """In the main thread, wherever it stands. Raises :class:`WorkflowDeadlock` when that is still wanted."""
        if self._wanted and self._entered is not None:
            self._wanted = False
            raise WorkflowDeadlock


def _take_signal(watchdog: Watchdog) -> None:
    """Not when this is another thread, or when the program handles the signal itself."""
    if _SIGNAL is None or threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(_SIGNAL)
    if handler is not _on_signal:
        if handler not in (signal.SIG_DFL, signal.SIG_IGN):
            return
        signal.signal(_SIGNAL, _on_signal)
    _by_signal.append(watchdog)


def _give_signal_back(watchdog: Watchdog) -> None:
    if watchdog not in _by_signal:
        return
    _by_signal.remove(watchdog)
    if not _by_signal and _SIGNAL is not None and signal.getsignal(_SIGNAL) is _on_signal:
        signal.signal(_SIGNAL, signal.SIG_DFL)


def _on_signal(number: int, frame: FrameType | None) -> None:
    for watchdog in _by_signal:
        watchdog.signalled()


def _stack_of(thread_id: int) -> str:
    frame = sys._current_frames().get(thread_id)
    return "".join(traceback.format_stack(frame)) if frame is not None else ""
