"""A place to try field cases in: one engine on a file, clients of it, and workers that cache runs or replay each task.

Black box: everything goes through the public SDK, or through the API's own records where a case needs what the SDK
would not send.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.events import HistoryEvent
from stepwell.api.payloads import Payload
from stepwell.client import Client, WorkflowHandle
from stepwell.worker import Worker

from tests.support.api_server import served_api

QUEUE = "cases"
ATTEMPT = timedelta(seconds=30)
"""A start-to-close timeout that no attempt of a case reaches."""

T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """How a case is run."""

    over_http: bool
    cached: bool
    continued: bool = False
    """Workflows continue as new at every turn at which they would wait: tests/conformance."""
    aws: bool = False
    """Over HTTP, the engine on the emulated AWS: tests/conformance."""

    def __str__(self) -> str:
        where = "aws" if self.aws else "http" if self.over_http else "in-process"
        way = f"{where}-{'cached' if self.cached else 'replayed'}"
        return f"{way}-continued" if self.continued else way


IN_PROCESS = (Setting(False, True), Setting(False, False))
EVERYWHERE = (*IN_PROCESS, Setting(True, True))


class Case:
    """The engine's address, one client, and workers made to the setting."""

    def __init__(self, setting: Setting, address: str, client: Client, task_queue: str = QUEUE) -> None:
        self.setting = setting
        self.address = address
        self.client = client
        self.task_queue = task_queue

    def worker(self, workflows: Sequence[Any] = (), activities: Sequence[Any] = (), **options: Any) -> Worker:
        """With the cache off (``max_cached_workflows=0``) every workflow task is a full replay."""
        options = {
            "task_queue": self.task_queue,
            "max_cached_workflows": 1000 if self.setting.cached else 0,
            "graceful_shutdown_timeout": timedelta(seconds=2),
        } | options
        return Worker(self.client, workflows=workflows, activities=activities, **options)

    async def start(self, workflow: Any, *args: Any, id: str, **options: Any) -> WorkflowHandle[Any]:
        return await self.client.start_workflow(workflow, args=args, id=id, task_queue=self.task_queue, **options)

    async def start_by_request(self, workflow_type: str, workflow_id: str, **more: Any) -> r.StartWorkflowResponse:
        """A start as the API takes it, with a request id or bytes of the caller's. Raises ``ApiError``."""
        request = r.StartWorkflowRequest(
            workflow_id=workflow_id, workflow_type=workflow_type, task_queue=self.task_queue, **more
        )
        return await self.client.transport.call(op.START_WORKFLOW, request)

    async def signal_by_request(self, workflow_id: str, name: str, *payloads: Payload) -> None:
        """A signal with any payload, as another program may send it. Raises ``ApiError``."""
        execution = WorkflowExecution(workflow_id=workflow_id)
        request = r.SignalWorkflowRequest(execution=execution, signal_name=name, input=payloads)
        await self.client.transport.call(op.SIGNAL_WORKFLOW, request)

    async def answer(self, token: bytes, value: str) -> r.ActivityOutcomeReply:
        """Completes an activity attempt by hand, with its token."""
        outcome = r.ActivityCompleted(task_token=token, result=(json_payload(f'"{value}"'),))
        request = r.RespondActivityTasksRequest(worker=r.WorkerInfo(identity="by hand"), outcomes=(outcome,))
        return (await self.client.transport.call(op.RESPOND_ACTIVITY_TASKS, request)).replies[0]


def json_payload(text: str) -> Payload:
    return Payload(metadata={"encoding": "json/plain"}, data=text.encode())


@asynccontextmanager
async def open_case(setting: Setting, folder: Path) -> AsyncIterator[Case]:
    """An engine on a new file, and a client of it."""
    path = folder / "case.db"
    if setting.over_http:
        async with served_api(str(path)) as api, await Client.connect(api.address) as client:
            yield Case(setting, api.address, client)
    else:
        address = f"sqlite:///{path}"
        async with await Client.connect(address) as client:
            yield Case(setting, address, client)


async def until(condition: Callable[[], Awaitable[T | None]], seconds: float = 20.0) -> T:
    """What ``condition`` returns once that is true; asked again and again. TimeoutError when it stays false."""
    async with asyncio.timeout(seconds):
        while True:
            found = await condition()
            if found:
                return found
            await asyncio.sleep(0.01)


async def events_of(handle: WorkflowHandle[Any]) -> Sequence[HistoryEvent]:
    return (await handle.fetch_history()).events


def attributes(events: Sequence[HistoryEvent], kind: type[T]) -> list[T]:
    """Of the events of one kind, in order."""
    return [event.attributes for event in events if isinstance(event.attributes, kind)]


def types(events: Sequence[HistoryEvent]) -> list[str]:
    return [event.event_type for event in events]
