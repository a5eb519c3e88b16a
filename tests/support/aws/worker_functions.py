"""Workers that are functions, as Lambda runs them: several processes at once, each called with one batch at a time, by
mappings from a task queue's two queues.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
from stepwell.transport import Transport
from stepwell.worker import LambdaHandler

from stepwell_server.adapters.aws.names import Names, TaskKind
from tests.support.aws.event_pump import QueuePump
from tests.support.aws.lambda_functions import Functions

_PAUSE = 0.05
_KINDS: tuple[TaskKind, ...] = ("wft", "act")
OpenTransport = Callable[[], Any]


@dataclass
class Context:
    ends: float

    def get_remaining_time_in_millis(self) -> int:
        return int((self.ends - time.monotonic()) * 1000)


class WorkerFunctions:
    """Made by :func:`worker_functions`. ``timeout``: seconds that a function has for one call."""

    def __init__(
        self, functions: Functions, make: Callable[[OpenTransport], LambdaHandler], urls: list[str], timeout: float
    ) -> None:
        self._functions = functions
        self._make = make
        self.urls = urls
        self._timeout = timeout
        self._stop = threading.Event()
        self.failed: list[Any] = []
        self.overdue: list[float] = []
        """Seconds by which calls outlasted the function: there, Lambda would have killed it."""
        self.calls = 0

    def run(self, seed: int) -> None:
        handler = self._make(self._open)

        def timed(event: Any, context: Context) -> Any:
            self.calls += 1
            answer = handler(event, context)
            if time.monotonic() > context.ends:
                self.overdue.append(time.monotonic() - context.ends)
            return answer

        sqs = boto3.client("sqs")
        rng = random.Random(seed)
        pumps = [
            QueuePump(
                sqs,
                url,
                timed,
                rng,
                tries=1_000,
                twice=0.3,
                context=lambda: Context(time.monotonic() + self._timeout),
            )
            for url in self.urls
        ]
        while not self._stop.is_set():
            if not sum(pump.run() for pump in pumps):
                self._stop.wait(_PAUSE)
        for pump in pumps:
            self.failed += pump.failed
        handler.close()
        sqs.close()

    def stop(self) -> None:
        self._stop.set()

    async def _open(self) -> Transport:
        return self._functions.transport()


@contextmanager
def worker_functions(
    functions: Functions,
    names: Names,
    task_queue: str,
    make: Callable[[OpenTransport], LambdaHandler],
    *,
    processes: int = 2,
    timeout: float = 60.0,
    hidden_for: int = 60,
) -> Iterator[WorkerFunctions]:
    """``hidden_for``: seconds after which a message that failed is visible again; Lambda wants at least the timeout."""
    sqs = boto3.client("sqs")
    urls = [
        sqs.create_queue(
            QueueName=names.task_queue("default", task_queue, kind), Attributes={"VisibilityTimeout": str(hidden_for)}
        )["QueueUrl"]
        for kind in _KINDS
    ]
    sqs.close()
    workers = WorkerFunctions(functions, make, urls, timeout)
    threads = [threading.Thread(target=workers.run, args=(seed,), name=f"worker-{seed}") for seed in range(processes)]
    for thread in threads:
        thread.start()
    try:
        yield workers
    finally:
        workers.stop()
        for thread in threads:
            thread.join()
    assert (workers.failed, workers.overdue) == ([], [])
