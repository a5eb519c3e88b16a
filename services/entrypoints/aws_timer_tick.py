"""The function that is called once a minute: hands the deadlines of the next minutes to the delay queue, and with every
tenth call deletes blobs that no run needs.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from ..timer_sweeper.lambda_handler import tick_handler
from ..timer_sweeper.minute_tick import MinuteTick
from .aws_process import FunctionProcess, this_process
from .blob_collecting import collect_some

Event = dict[str, Any]

COLLECTS_EVERY = 10
"""Minutes."""

COLLECTS_SECONDS = 5.0


def handler_of(process: FunctionProcess) -> Callable[[Event, Any], Event]:
    parts = process.parts
    tick = tick_handler(MinuteTick(parts.rows, parts.leases, parts.delays, parts.clock, parts.layouts), process.run)

    def handler(event: Event, context: Any) -> Event:
        report = tick(event, context)
        if parts.clock.now().minute % COLLECTS_EVERY == 0 and not report["behind_seconds"]:
            if deleted := process.run(collect_some(parts.backend, COLLECTS_SECONDS)):
                report["collected"] = deleted
        return report

    return parts.telemetry.observed("timer-tick", handler)


@cache
def _handler() -> Callable[[Event, Any], Event]:
    return handler_of(this_process(signs_tokens=False))


def handler(event: Event, context: Any) -> Event:
    return _handler()(event, context)
