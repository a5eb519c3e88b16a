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
    return FeedHandler(feed_of(process.parts, process.engine), parse, process.run, process.engine.settle)


@cache
def _handler() -> Callable[[Event, Any], Any]:
    return handler_of(this_process())


def handler(event: Event, context: Any) -> Any:
    return _handler()(event, context)
