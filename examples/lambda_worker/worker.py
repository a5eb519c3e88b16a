"""The worker: the same workflows and activities that a process with ``Worker(…)`` would have."""

from collections.abc import Awaitable, Callable

from stepwell.transport import Transport
from stepwell.worker import LambdaHandler, lambda_handler

from .trial import TASK_QUEUE, TrialMonth, bill, send_welcome


def trial_worker(address: str | Callable[[], Awaitable[Transport]]) -> LambdaHandler:
    return lambda_handler(
        address,
        task_queue=TASK_QUEUE,
        workflows=[TrialMonth],
        activities=[send_welcome, bill],
    )
