"""A seeded asyncio event loop on virtual time: the next callback is chosen by a random number, an idle loop jumps to
the next timer, and threads and real I/O are refused. One seed is one schedule, the same one every time.

Tasks and callbacks belong to a *process* of the simulation (a context variable). Killing a process drops everything it
has scheduled and leaves its coroutines where they stand, so no ``finally`` runs: what SIGKILL does.
"""

import asyncio
import contextlib
import contextvars
import heapq
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from types import CoroutineType
from typing import Any, TypeVar

T = TypeVar("T")

_PRUNE_TASKS_AT = 64
_ROUNDS_OF_BURIAL = 20


class Process:
    """One incarnation of an engine, a worker or a client."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.on_death: list[Callable[[], None]] = []
        self.unrun: list[asyncio.Handle] = []
        """What a dead process would have run next; kept so that nothing of it is collected early."""
        self._context = contextvars.copy_context()
        self._context.run(CURRENT_PROCESS.set, self)
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = _PRUNE_TASKS_AT
        self.stands_still = False
        """Alive, but nothing of it runs until it goes on: paused, or a function between two calls."""
        self.held: list[asyncio.Handle] = []

    def __repr__(self) -> str:
        return f"<{self.name}{'' if self.alive else ' (dead)'}>"

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str = "") -> asyncio.Task[T]:
        """Runs the coroutine as a task of this process."""
        loop = asyncio.get_running_loop()
        return loop.create_task(coroutine, name=name or None, context=self._context.copy())

    def kill(self) -> None:
        """From now on nothing of this process runs. Idempotent."""
        if not self.alive:
            return
        self.alive = False
        self.unrun += self.held
        for callback in self.on_death:
            callback()

    def stand_still(self) -> None:
        self.stands_still = True

    def go_on(self) -> None:
        """What became due meanwhile runs now."""
        if self.stands_still:
            self.stands_still = False
            held, self.held = self.held, []
            for handle in held:
                asyncio.get_running_loop()._ready.append(handle)  # type: ignore[attr-defined]

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Keeps the task from being collected, which would run its ``finally`` blocks after a kill."""
        self._tasks.append(task)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = max(_PRUNE_TASKS_AT, 2 * len(self._tasks))

    def bury(self) -> list[asyncio.Task[Any]]:
        """Gives up what the process left behind, once the simulation is over."""
        left, self._tasks = self._tasks, []
        self.unrun.clear()
        self.held.clear()
        return left


CURRENT_PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("current_process", default=None)


class NoLongerScheduled(Exception):
    """The loop has nothing left to do, yet the simulation is not over: a deadlock of the test itself."""


class _Buried(BaseException):
    """Ends a coroutine where it stands. Closing it would leave an inner one that awaits something on its way out."""


def _end(task: asyncio.Task[Any]) -> bool:
    """True when the task's coroutine has not ended with that, since it awaits something on its way out."""
    coroutine = task.get_coro()
    if task.done() or not isinstance(coroutine, CoroutineType) or coroutine.cr_frame is None:
        return False
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    with contextlib.suppress(BaseException):
        coroutine.throw(_Buried())
    return coroutine.cr_frame is not None


class _ReadyBag(list[asyncio.Handle]):
    """The loop's ready queue; ``BaseEventLoop`` appends to it."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """``pause`` is the chance that virtual time passes before a callback, as on a loaded machine; ``hold`` the chance
    that a callback has to wait while others run."""

    def __init__(self, random: Random, *, pause: float = 0.01, longest_pause: float = 0.2, hold: float = 0.005) -> None:
        super().__init__()
        self._random = random
        self._virtual_time = 1_000.0
        self._clock_resolution = 1e-9
        self._ready = _ReadyBag()
        self._pause = pause
        self._longest_pause = longest_pause
        self._hold = hold
        self._no_process = contextvars.Context()
        self._processes: dict[Process, None] = {}
        self.steps = 0
        self.digest = 0
        """Hash of the schedule so far; two runs of one seed must have the same."""
        self.stop_reason: BaseException | None = None
        self.set_debug(False)

    # --- virtual time and the choice of the next callback ---

    def time(self) -> float:
        return self._virtual_time

    def calm(self) -> None:
        """No more random pauses."""
        self._pause = 0.0

    def _run_once(self) -> None:
        self._collect_due()
        ready = self._ready
        if not ready:
            self._jump()
            return
        index = int(self._random.random() * len(ready))
        handle = ready[index]
        last = ready.pop()
        if last is not handle:
            ready[index] = last
        if handle._cancelled:
            return
        process = handle._context.get(CURRENT_PROCESS)  # type: ignore[attr-defined]
        if process is not None and not process.alive:
            process.unrun.append(handle)
            return
        if process is not None and process.stands_still:
            process.held.append(handle)
            return
        if self._pause and self._random.random() < self._hold:
            self._hold_back(handle)
            return
        self.steps += 1
        self.digest = (self.digest * 1_000_003 + index + len(ready)) & 0xFFFFFFFFFFFFFFFF
        if self._pause and self._random.random() < self._pause:
            self._virtual_time += self._random.random() * self._longest_pause
        handle._run()
        if self.stop_reason is not None:
            reason, self.stop_reason = self.stop_reason, None
            raise reason

    def _hold_back(self, handle: asyncio.Handle) -> None:
        """This one runs later than everything else that is ready now, as if its wake-up had been slow."""
        later = self._virtual_time + self._random.random() * self._longest_pause
        self.call_at(later, self._ready.append, handle, context=self._no_process)

    def _collect_due(self) -> None:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        while scheduled:
            timer = scheduled[0]
            if not timer._cancelled and timer._when > self._virtual_time:
                return
            heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                self._ready.append(timer)

    def _jump(self) -> None:
        scheduled = self._scheduled  # type: ignore[attr-defined]
        if not scheduled:
            raise NoLongerScheduled("nothing is ready and no timer is set")
        self._virtual_time = scheduled[0]._when

    # --- ownership ---

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> asyncio.Task[Any]:
        task = super().create_task(coro, name=name, context=context)
        process = CURRENT_PROCESS.get() if context is None else context.get(CURRENT_PROCESS)
        if process is not None:
            self._processes[process] = None
            process.adopt(task)
        return task

    def bury(self) -> None:
        """Ends every coroutine that is left, without noise; call when the loop has stopped for good.

        What they do on their way out belongs to this loop, and is ended as well.
        """
        asyncio._set_running_loop(self)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                left = [task for process in self._processes for task in process.bury()]
                for _ in range(_ROUNDS_OF_BURIAL):
                    left = [task for task in {*left, *asyncio.all_tasks(self)} if _end(task)]
                    if not left:
                        break
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()
        self._scheduled.clear()  # type: ignore[attr-defined]
        self._processes.clear()

    # --- what a simulation must not do ---

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread_id:  # type: ignore[attr-defined]
            raise RuntimeError("another thread touched the simulation's event loop")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        raise RuntimeError(f"the simulation runs in one thread, but {func!r} was handed to an executor")

    def _write_to_self(self) -> None:
        return

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """One that is collected when the simulation is over has nobody left to end it."""
        if self.is_running():
            super()._asyncgen_finalizer_hook(agen)  # type: ignore[misc]


@contextlib.contextmanager
def no_threads() -> Iterator[None]:
    """Refuses to start a thread inside the block."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError(f"the simulation runs in one thread, but {thread!r} was started")

    original = threading.Thread.start
    threading.Thread.start = refuse  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        threading.Thread.start = original  # type: ignore[method-assign]
