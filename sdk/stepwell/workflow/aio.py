"""``wait`` and ``as_completed`` in a fixed order: the standard ones go through sets, whose order differs between processes (PM-08, WC-22)."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from ..replay.runtime import current_runtime

T = TypeVar("T")


def _as_futures(fs: Iterable[Any], what: str) -> list["asyncio.Future[Any]"]:
    if isinstance(fs, set | frozenset):
        raise TypeError(
            f"workflow.{what} needs a list or another ordered collection: the order of a set differs between processes"
        )
    if asyncio.isfuture(fs) or asyncio.iscoroutine(fs):
        raise TypeError(f"workflow.{what} needs a list of awaitables, not one of them")
    futures: dict[asyncio.Future[Any], None] = {}
    for item in fs:
        futures[asyncio.ensure_future(item)] = None
    return list(futures)


async def wait(
    fs: Iterable["asyncio.Future[T] | Coroutine[Any, Any, T]"],
    *,
    timeout: float | None = None,
    return_when: str = asyncio.ALL_COMPLETED,
) -> tuple[list["asyncio.Future[T]"], list["asyncio.Future[T]"]]:
    """As ``asyncio.wait``, but done and pending are lists in the order given. ``timeout`` in seconds is a durable timer."""
    futures: list[asyncio.Future[T]] = _as_futures(fs, "wait")
    if not futures:
        raise ValueError("workflow.wait needs at least one awaitable")
    if return_when not in (asyncio.FIRST_COMPLETED, asyncio.FIRST_EXCEPTION, asyncio.ALL_COMPLETED):
        raise ValueError(f"return_when must be FIRST_COMPLETED, FIRST_EXCEPTION or ALL_COMPLETED, not {return_when!r}")

    def enough() -> bool:
        done = [future for future in futures if future.done()]
        if len(done) == len(futures) or (done and return_when == asyncio.FIRST_COMPLETED):
            return True
        return return_when == asyncio.FIRST_EXCEPTION and any(not f.cancelled() and f.exception() for f in done)

    if not enough():
        await _until(futures, enough, timeout)
    return [f for f in futures if f.done()], [f for f in futures if not f.done()]


async def _until(futures: "list[asyncio.Future[T]]", enough: Any, timeout: float | None) -> None:
    loop = current_runtime().loop
    waiter: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    def check(_: object) -> None:
        if enough():
            wake()

    timer = None if timeout is None else loop.call_later(timeout, wake)
    for future in futures:
        future.add_done_callback(check)
    try:
        await waiter
    finally:
        if timer is not None:
            timer.cancel()
        for future in futures:
            future.remove_done_callback(check)


def as_completed(
    fs: Iterable["asyncio.Future[T] | Coroutine[Any, Any, T]"], *, timeout: float | None = None
) -> Iterator[Awaitable[T]]:
    """As ``asyncio.as_completed``: awaitables in the order in which the given ones end; those that end together, in the order given.

    ``timeout`` in seconds is a durable timer; awaiting raises ``asyncio.TimeoutError`` for what has not ended by then.
    """
    futures: list[asyncio.Future[T]] = _as_futures(fs, "as_completed")
    loop = current_runtime().loop
    ended: list[asyncio.Future[T]] = []
    slots: list[asyncio.Future[asyncio.Future[T]]] = [loop.create_future() for _ in futures]
    remaining = len(futures)
    timer: asyncio.TimerHandle | None = None

    def on_done(future: "asyncio.Future[T]") -> None:
        nonlocal remaining
        slot = slots[len(ended)]
        ended.append(future)
        remaining -= 1
        if not slot.done():
            slot.set_result(future)
        if remaining == 0 and timer is not None:
            timer.cancel()

    def on_timeout() -> None:
        for future in futures:
            future.remove_done_callback(on_done)
        for slot in slots:
            if not slot.done():
                slot.set_exception(TimeoutError())

    if timeout is not None and futures:
        timer = loop.call_later(timeout, on_timeout)
    for future in futures:
        future.add_done_callback(on_done)

    async def next_ended(slot: "asyncio.Future[asyncio.Future[T]]") -> T:
        return (await slot).result()

    for slot in slots:
        yield next_ended(slot)
