"""Receiving signals and answering queries with handlers set at run time, and waiting for a signal by name."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, overload

from ..api.events import WorkflowExecutionSignaled
from ..converter.errors import PayloadError
from ..replay.runtime import WorkflowRuntime, current_runtime
from .dynamic import DYNAMIC
from .timers import seconds_of

T = TypeVar("T")


@overload
async def wait_for_signal(name: str, *, timeout: timedelta | float | None = None) -> Any: ...
@overload
async def wait_for_signal(name: str, *, timeout: timedelta | float | None = None, result_type: type[T]) -> T | None: ...
async def wait_for_signal(name: str, *, timeout: timedelta | float | None = None, result_type: Any = Any) -> Any:
    """Take the oldest signal of that name that nobody took yet, waiting for one if there is none (MS-15).

    Returns its argument; True for a signal without one, and a list when there are several. Returns None when
    ``timeout`` (seconds or a timedelta, a durable timer) ends first. A signal that does not fit ``result_type`` is
    skipped with a warning.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("waiting for a signal")
    if not isinstance(name, str):
        raise TypeError(f"wait_for_signal: name must be text, not {type(name).__name__}")
    if not name:
        raise ValueError("wait_for_signal: name is empty, and no signal has that; give the signal's name")
    handlers = runtime.handlers
    expired: asyncio.Future[WorkflowExecutionSignaled] | None = None
    timer: asyncio.TimerHandle | None = None
    try:
        while True:
            future = handlers.wait_for_signal(name)
            if not future.done() and timeout is not None:
                if timer is None:
                    expired = runtime.loop.create_future()
                    timer = runtime.loop.call_later(seconds_of(timeout), _expire, expired)
                assert expired is not None
                if not await _first(runtime, future, expired, name):
                    return None
            else:
                await _taken(runtime, future, name)
            value, fits = _value(runtime, future.result(), result_type)
            if fits:
                return value
    finally:
        if timer is not None:
            timer.cancel()


async def _taken(runtime: WorkflowRuntime, future: "asyncio.Future[WorkflowExecutionSignaled]", name: str) -> None:
    try:
        await future
    except asyncio.CancelledError:
        runtime.handlers.give_back(name, future)
        raise


async def _first(
    runtime: WorkflowRuntime,
    future: "asyncio.Future[WorkflowExecutionSignaled]",
    expired: "asyncio.Future[WorkflowExecutionSignaled]",
    name: str,
) -> bool:
    """True when the signal came, False when the time ran out first."""
    waiter: asyncio.Future[None] = runtime.loop.create_future()

    def wake(_: object) -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(wake)
    expired.add_done_callback(wake)
    try:
        await waiter
    except asyncio.CancelledError:
        runtime.handlers.give_back(name, future)
        raise
    if future.done():
        return True
    runtime.handlers.give_back(name, future)
    return False


def _expire(expired: "asyncio.Future[Any]") -> None:
    if not expired.done():
        expired.set_result(None)


def _value(runtime: WorkflowRuntime, event: WorkflowExecutionSignaled, result_type: Any) -> tuple[Any, bool]:
    converter = runtime.payload_converter
    try:
        if not event.input:
            return True, True
        if len(event.input) == 1:
            return converter.from_payload(event.input[0], result_type), True
        return converter.from_payloads(event.input, None), True
    except PayloadError as error:
        runtime.handlers.warn_skipped(event.signal_name, str(error))
        return None, False


def set_signal_handler(name: str, handler: Callable[..., Any] | None) -> None:
    """Set the handler of a signal, or with None take it away. Signals that came before are handed over at once,
    oldest first.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("setting a handler")
    runtime.handlers.set_signal_handler(name, handler)


def get_signal_handler(name: str) -> Callable[..., Any] | None:
    """The handler of a signal, bound to the workflow instance; None when there is none."""
    handlers = current_runtime().handlers
    found = handlers.signals.get(name)
    if found is None:
        return None
    return found.fn if found.bound else found.fn.__get__(handlers.instance)


def set_dynamic_signal_handler(handler: Callable[..., Any] | None) -> None:
    """Set the handler of all signals that have none of their own, or with None take it away. It takes the name and the
    arguments as ``Sequence[RawValue]``. Signals that came before are handed over at once, oldest first.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("setting a handler")
    runtime.handlers.set_dynamic_signal_handler(handler)


def get_dynamic_signal_handler() -> Callable[..., Any] | None:
    """The handler of all signals that have none of their own; None when there is none."""
    return get_signal_handler(DYNAMIC)


def set_dynamic_query_handler(handler: Callable[..., Any] | None) -> None:
    """As :func:`set_dynamic_signal_handler`, for queries."""
    runtime = current_runtime()
    runtime.refuse_in_query("setting a handler")
    runtime.handlers.set_dynamic_query_handler(handler)


def get_dynamic_query_handler() -> Callable[..., Any] | None:
    """The handler of all queries that have none of their own; None when there is none."""
    return get_query_handler(DYNAMIC)


def set_query_handler(name: str, handler: Callable[..., Any] | None) -> None:
    """Set the handler of a query, or with None take it away."""
    runtime = current_runtime()
    runtime.refuse_in_query("setting a handler")
    runtime.handlers.set_query_handler(name, handler)


def get_query_handler(name: str) -> Callable[..., Any] | None:
    """The handler of a query, bound to the workflow instance; None when there is none."""
    handlers = current_runtime().handlers
    found = handlers.queries.get(name)
    if found is None:
        return None
    return found.fn if found.bound else found.fn.__get__(handlers.instance)


def all_handlers_finished() -> bool:
    """True when no asynchronous handler is running; wait for it with ``wait_condition`` before the workflow ends
    (MS-13).
    """
    return not current_runtime().handlers.running
