"""The running activity, as its own code sees it: a context variable that the worker sets around each attempt."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NoReturn, Protocol

from ..converter import PayloadConverter
from .info import ActivityCancellationDetails, Info


class Event(Protocol):
    """A flag that may be set from the loop and read anywhere: ``threading.Event`` or a manager's proxy."""

    def is_set(self) -> bool: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class LoopEvent:
    """A flag that coroutines and threads can wait for. Set on the event loop only."""

    __slots__ = ("_async", "_set", "_sync")

    def __init__(self, *, threaded: bool = False) -> None:
        self._set = False
        self._async: asyncio.Event | None = None
        self._sync = threading.Event() if threaded else None

    def set(self) -> None:
        self._set = True
        if self._async is not None:
            self._async.set()
        if self._sync is not None:
            self._sync.set()

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks the calling thread, which is not the event loop's."""
        if self._sync is None:
            raise RuntimeError("This is an async activity: await the event, or ask whether it is set")
        return self._sync.wait(timeout)

    async def wait_async(self) -> None:
        if self._set:
            return
        if self._async is None:
            self._async = asyncio.Event()
        await self._async.wait()


class Running(Protocol):
    """Everything that the functions of ``stepwell.activity`` need while an attempt runs."""

    shield: Callable[[], AbstractContextManager[None]] | None

    @property
    def cancelled(self) -> Event: ...

    @property
    def worker_shutdown(self) -> Event: ...

    @property
    def payload_converter(self) -> PayloadConverter: ...

    @property
    def client(self) -> Any: ...

    def info(self) -> Info: ...

    def heartbeat(self, *details: Any) -> None: ...

    def cancellation_details(self) -> ActivityCancellationDetails | None: ...


class Context:
    """The same, put together where no worker's attempt is at hand."""

    __slots__ = (
        "cancellation_details",
        "cancelled",
        "client",
        "heartbeat",
        "info",
        "payload_converter",
        "shield",
        "worker_shutdown",
    )

    def __init__(
        self,
        *,
        info: Callable[[], Info],
        heartbeat: Callable[..., None],
        cancelled: Event,
        worker_shutdown: Event,
        payload_converter: PayloadConverter,
        shield: Callable[[], AbstractContextManager[None]] | None = None,
        cancellation_details: Callable[[], ActivityCancellationDetails | None] = lambda: None,
        client: Any = None,
    ) -> None:
        self.info = info
        self.heartbeat = heartbeat
        self.cancelled = cancelled
        self.worker_shutdown = worker_shutdown
        self.payload_converter = payload_converter
        self.shield = shield
        self.cancellation_details = cancellation_details
        self.client = client


current: contextvars.ContextVar[Running] = contextvars.ContextVar("stepwell_activity")


def context() -> Running:
    found = current.get(None)
    if found is None:
        raise RuntimeError("Not in an activity: this function works only while an activity runs")
    return found


def in_activity() -> bool:
    """Whether the current code runs inside an activity."""
    return current.get(None) is not None


def info() -> Info:
    """The running attempt. Raises RuntimeError outside an activity, as do all functions here."""
    return context().info()


def heartbeat(*details: Any) -> None:
    """Report progress, and learn of cancellation from the answer (AC-07, AC-19).

    Calls are throttled (AC-08): sent at most every 0.8 x heartbeat timeout, so call it as often as you like. The last
    details are never lost to the throttle when the attempt fails or is cancelled.
    """
    context().heartbeat(*details)


def is_cancelled() -> bool:
    """Whether the activity was asked to stop."""
    return context().cancelled.is_set()


def cancellation_details() -> ActivityCancellationDetails | None:
    """Why it was asked to stop, or None when it was not."""
    return context().cancellation_details()


async def wait_for_cancelled() -> None:
    """Return when the activity is asked to stop. For async activities."""
    await _loop_event(context().cancelled).wait_async()


def wait_for_cancelled_sync(timeout: float | None = None) -> bool:
    """Block until the activity is asked to stop, or for ``timeout`` seconds; true when it was asked."""
    return context().cancelled.wait(timeout)


def is_worker_shutdown() -> bool:
    """Whether the worker is stopping; after its grace time it cancels what still runs (AC-37)."""
    return context().worker_shutdown.is_set()


async def wait_for_worker_shutdown() -> None:
    """Return when the worker begins to stop. For async activities."""
    await _loop_event(context().worker_shutdown).wait_async()


def wait_for_worker_shutdown_sync(timeout: float | None = None) -> bool:
    """Block until the worker begins to stop, or for ``timeout`` seconds; true when it has begun."""
    return context().worker_shutdown.wait(timeout)


@contextmanager
def shield_thread_cancel_exception() -> Iterator[None]:
    """Code in this block is not interrupted by cancellation; it is raised when the block ends (AC-38).

    Does nothing in async and process activities, into which nothing is raised this way.
    """
    shield = context().shield
    with shield() if shield is not None else nullcontext():
        yield


def payload_converter() -> PayloadConverter:
    """The converter of the worker's client."""
    return context().payload_converter


def client() -> Any:
    """The worker's client. Only in async activities, since it belongs to the event loop."""
    found = context().client
    if found is None:
        raise RuntimeError("No client here: activity.client() is for async activities only")
    return found


class CompleteAsyncError(BaseException):
    """Ends the function of an activity that goes on without it. Not an ``Exception``, so that code which handles its
    own errors lets it through."""


def raise_complete_async() -> NoReturn:
    """End the function without ending the activity: somebody else does, who has ``activity.info().task_token`` or knows
    the ids, through ``Client.get_async_activity_handle`` (AC-21). The timeouts run on."""
    context()
    raise CompleteAsyncError


def _loop_event(event: Event) -> LoopEvent:
    if isinstance(event, LoopEvent):
        return event
    raise RuntimeError("Not an async activity: use the function that ends in _sync")
