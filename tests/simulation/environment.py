"""The surroundings of a simulation: a clock that jumps, ids from the seed, and the process-wide sources of randomness
replaced for its duration."""

import contextlib
import logging
import os
import random as random_module
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from unittest import mock

from tests.simulation.loop import SimulatedLoop, no_threads

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class SimulatedClock:
    """Wall time that follows the loop's virtual time, and jumps when told to."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._offset = timedelta(0)

    def now(self) -> datetime:
        return EPOCH + timedelta(microseconds=round(self._loop.time() * 1e6)) + self._offset

    def monotonic(self) -> float:
        return self._loop.time()

    def jump(self, by: timedelta) -> None:
        self._offset += by


class SeededIds:
    """Ids in the shape of the real ones."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def run_id(self) -> str:
        return str(self.uuid())

    def nonce(self) -> str:
        return f"{self._random.getrandbits(96):024x}"

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class ErrorLog(logging.Handler):
    """What product code reports as an error: in a simulation nothing may go wrong that was not injected."""

    def __init__(self, tolerated: Callable[[BaseException | None], bool]) -> None:
        super().__init__(logging.ERROR)
        self._tolerated = tolerated
        self.first: tuple[str, BaseException | None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if "simulated:" in record.getMessage():
            return  # of a fault that was injected, all that is known is in the message
        if self.first is None and not self._tolerated(error):
            self.first = (f"{record.name}: {record.getMessage()}", error)


@contextlib.contextmanager
def surroundings(ids: SeededIds, seed: int, errors: ErrorLog) -> Iterator[None]:
    """Everything outside of the simulation that code under test could reach for."""
    loggers = [logging.getLogger(name) for name in ("stepwell", "stepwell_server", "asyncio")]
    state = random_module.getstate()
    random_module.seed(seed)
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_threads())
        stack.enter_context(mock.patch.object(uuid, "uuid4", ids.uuid))
        stack.enter_context(mock.patch.object(os, "urandom", ids.bytes))
        for logger in loggers:
            stack.enter_context(_logging_to(logger, errors))
        try:
            yield
        finally:
            random_module.setstate(state)


@contextlib.contextmanager
def _logging_to(logger: logging.Logger, handler: logging.Handler) -> Iterator[Any]:
    level, propagate = logger.level, logger.propagate
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
