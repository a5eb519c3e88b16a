"""Runs one activity function by itself in a test: made-up info, captured heartbeats, cancellation on demand (AC-39)."""

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, overload

from ..activity import ActivityCancellationDetails, Info
from ..activity.context import Context, LoopEvent, current
from ..converter import PayloadConverter
from ..worker.thread_interrupt import ThreadInterrupt

P = ParamSpec("P")
R = TypeVar("R")

_ASKED = ActivityCancellationDetails(cancel_requested=True)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ActivityEnvironment:
    """Set ``info`` and ``on_heartbeat`` before :meth:`run`. One environment runs one activity at a time."""

    def __init__(self, client: Any = None) -> None:
        """``client`` is what ``activity.client()`` returns to async activities."""
        self.info = default_info()
        self.on_heartbeat: Callable[..., None] = lambda *details: None
        """Called with the details of each heartbeat; they are not throttled here."""
        self.payload_converter: PayloadConverter = PayloadConverter.default
        self._client = client
        self._cancelled = LoopEvent(threaded=True)
        self._worker_shutdown = LoopEvent(threaded=True)
        self._details: ActivityCancellationDetails | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._interrupt: ThreadInterrupt | None = None

    @overload
    def run(
        self, fn: Callable[P, Coroutine[Any, Any, R]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]: ...
    @overload
    def run(self, fn: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...
    def run(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What the activity returns or raises. For an async activity this is a coroutine to be awaited; a
        synchronous one runs in the calling thread."""
        called = fn if inspect.isroutine(fn) else type(fn).__call__
        if inspect.iscoroutinefunction(called):
            return self._run_async(fn, *args, **kwargs)
        return contextvars.copy_context().run(self._run_sync, fn, *args, **kwargs)

    def cancel(self, cancellation_details: ActivityCancellationDetails = _ASKED) -> None:
        """Ask the running activity to stop, as a workflow would. From any thread; later calls change nothing."""
        if self._details is not None:
            return
        self._details = cancellation_details
        self._on_loop(self._cancelled.set)
        if self._task is not None:
            self._on_loop(self._task.cancel)
        elif self._interrupt is not None:
            self._interrupt.interrupt()

    def worker_shutdown(self) -> None:
        """Let the activity see that its worker is stopping. From any thread."""
        self._on_loop(self._worker_shutdown.set)

    async def _run_async(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._loop = asyncio.get_running_loop()

        async def run() -> Any:
            current.set(self._context(client=self._client))
            return await fn(*args, **kwargs)

        # A task of its own, so that its cancellation is not the test's.
        self._task = self._loop.create_task(run())
        if self._details is not None:
            self._task.cancel()
        try:
            return await self._task
        finally:
            self._task = None

    def _run_sync(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        interrupt = self._interrupt = ThreadInterrupt()
        current.set(self._context(shield=interrupt.shield))
        interrupt.enter()
        try:
            if self._details is not None:
                interrupt.interrupt()
            return fn(*args, **kwargs)
        finally:
            interrupt.leave()
            self._interrupt = None

    def _context(
        self, *, client: Any = None, shield: Callable[[], AbstractContextManager[None]] | None = None
    ) -> Context:
        return Context(
            info=lambda: self.info,
            heartbeat=lambda *details: self.on_heartbeat(*details),
            cancelled=self._cancelled,
            worker_shutdown=self._worker_shutdown,
            payload_converter=self.payload_converter,
            shield=shield,
            cancellation_details=lambda: self._details,
            client=client,
        )

    def _on_loop(self, call: Callable[[], Any]) -> None:
        loop = self._loop
        if loop is None or not loop.is_running() or _runs_here(loop):
            call()
        else:
            loop.call_soon_threadsafe(call)


def default_info() -> Info:
    """Info of an activity that no workflow asked for; change it with ``dataclasses.replace``."""
    return Info(
        activity_id="test",
        activity_type="unknown",
        attempt=1,
        scheduled_time=_EPOCH,
        current_attempt_scheduled_time=_EPOCH,
        started_time=_EPOCH,
        task_queue="test",
        task_token=b"test",
        workflow_id="test",
        workflow_namespace="default",
        workflow_run_id="test-run",
        workflow_type="test",
    )


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
