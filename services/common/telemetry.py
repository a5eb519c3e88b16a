"""What functions and containers on AWS tell the outside: structured logs, metrics in CloudWatch's embedded format, and
segments for X-Ray, by Powertools.

CloudWatch's logs cost by the byte, as much as the writes of the engine. So only warnings and errors are logged, of
which none holds a payload or secret. Metrics are gathered: a container writes them once a minute, and a function with
the call after which a minute has passed since its last line, or which saw what should not wait. What a function still
holds when it is ended is lost; those are less than a minute's measurements. Powertools' parts are imported when they
are first needed, since a function's first call waits for each of them.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from . import metric_names as names
from .clock import Clock
from .metrics import Gathered, Series

T = TypeVar("T")
Write = Callable[[str], object]

EVERY_SECONDS = 60.0
_VALUES = 100
"""The most that CloudWatch takes for one metric in a line."""

_LOGGERS = ("stepwell_server", "stepwell")
_SERVICE = "stepwell"
TRACING = "STEPWELL_TRACING"
"""Set to ``on`` by a stack that has X-Ray record the functions."""


def to_stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


class Telemetry:
    """Of one process of a cell. ``write`` takes a line for CloudWatch."""

    def __init__(self, cell: str, clock: Clock, write: Write = to_stdout) -> None:
        self.metrics = Gathered()
        self._cell = cell
        self._clock = clock
        self._write = write
        self._told: float | None = None
        self._minutes: asyncio.Task[None] | None = None

    # --- functions ---

    def observed(self, name: str, handler: Callable[[Any, Any], T]) -> Callable[[Any, Any], T]:
        """The handler of a function, with a segment for each call where X-Ray is on, and its metrics told."""

        def call(event: Any, context: Any) -> T:
            _request.id = str(getattr(context, "aws_request_id", ""))
            try:
                with _segment(name, self._cell):
                    return handler(event, context)
            finally:
                if self.metrics.pressing or self._is_time():
                    self.flush()

        return call

    # --- containers ---

    def start(self) -> None:
        """Tells once a minute from now on."""
        self._minutes = asyncio.create_task(self._each_minute(), name="metrics")

    async def stop(self) -> None:
        if self._minutes is not None:
            self._minutes.cancel()
            await asyncio.wait([self._minutes])
            self._minutes = None
        self.flush()

    async def _each_minute(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            self.flush()

    # --- both ---

    def flush(self) -> None:
        """Writes what was gathered. Metrics are not worth the call that they are about: what fails here is logged."""
        self._told = self._clock.monotonic()
        try:
            for line in emf_lines(self._cell, self.metrics.take()):
                self._write(line)
        except Exception:
            logging.getLogger(__name__).exception("Metrics of a minute are lost")

    def _is_time(self) -> bool:
        return self._told is None or self._clock.monotonic() - self._told >= EVERY_SECONDS


def emf_lines(cell: str, told: Iterable[Series]) -> list[str]:
    """JSON that CloudWatch makes metrics of; one for each set of dimensions, and for each hundred values."""
    lines: dict[tuple[tuple[tuple[str, str], ...], int], dict[str, Any]] = {}
    for series in told:
        dimensions = tuple(series.dimensions.items())
        for start in range(0, len(series.values), _VALUES):
            values = list(series.values[start : start + _VALUES])
            metric = {"Unit": names.UNITS[series.name], "StorageResolution": 60, "Value": values}
            lines.setdefault((dimensions, start), {})[series.name] = metric
    return [
        json.dumps(_provider().serialize_metric_set(metrics, {names.CELL: cell, **dict(dimensions)}, {}))
        for (dimensions, _), metrics in lines.items()
    ]


@cache
def _provider() -> Any:
    """Of no metrics of its own. What environment variables say of a service is no dimension here."""
    from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

    provider = AmazonCloudWatchEMFProvider(namespace=names.NAMESPACE)
    provider.service = ""
    return provider


# --- segments ---


@contextmanager
def _segment(name: str, cell: str) -> Iterator[None]:
    tracer = _tracer()
    if tracer is None:
        yield
        return
    with tracer.provider.in_subsegment(name=f"## {name}"):
        tracer.put_annotation(names.CELL, cell)
        yield


@cache
def _tracer() -> Any:
    """None unless the stack has X-Ray record the functions. It patches no libraries: theirs are not the calls of the
    data path."""
    if os.environ.get(TRACING, "") != "on":
        return None
    from aws_lambda_powertools.tracing import Tracer

    return Tracer(service=_SERVICE, auto_patch=False)


# --- logs ---


class _Request:
    """Of the call that a function answers; it answers one at a time."""

    id = ""


_request = _Request()


class StructuredHandler(logging.Handler):
    """One line of JSON for each record, by Powertools' formatter, which is imported with the first of them."""

    def __init__(self, cell: str, write: Write = to_stdout) -> None:
        super().__init__()
        self._cell = cell
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(self._made().format(record))
        except Exception:
            self.handleError(record)

    def _made(self) -> logging.Formatter:
        if self.formatter is None:
            from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

            self.formatter = LambdaPowertoolsFormatter(service=_SERVICE, cell=self._cell, name="%(name)s", utc=True)
        made: Any = self.formatter
        made.append_keys(function_request_id=_request.id or None)
        return self.formatter


def structured_logs(cell: str, *, level: str = "", write: Write = to_stdout) -> None:
    """The loggers of this process write JSON from now on, from ``level`` on, else from the one that
    POWERTOOLS_LOG_LEVEL names; by default warnings and errors."""
    handler = StructuredHandler(cell, write)
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel((level or os.environ.get("POWERTOOLS_LOG_LEVEL", "WARNING")).upper())
