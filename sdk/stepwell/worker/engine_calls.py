"""Calls of a worker to its engine, which outlast restarts of the engine: a worker never gives up by itself."""

import asyncio
import logging
import random
from typing import TypeVar

from ..api.errors import ApiError, DeadlineExceeded, ResourceExhausted, Unavailable, retry_after
from ..api.operations import Operation
from ..transport import Transport

Req = TypeVar("Req")
Resp = TypeVar("Resp")

FIRST_BACKOFF = 0.1
MAX_BACKOFF = 5.0

TRANSIENT = (Unavailable, ResourceExhausted, DeadlineExceeded)
_log = logging.getLogger("stepwell.worker")


class EngineCalls:
    """``once`` is the transport's own call. ``until_answered`` repeats the same request, thus with the same nonce,
    until the engine answers or refuses for good."""

    def __init__(self, transport: Transport, task_queue: str) -> None:
        self.once = transport.call
        self._task_queue = task_queue
        self._failing = False

    async def until_answered(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises every refusal that the same request would meet again."""
        try:
            return await self.once(operation, request)
        except TRANSIENT as error:
            return await self.again(operation, request, error)

    async def again(self, operation: Operation[Req, Resp], request: Req, failure: ApiError) -> Resp:
        """Goes on where ``once`` met a transient failure."""
        backoff = Backoff()
        while True:
            self.failed(operation.name, failure)
            await backoff.pause(retry_after(failure))
            try:
                answer = await self.once(operation, request)
            except TRANSIENT as error:
                failure = error
            else:
                self.served()
                return answer

    def failed(self, operation: str, error: ApiError) -> None:
        """Note an outage; said once, however many calls it meets."""
        if not self._failing:
            self._failing = True
            _log.warning(
                "Engine not available to worker of %s, trying again: %s: %s", self._task_queue, operation, error
            )

    def served(self) -> None:
        if self._failing:
            self._failing = False
            _log.info("Engine available again to worker of %s", self._task_queue)


class Backoff:
    """Waits that double from 0.1 s to 5 s, with jitter, so that workers do not all return at once."""

    def __init__(self) -> None:
        self._next = FIRST_BACKOFF

    def reset(self) -> None:
        self._next = FIRST_BACKOFF

    async def pause(self, asked: float = 0.0) -> None:
        """Not less than the ``asked`` seconds."""
        wait = max(random.uniform(0.5, 1.0) * self._next, asked * random.uniform(1.0, 1.1))
        self._next = min(MAX_BACKOFF, self._next * 2)
        await asyncio.sleep(wait)
