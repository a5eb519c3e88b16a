"""The feed as a function on the stream of commits: handles a batch, and reports the records that failed.

Whoever makes it gives it everything (``entrypoints``). A record that fails is reported alone, so that the mapping
tries again from there and in the end sets it aside; records behind it have been handled all the same, and being
handled again costs nothing but time.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.dynamo_db_stream_event import DynamoDBRecord

from ..common import metric_names as names
from ..common.metrics import NO_METRICS, Metrics
from .feed import Feed, FeedRecord

log = logging.getLogger(__name__)

_AT_ONCE = 32
_TO_ANSWER = 2.0
"""Seconds before the function's own end at which what is not done counts as failed."""

_LONGEST = 600.0

Parse = Callable[[Mapping[str, Any]], FeedRecord | None]
Run = Callable[[Coroutine[Any, Any, list[Exception | None]]], list[Exception | None]]
Settle = Callable[[float], Awaitable[bool]]


class Context(Protocol):
    """Of a call, as Lambda gives it."""

    def get_remaining_time_in_millis(self) -> int: ...


class FeedHandler:
    """``run`` runs a coroutine on the loop of this process; ``settle(seconds)`` waits for what handling left to the
    background, which would stand still between calls."""

    def __init__(self, feed: Feed, parse: Parse, run: Run, settle: Settle, metrics: Metrics = NO_METRICS) -> None:
        self._feed = feed
        self._parse = parse
        self._run = run
        self._settle = settle
        self._metrics = metrics

    def __call__(self, event: dict[str, Any], context: Any = None) -> PartialItemFailureResponse:
        records = event.get("Records", [])
        seconds = _LONGEST if context is None else _seconds(context)
        failures = self._run(self._handle_all(records, seconds))
        if failed := sum(error is not None for error in failures):
            self._metrics.count(names.FAILED_RECORDS, failed)
        errors = {id(record): error for record, error in zip(records, failures, strict=True)}

        def outcome(record: DynamoDBRecord) -> None:
            error = errors[id(record.raw_event)]
            if error is not None:
                raise error

        processor = BatchProcessor(EventType.DynamoDBStreams, raise_on_entire_batch_failure=False)
        return process_partial_response(event=event, record_handler=outcome, processor=processor, context=context)

    async def _handle_all(self, records: Sequence[Mapping[str, Any]], seconds: float) -> list[Exception | None]:
        """What became of each, within ``seconds``."""
        ends = asyncio.get_running_loop().time() + seconds
        gate = asyncio.Semaphore(_AT_ONCE)
        tasks = [asyncio.ensure_future(self._handle(record, gate)) for record in records]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        if not await self._settle(max(ends - asyncio.get_running_loop().time(), 0.1)):
            log.warning("Work behind %d records goes on with their deadlines", len(records))
        return [TimeoutError("not done in time") if task.cancelled() else task.result() for task in tasks]

    async def _handle(self, record: Mapping[str, Any], gate: asyncio.Semaphore) -> Exception | None:
        async with gate:
            try:
                parsed = self._parse(record)
                if parsed is not None:
                    await self._feed.handle(parsed)
            except Exception as error:
                number = record.get("dynamodb", {}).get("SequenceNumber")
                log.warning("Record %s of the stream of commits failed", number, exc_info=error)
                return error
        return None


def _seconds(context: Context) -> float:
    return max(context.get_remaining_time_in_millis() / 1_000 - _TO_ANSWER, 0.5)
