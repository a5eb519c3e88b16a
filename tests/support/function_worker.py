"""A worker that is a function, an engine that lives for one call at a time, and queues that are lists in memory."""

import asyncio
import itertools
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from stepwell.api.enums import TaskQueueKind
from stepwell.api.requests import GetTaskSourcesResponse
from stepwell.client import Client
from stepwell.worker import LambdaHandler, lambda_handler

from stepwell_server.adapters.embedded import embedded_backend
from tests.unit.sdk.transport.test_queue_fed import Order, World, charge

T = TypeVar("T")
WORKFLOW, ACTIVITY = TaskQueueKind.WORKFLOW.value, TaskQueueKind.ACTIVITY.value
NAMES = {WORKFLOW: "wft", ACTIVITY: "act"}
BASE = "arn:aws:sqs:eu-west-1:123456789012:stepwell-main-00ff00ff00ff00ff"
_numbers = itertools.count(1)


class Engine(World):
    """Fails ``failing`` operations, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(embedded_backend(":memory:"))
        self.asked: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.in_flight = 0
        self.sources: tuple[str, ...] = ()

    async def call(self, operation, request):
        self.asked.append(operation.name)
        self.in_flight += 1
        try:
            if operation.name in self.failing:
                raise self.failing[operation.name]
            if operation.name == "GetTaskSources":
                return GetTaskSourcesResponse(workflow_queues=self.sources)
            if operation.name == "RecordActivityHeartbeat":
                await asyncio.sleep(0.05)  # so that the activity ends first
            return await super().call(operation, request)
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        await self.backend.close()


class Context:
    def __init__(self, seconds: float, request_id: str = "", arn: str = "") -> None:
        self.aws_request_id, self.invoked_function_arn = request_id, arn
        loop = asyncio.new_event_loop()
        self._now = loop.time
        loop.close()
        self._ends = self._now() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int((self._ends - self._now()) * 1000)


def record(kind: str, body: str, message_id: str = "", base: str = BASE) -> dict[str, Any]:
    return {
        "messageId": message_id or f"m{next(_numbers)}",
        "body": body,
        "eventSource": "aws:sqs",
        "eventSourceARN": f"{base}-{NAMES[kind]}-0",
    }


class Function:
    """The handler, and a mapping that calls it with what is in the queues."""

    def __init__(self, context: Any = None, **options: Any) -> None:
        options = {"workflows": [Order], "activities": [charge], **options}
        self.handler: LambdaHandler = lambda_handler(self._open, task_queue="orders", **options)
        assert self.handler({"Records": []}, context) == {"batchItemFailures": []}
        self.client = self.run(self._client())

    async def _open(self) -> Engine:
        self.engine = Engine()
        return self.engine

    async def _client(self) -> Client:
        return Client(self.engine)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        assert self.handler._runner is not None
        return self.handler._runner.run(work)

    def start(self, run: Any = Order.run, argument: Any = 1) -> Any:
        started = self.client.start_workflow(run, argument, id="order-1", task_queue="orders")
        return self.run(started)

    def event(self) -> dict[str, Any]:
        queues = self.engine.queues.by_address
        return {
            "Records": [
                record(kind, body, f"{kind}/{handle}")
                for kind, queue in queues.items()
                for handle, body in queue.messages.items()
            ]
        }

    def once(self, context: Any = None) -> list[str]:
        """Failed ones stay."""
        event = self.event()
        answer = self.handler(event, context)
        assert self.engine.in_flight == 0
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        for each in event["Records"]:
            if each["messageId"] not in failed:
                kind, handle = each["messageId"].split("/")
                self.engine.queues.by_address[kind].messages.pop(handle, None)
        return failed

    def all(self) -> int:
        calls = 0
        while self.engine.queues.waiting():
            calls += 1
            assert self.once() == []
            assert calls < 50
        return calls


def made(request: pytest.FixtureRequest, **options: Any) -> Function:
    function = Function(**options)
    request.addfinalizer(function.handler.close)
    return function
