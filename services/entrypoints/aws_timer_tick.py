"""The function that is called once a minute: hands the deadlines of the next minutes to the delay queue."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ..timer_sweeper.lambda_handler import tick_handler
from ..timer_sweeper.minute_tick import MinuteTick
from .aws_process import FunctionProcess, this_process

Event = dict[str, Any]


def handler_of(process: FunctionProcess) -> Callable[[Event, Any], Event]:
    parts = process.parts
    return tick_handler(MinuteTick(parts.rows, parts.leases, parts.delays, parts.clock), process.run)


@cache
def _handler() -> Callable[[Event, Any], Event]:
    return handler_of(this_process())


def handler(event: Event, context: Any) -> Event:
    return _handler()(event, context)
