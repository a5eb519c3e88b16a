"""The function on the delay queue: fires deadlines that are due, and hands on what they owe, since they are what
brings runs on when the feed does not.
"""

from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any

from ..timer_sweeper.due_messages import DueMessages
from ..timer_sweeper.lambda_handler import timers_handler
from ..timer_sweeper.ports import lag_recorder
from .aws_parts import fire_of
from .aws_process import FunctionProcess, this_process

Event = dict[str, Any]

SETTLE_SECONDS = 10.0


def handler_of(process: FunctionProcess) -> Callable[[Event, Any], Any]:
    parts = process.parts
    metrics = parts.telemetry.metrics
    fire = fire_of(process.engine)
    messages = DueMessages(parts.rows, parts.delays, parts.clock, fire, lag_recorder(metrics))
    handle = timers_handler(messages, lambda work: process.run(_settled(process, work)), metrics)
    return parts.telemetry.observed("timers", handle)


async def _settled(process: FunctionProcess, work: Coroutine[Any, Any, Any]) -> Any:
    """A firing ends with what it owes to other workflows, which would stand still between calls."""
    try:
        return await work
    finally:
        await process.engine.settle(SETTLE_SECONDS)


@cache
def _handler() -> Callable[[Event, Any], Any]:
    return handler_of(this_process(hands_on=True))


def handler(event: Event, context: Any) -> Any:
    return _handler()(event, context)
