"""The two functions of the idle feeder: once a minute, and on due messages of the delay queue.

They wire nothing: an entry point gives them what they use, and ``run``, which runs a coroutine on the loop of the
process to its end.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from ..common import metric_names as names
from ..common.metrics import NO_METRICS, Metrics
from .due_messages import DueMessages, Postponed
from .minute_tick import MinuteTick

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
Event = dict[str, Any]


class TickFailed(Exception):
    """Some partitions were left to the next tick; raised so that the platform counts the call as failed."""


def tick_handler(tick: MinuteTick, run: Run[Any], seconds: float = 45.0) -> Callable[[Event, Any], Event]:
    """``seconds``: less than the function's time limit."""

    def handler(event: Event, context: Any) -> Event:
        report = run(tick.run(seconds))
        if report.failures:
            raise TickFailed(
                f"{len(report.failures)} partitions of the timers are left to the next tick, the first for: "
                f"{report.failures[0]}"
            ) from report.failures[0]
        return {"sent": report.sent, "swept": report.swept, "behind_seconds": round(report.behind_seconds, 3)}

    return handler


def timers_handler(
    messages: DueMessages, run: Run[Any], metrics: Metrics = NO_METRICS
) -> Callable[[Event, Any], PartialItemFailureResponse]:
    """The event source mapping must report batch item failures."""
    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)

    async def handle_all(records: list[Event]) -> dict[str, BaseException | None]:
        outcomes = await asyncio.gather(*(_handle(messages, record) for record in records), return_exceptions=True)
        return {record["messageId"]: outcome for record, outcome in zip(records, outcomes, strict=True)}

    def handler(event: Event, context: Any) -> PartialItemFailureResponse:
        outcomes = run(handle_all(event["Records"]))
        if failed := sum(each is not None and type(each) is not Postponed for each in outcomes.values()):
            metrics.count(names.FAILED_RECORDS, failed)

        def outcome(record: SQSRecord) -> None:
            failure = outcomes[record.message_id]
            if failure is not None:
                _raise(failure)

        return process_partial_response(event=event, record_handler=outcome, processor=processor, context=context)

    return handler


async def _handle(messages: DueMessages, record: Event) -> None:
    deliveries = int(record["attributes"]["ApproximateReceiveCount"])
    await messages.handle(record["body"], record["receiptHandle"], deliveries, record["messageId"])


def _raise(failure: BaseException) -> NoReturn:
    raise failure
