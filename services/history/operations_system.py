"""Operations that ask about the engine: its task queues, its version."""

from collections.abc import Awaitable
from importlib.metadata import PackageNotFoundError, version
from typing import TypeVar

import msgspec
from stepwell.api import requests as r
from stepwell.api.enums import TaskQueueKind
from stepwell.api.errors import Unavailable

from ..matching.ports import QueuesUnavailable
from ..matching.service import QueueName
from .engine_parts import EngineParts
from .workers import page_of, place_of

T = TypeVar("T")


class SystemOperations(EngineParts):
    """For operators."""

    async def describe_task_queue(self, request: r.DescribeTaskQueueRequest) -> r.DescribeTaskQueueResponse:
        """With what waits in message queues outside this process, and who polls elsewhere."""
        described = await self._describer.task_queue(request)
        if self._queue_backlog is None:
            return described
        outside = await _asked(self._queue_backlog(QueueName(request.namespace, request.task_queue, request.kind)))
        return msgspec.structs.replace(described, backlog_count=described.backlog_count + outside)

    async def list_workers(self, request: r.ListWorkersRequest) -> r.ListWorkersResponse:
        self._check_serving()
        place_of(request.next_page_token)
        return page_of(request, await self._pollers.workers(request.namespace, request.task_queue))

    async def get_task_sources(self, request: r.GetTaskSourcesRequest) -> r.GetTaskSourcesResponse:
        self._check_serving()
        sources = self._task_sources
        name = QueueName(request.namespace, request.task_queue, TaskQueueKind.WORKFLOW)
        if request.worker is not None and (sources is not None or request.called_by_queue):
            for kind in TaskQueueKind:
                await self._pollers.note(name._replace(kind=kind), request.worker, called=request.called_by_queue)
        if sources is None:
            return r.GetTaskSourcesResponse()
        return r.GetTaskSourcesResponse(
            workflow_queues=tuple(await _asked(sources(name))),
            activity_queues=tuple(await _asked(sources(name._replace(kind=TaskQueueKind.ACTIVITY)))),
        )

    async def get_system_info(self, request: r.GetSystemInfoRequest) -> r.GetSystemInfoResponse:
        settings = self._settings
        return r.GetSystemInfoResponse(
            server_version=settings.server_version or _installed_version(),
            database=settings.database,
            default_retention=settings.default_retention,
        )


async def _asked(question: Awaitable[T]) -> T:
    try:
        return await question
    except QueuesUnavailable as error:
        raise Unavailable(f"the task queues cannot be asked now ({error}); call again in a moment") from error


def _installed_version() -> str:
    try:
        return version("stepwell-server")
    except PackageNotFoundError:
        return "unknown"
