"""Runs a coroutine inside the current task, but in a context (of context variables) of its own."""

import contextvars
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

from .watchdog import Described, LoopHold

R = TypeVar("R")


class InContext(Generic[R]):
    """``await InContext(coroutine, context, waits)``: as a task of its own would, without the two turns of the loop
    that one costs. ``waits`` is called when the coroutine waits for the first time, which many never do. ``hold`` tells
    the watchdog when the coroutine runs, on behalf of ``attempt``."""

    __slots__ = ("_attempt", "_context", "_coroutine", "_hold", "_waits")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, R],
        context: contextvars.Context,
        waits: Callable[[], None] | None = None,
        hold: LoopHold | None = None,
        attempt: Described | None = None,
    ) -> None:
        self._coroutine = coroutine
        self._context = context
        self._waits = waits
        self._hold = LoopHold() if hold is None else hold
        self._attempt = attempt

    def __await__(self) -> Generator[Any, Any, R]:
        coroutine = self._coroutine
        run, hold, attempt = self._context.run, self._hold, self._attempt
        resume: Any = coroutine.send
        argument: Any = None
        while True:
            hold.turn += 1
            hold.attempt = attempt
            try:
                waiting_for = run(resume, argument)
            except StopIteration as end:
                result: R = end.value
                return result
            finally:
                hold.attempt = None
            if self._waits is not None:
                self._waits()
                self._waits = None
            try:
                argument = yield waiting_for
                resume = coroutine.send
            except BaseException as error:
                resume, argument = coroutine.throw, error
