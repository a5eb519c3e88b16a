"""What every handler is given: the way into the engine, and what is known of the call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from stepwell.api.events import HistoryEvent
from stepwell.api.operations import Operation

from ..common.clock import IdSource
from .remembered import Remembered, TaskOf

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_FOR_THE_WAY = 1.0
"""Seconds before the caller's deadline at which a long poll is answered, so that the answer arrives; of a caller that
is in a hurry a tenth of its time, since with nothing left to wait it would never get what takes a moment."""

_LONGEST = 60.0
_SHOWN = 1_000
_GIVEN_OUT = 10_000


class Calls(Protocol):
    """The operations of the API, as every transport carries them out."""

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises ``ApiError`` for refusals."""
        ...

    async def undelivered(self, response: Any) -> None:
        """The answer of a poll reached nobody."""
        ...


@dataclass(frozen=True, slots=True)
class Gateway:
    calls: Calls
    server_version: str
    ids: IdSource
    shown: Remembered[tuple[HistoryEvent, ...]] = field(default_factory=lambda: Remembered(_SHOWN))
    given_out: Remembered[TaskOf] = field(default_factory=lambda: Remembered(_GIVEN_OUT))

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        return await self.calls.call(operation, request)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a client. ``seconds_left``: until its deadline, None when it has none."""

    seconds_left: Callable[[], float | None]

    def wait(self) -> timedelta:
        """How long this call may still be held."""
        left = self.seconds_left()
        seconds = _LONGEST if left is None else min(left - min(_FOR_THE_WAY, left / 10), _LONGEST)
        return timedelta(seconds=max(seconds, 0.0))


Handler = Callable[[Gateway, Any, Call], Awaitable[Any]]
Handlers = dict[str, Handler]
"""By the name of the RPC."""
