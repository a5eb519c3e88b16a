"""The function on the stream of commits: hands on what they owe, and projects what lists show."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ..adapters.aws.stream_records import parse
from ..history.lambda_handler import FeedHandler
from .aws_parts import feed_of
from .aws_process import FunctionProcess, this_process

Event = dict[str, Any]


def handler_of(process: FunctionProcess) -> Callable[[Event, Any], Any]:
    feed, telemetry = feed_of(process.parts, process.engine), process.parts.telemetry
    handle = FeedHandler(feed, parse, process.run, process.engine.settle, telemetry.metrics)
    return telemetry.observed("feed", handle)


@cache
def _handler() -> Callable[[Event, Any], Any]:
    return handler_of(this_process())


def handler(event: Event, context: Any) -> Any:
    return _handler()(event, context)
