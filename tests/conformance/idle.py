"""Lets a workflow continue as new at every turn at which it would wait, when the suite runs it in that way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stepwell import workflow

_forced = False


@contextmanager
def continue_when_idle(forced: bool) -> Iterator[None]:
    """Workers and replays in this process, within the block."""
    global _forced
    before, _forced = _forced, forced
    try:
        yield
    finally:
        _forced = before


class Turns:
    """The waits of one run: a workflow whose arguments are all of its state waits by :meth:`until`.

    Each run may wait once, so that it takes something from its inbox; where it would wait again, it continues as new.
    """

    def __init__(self) -> None:
        self._waited = False

    async def until(self, condition: Callable[[], bool], *carried: Any) -> None:
        """``workflow.wait_condition(condition)``; ``carried`` are the arguments of the next run."""
        if _forced and self._waited and not condition():
            workflow.continue_as_new(args=list(carried))
        self._waited = True
        await workflow.wait_condition(condition)
