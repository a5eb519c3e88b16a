"""Many calls at once, so many at a time, with a rule for when that is a success (PM-15).

Theory of operation. Calls begin in the order given, the next one whenever one ends. Nothing here is recorded: which
calls began, which ended and in which order follows from the ends of the activities alone, so replay does the same.
Once the outcome is settled, calls that run are cancelled and waited for, lowest index first; the others never begin.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, cast

from ..api.limits import MAX_PENDING_ACTIVITIES
from ..exceptions import ApplicationError
from ..replay.runtime import current_runtime

T = TypeVar("T")

DEFAULT_CONCURRENCY = 500
"""Leaves room, under the limits of pending activities and of one workflow task's commands, for what else runs."""


class FanOutStatus(Enum):
    """How one call of a fan-out ended."""

    SUCCEEDED = 1
    FAILED = 2
    CANCELLED = 3
    """It was running when the outcome was settled."""
    NOT_STARTED = 4
    """The outcome was settled before its turn came."""


@dataclass(frozen=True)
class FanOutItem(Generic[T]):
    """One call, at its place."""

    index: int
    status: FanOutStatus
    result: T | None = None
    error: BaseException | None = None


@dataclass(frozen=True)
class FanOutResult(Generic[T]):
    """All calls, in the order given."""

    items: Sequence[FanOutItem[T]]

    @property
    def results(self) -> list[T]:
        """What the calls that succeeded returned, in the order of the calls."""
        return [cast(T, item.result) for item in self.items if item.status is FanOutStatus.SUCCEEDED]

    @property
    def failed(self) -> list[FanOutItem[T]]:
        """The calls that failed, each with its error, in the order of the calls."""
        return [item for item in self.items if item.status is FanOutStatus.FAILED]


class FanOutError(ApplicationError):
    """More calls failed than the fan-out tolerates. Its cause is the failure that was one too many."""

    def __init__(self, message: str, result: FanOutResult[Any]) -> None:
        super().__init__(message, type="FanOutError")
        self._result = result

    @property
    def result(self) -> FanOutResult[Any]:
        """What came of each call."""
        return self._result


