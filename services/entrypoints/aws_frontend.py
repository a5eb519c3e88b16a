"""The function behind the HTTP API."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ..frontend.lambda_handler import api_handler
from .aws_process import FunctionProcess, this_process

Event = dict[str, Any]


def handler_of(process: FunctionProcess) -> Callable[[Event, Any], Event]:
    telemetry = process.parts.telemetry
    return telemetry.observed("frontend", api_handler(process.engine, process.run, telemetry.metrics))


@cache
def _handler() -> Callable[[Event, Any], Event]:
    return handler_of(this_process())


def handler(event: Event, context: Any) -> Event:
    return _handler()(event, context)
