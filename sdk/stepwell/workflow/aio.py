"""``wait`` and ``as_completed`` in a fixed order: the standard ones go through sets, whose order differs between
processes (PM-08, WC-22).
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from typing import Any, Generic, TypeVar

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
    """As ``asyncio.wait``, but done and pending are lists in the order given. ``timeout`` in seconds is a durable
    timer.
    """
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
    """As ``asyncio.as_completed``: awaitables in the order in which the given ones end; those that end together, in
    the order given.

    ``timeout`` in seconds is a durable timer; awaiting raises ``asyncio.TimeoutError`` for what has not ended by
    then.
    """
    completion = _Completion(_as_futures(fs, "as_completed"), timeout)
    for slot in completion.slots:
        yield completion.next_ended(slot)


class _Completion(Generic[T]):
    """One slot for each future, filled in the order in which they end."""

    def __init__(self, futures: "list[asyncio.Future[T]]", timeout: float | None) -> None:
        loop = current_runtime().loop
        self._futures = futures
        self._ended = 0
        self.slots: list[asyncio.Future[asyncio.Future[T]]] = [loop.create_future() for _ in futures]
        self._timer = loop.call_later(timeout, self._timed_out) if timeout is not None and futures else None
        for future in futures:
            future.add_done_callback(self._done)

    def _done(self, future: "asyncio.Future[T]") -> None:
        slot = self.slots[self._ended]
        self._ended += 1
        if not slot.done():
            slot.set_result(future)
        if self._ended == len(self.slots) and self._timer is not None:
            self._timer.cancel()

    def _timed_out(self) -> None:
        for future in self._futures:
            future.remove_done_callback(self._done)
        for slot in self.slots:
            if not slot.done():
                slot.set_exception(TimeoutError())

    async def next_ended(self, slot: "asyncio.Future[asyncio.Future[T]]") -> T:
        return (await slot).result()
