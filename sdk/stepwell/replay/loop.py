"""The event loop of workflow code: asyncio's scheduling and nothing else (PM-07).

First in, first out; time stands still while code runs and is that of the workflow task. Delays become durable timers.
There are no sockets, threads, subprocesses or signals: asking for them raises, naming what to use instead.
"""

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from typing import Any, NoReturn, Protocol, TypeVar, TypeVarTuple, Unpack
from zlib import crc32

from .errors import Evicted, ForbiddenInWorkflowError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LoopOwner(Protocol):
    """What the loop needs of the run it belongs to."""

    read_only: str
    evicting: bool

    def start_timer(self, handle: asyncio.TimerHandle, seconds: float) -> None: ...

    def cancel_timer(self, handle: asyncio.TimerHandle) -> None: ...

    def refuse_in_query(self, what: str) -> None: ...

    def callback_failed(self, context: dict[str, Any]) -> None: ...

    def code_failed(self, error: BaseException) -> None: ...


class WorkflowTask(asyncio.Task[T]):
    """A task whose hash is the same in every replay of its run: ``asyncio.TaskGroup`` keeps its tasks in a set, and
    cancels them in the order of that set.
    """

    __slots__ = ("_hash",)
    _hash: int

    def __new__(cls, coro: Any, *, loop: "DeterministicLoop", **options: Any) -> "WorkflowTask[T]":
        self: WorkflowTask[T] = super().__new__(cls)
        self._hash = loop.next_hash()
        return self

    def __hash__(self) -> int:
        return self._hash


class DeterministicLoop(asyncio.AbstractEventLoop):
    """Runs callbacks in the order in which they were asked for, until none is ready."""

    def __init__(self, owner: LoopOwner) -> None:
        self.owner = owner
        self.seconds = 0.0
        """Workflow time since the run's start; what :meth:`time` answers."""
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 32
        self._stopped = False
        self._hash = 0

    def seed_hashes(self, run_id: str) -> None:
        """Hashes of tasks and handles follow from the run, so that tasks of different runs do not collide."""
        self._hash = crc32(run_id.encode()) << 24

    def next_hash(self) -> int:
        """For the next object that may be put into a set."""
        self._hash += 1
        return self._hash

    def run_ready(self) -> None:
        """Run until nothing is ready, or :meth:`stop` was called. The caller has made this the running loop."""
        ready = self._ready
        while ready and not self._stopped:
            handle = ready.popleft()
            if handle._cancelled:
                continue
            try:
                handle._context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # as asyncio has it: whoever waits for a task has its exceptions
                self.owner.callback_failed({"message": "exception in a callback", "exception": error})

    def stop(self) -> None:
        """Nothing runs any more: the workflow has ended."""
        self._stopped = True

    def close_tasks(self) -> None:
        """Close every coroutine that is still suspended, newest first; what it does on the way out has no effect."""
        self._stopped = True
        self._ready.clear()
        tasks, self._tasks = self._tasks, []
        for task in reversed(tasks):
            if task.done():
                continue
            task._log_destroy_pending = False
            coroutine = task.get_coro()
            if coroutine is not None:
                _close(coroutine)
        self._ready.clear()

    def live_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that have not ended, oldest first."""
        return [task for task in self._tasks if not task.done()]

    # --- what asyncio and user code call ---------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self.owner.evicting:
            self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """A delay of zero or less is no timer, and runs with what is ready (WC-13)."""
        self.owner.refuse_in_query("waiting")
        handle = asyncio.TimerHandle(self.seconds + delay, callback, args, self, context)
        if delay <= 0:
            self._ready.append(handle)
        elif not self.owner.evicting:
            self.owner.start_timer(handle, delay)
        return handle

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_later(when - self.seconds, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if not self.owner.evicting:
            self.owner.cancel_timer(handle)

    def timer_fired(self, handle: asyncio.TimerHandle) -> None:
        """The durable timer behind a handle is due."""
        self._ready.append(handle)

    def time(self) -> float:
        return self.seconds

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        if self.owner.evicting:
            coro.close()
            raise Evicted
        if self.owner.read_only:
            coro.close()
            self.owner.refuse_in_query("starting a task")
        task: asyncio.Task[T] = WorkflowTask(coro, loop=self, name=name, context=context)
        if len(self._tasks) >= self._prune_at:
            self._tasks = self.live_tasks()
            self._prune_at = 2 * len(self._tasks) + 32
        self._tasks.append(task)
        return task

    get_debug = staticmethod(bool)
    """False, without a function of ours: each future, task and callback asks."""

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.owner.callback_failed(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.owner.callback_failed(context)

    async def shutdown_asyncgens(self) -> None:
        """Nothing to do; eviction closes what is open."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is no executor."""


def _close(coroutine: Any) -> None:
    """Await, SDK calls and errors in the coroutine's own ``finally`` are cut off."""
    for _ in range(100):
        try:
            coroutine.close()
        except RuntimeError:
            continue  # it awaited in spite of being closed; closing again goes on behind that await
        except BaseException:
            return
        return


_INSTEAD = {
    "run_in_executor": "threads and executors; run the work in an activity",
    "call_soon_threadsafe": "calls from other threads; send the workflow a signal",
    "set_default_executor": "executors; run the work in an activity",
    "getaddrinfo": "the network; do it in an activity",
    "getnameinfo": "the network; do it in an activity",
    "subprocess_exec": "subprocesses; run them in an activity",
    "subprocess_shell": "subprocesses; run them in an activity",
    "add_signal_handler": "operating system signals; send the workflow a signal of its own",
    "remove_signal_handler": "operating system signals; send the workflow a signal of its own",
    "run_forever": "running a loop of its own; use await",
    "run_until_complete": "running a loop of its own; use await",
    "set_debug": "changing the event loop",
    "set_task_factory": "changing the event loop",
    "set_exception_handler": "changing the event loop; catch exceptions where you await",
    "close": "closing the event loop",
}
_NETWORK = (
    "create_connection create_server create_unix_connection create_unix_server create_datagram_endpoint sendfile "
    "start_tls connect_accepted_socket connect_read_pipe connect_write_pipe add_reader remove_reader add_writer "
    "remove_writer sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into sock_sendall sock_sendto sock_connect "
    "sock_accept sock_sendfile"
)


def _refusal(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(self: DeterministicLoop, *args: Any, **kwargs: Any) -> NoReturn:
        error = ForbiddenInWorkflowError(f"workflow code cannot use {instead} (asyncio {name})")
        self.owner.code_failed(error)
        raise error

    refuse.__name__ = name
    return refuse


for _name, _instead in _INSTEAD.items():
    setattr(DeterministicLoop, _name, _refusal(_name, _instead))
for _name in _NETWORK.split():
    setattr(DeterministicLoop, _name, _refusal(_name, "the network or pipes; do it in an activity"))