async def fan_out(
    calls: Iterable[Coroutine[Any, Any, T] | Callable[[], Awaitable[T]]],
    *,
    max_concurrency: int | None = None,
    min_successful: int | None = None,
    tolerated_failures: int | None = None,
    tolerated_failure_percentage: float | None = None,
) -> FanOutResult[T]:
    """Run many calls, at most ``max_concurrency`` at a time (500 when not given, 2,000 at most), and return what came
    of each, in the order given.

    A call is a coroutine, such as ``workflow.execute_activity(…)``, or a function without arguments that makes one.
    All must succeed unless something else is said: the first failure is then raised as it is. ``min_successful``
    ends the fan-out as soon as that many have succeeded, or can no longer succeed. ``tolerated_failures`` and
    ``tolerated_failure_percentage`` (of all calls) let it go on past failures, up to and including that many; one
    more raises :class:`FanOutError`. Whenever it ends early, or is cancelled, calls that run are cancelled and waited
    for, and the rest never begin.

    Only failures are tolerated. An exception that shows a bug, and so would fail the workflow task, is raised at once.
    Raises ``TypeError`` and ``ValueError`` for calls and numbers that make no sense, before any call begins.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("a fan-out")
    listed: list[Any] = list(calls)
    try:
        if isinstance(calls, set | frozenset):
            raise TypeError(
                "workflow.fan_out needs a list or another ordered collection: the order of a set differs between "
                "processes"
            )
        for index, call in enumerate(listed):
            _check_call(index, call)
        rule = _Rule(len(listed), min_successful, tolerated_failures, tolerated_failure_percentage)
        width = _concurrency(max_concurrency)
    except BaseException:
        _discard(listed)
        raise
    return await _FanOut(listed, width, rule, runtime.is_failure).run()


def _check_call(index: int, call: object) -> None:
    if asyncio.isfuture(call):
        raise TypeError(
            f"workflow.fan_out: call {index} has begun already; give it a coroutine, such as "
            "workflow.execute_activity(…), or a function that makes one"
        )
    if not asyncio.iscoroutine(call) and not callable(call):
        raise TypeError(f"workflow.fan_out: call {index} is no coroutine and no function: {type(call).__name__}")


def _concurrency(asked: int | None) -> int:
    if asked is None:
        return DEFAULT_CONCURRENCY
    if not 1 <= asked <= MAX_PENDING_ACTIVITIES:
        raise ValueError(
            f"max_concurrency must be from 1 to {MAX_PENDING_ACTIVITIES} (limits.MAX_PENDING_ACTIVITIES), not {asked}"
        )
    return asked


class _Rule:
    """When the outcome is settled."""

    def __init__(
        self, total: int, min_successful: int | None, failures: int | None, failure_percentage: float | None
    ) -> None:
        if min_successful is not None and not 1 <= min_successful <= total:
            raise ValueError(f"min_successful must be from 1 to the number of calls, {total}, not {min_successful}")
        if failures is not None and failures < 0:
            raise ValueError(f"tolerated_failures must not be negative, not {failures}")
        if failure_percentage is not None and not 0 <= failure_percentage <= 100:
            raise ValueError(f"tolerated_failure_percentage must be from 0 to 100, not {failure_percentage}")
        self.strict = min_successful is None and failures is None and failure_percentage is None
        """All must succeed."""
        self.enough = total if min_successful is None else min_successful
        limits = [] if min_successful is None else [total - min_successful]
        if failures is not None:
            limits.append(failures)
        if failure_percentage is not None:
            limits.append(int(total * failure_percentage // 100))
        self.tolerated = min(limits, default=0)


class _FanOut(Generic[T]):
    """One fan-out while it runs."""

    def __init__(self, calls: list[Any], width: int, rule: _Rule, is_failure: Callable[[BaseException], bool]) -> None:
        self._calls = calls
        self._width = width
        self._rule = rule
        self._is_failure = is_failure
        self._loop = asyncio.get_running_loop()
        self._items: list[FanOutItem[T] | None] = [None] * len(calls)
        self._running: dict[int, asyncio.Future[T]] = {}
        self._next = 0
        self._succeeded = 0
        self._failed = 0
        self._settled = not calls
        self._error: BaseException | None = None
        """What the fan-out raises."""
        self._wake: asyncio.Future[None] = self._loop.create_future()

    async def run(self) -> FanOutResult[T]:
        cancelled: asyncio.CancelledError | None = None
        try:
            self._fill()
            while self._running or not self._settled:
                try:
                    await self._wake
                except asyncio.CancelledError as error:
                    cancelled = cancelled or error
                    self._wake = self._loop.create_future()
                    self._settle(None)
        finally:
            _discard(self._calls[self._next :])
        if cancelled is not None:
            raise cancelled
        return self._outcome()

    def _fill(self) -> None:
        while not self._settled and len(self._running) < self._width and self._next < len(self._calls):
            index = self._next
            self._next += 1
            self._start(index)

    def _start(self, index: int) -> None:
        call = self._calls[index]
        self._calls[index] = None
        try:
            awaitable = call if asyncio.iscoroutine(call) else call()
            future: asyncio.Future[T] = asyncio.ensure_future(awaitable, loop=self._loop)
        except Exception as error:
            self._failure(index, error)
            return
        self._running[index] = future
        future.add_done_callback(lambda ended: self._ended(index, ended))

    def _ended(self, index: int, future: "asyncio.Future[T]") -> None:
        del self._running[index]
        if future.cancelled() and self._settled:
            self._items[index] = FanOutItem(index, FanOutStatus.CANCELLED)
        elif future.cancelled():
            self._failure(index, asyncio.CancelledError())
        elif (error := future.exception()) is not None:
            self._failure(index, error)
        else:
            self._items[index] = FanOutItem(index, FanOutStatus.SUCCEEDED, result=future.result())
            self._succeeded += 1
            if self._succeeded in (self._rule.enough, len(self._items) - self._failed):
                self._settle(None)
        self._fill()
        if self._settled and not self._running and not self._wake.done():
            self._wake.set_result(None)

    def _failure(self, index: int, error: BaseException) -> None:
        self._items[index] = FanOutItem(index, FanOutStatus.FAILED, error=error)
        self._failed += 1
        if not self._is_failure(error):
            if self._error is None or self._is_failure(self._error):
                self._error = error  # a bug says more than the failures beside it, also one on the way out
            self._settle(error)
        elif self._failed > self._rule.tolerated:
            self._settle(error)
        elif self._succeeded + self._failed == len(self._items):
            self._settle(None)

    def _settle(self, error: BaseException | None) -> None:
        """The outcome is known: end what runs, lowest index first."""
        if self._settled:
            return
        self._settled = True
        self._error = error
        for index in sorted(self._running):
            self._running[index].cancel()

    def _outcome(self) -> FanOutResult[T]:
        items = [item or FanOutItem[T](index, FanOutStatus.NOT_STARTED) for index, item in enumerate(self._items)]
        result = FanOutResult(items)
        error = self._error
        if error is None:
            return result
        if self._rule.strict or not self._is_failure(error):
            raise error
        raise FanOutError(
            f"{self._failed} of {len(items)} calls of the fan-out failed, {self._rule.tolerated} are tolerated", result
        ) from error


def _discard(calls: Iterable[Any]) -> None:
    """Calls that never begin, without Python's warning about each."""
    for call in calls:
        if asyncio.iscoroutine(call):
            call.close()
