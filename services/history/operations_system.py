"""Operations that ask about the engine: its task queues, its version."""

from importlib.metadata import PackageNotFoundError, version

from stepwell.api import requests as r
from stepwell.api.enums import TaskQueueKind

from ..matching.service import QueueName
from .engine_parts import EngineParts


class SystemOperations(EngineParts):
    """For operators."""

    async def describe_task_queue(self, request: r.DescribeTaskQueueRequest) -> r.DescribeTaskQueueResponse:
        return self._describer.task_queue(request)

    async def get_task_sources(self, request: r.GetTaskSourcesRequest) -> r.GetTaskSourcesResponse:
        self._check_serving()
        sources = self._task_sources
        if sources is None:
            return r.GetTaskSourcesResponse()
        name = QueueName(request.namespace, request.task_queue, TaskQueueKind.WORKFLOW)
        return r.GetTaskSourcesResponse(
            workflow_queues=tuple(await sources(name)),
            activity_queues=tuple(await sources(name._replace(kind=TaskQueueKind.ACTIVITY))),
        )

    async def get_system_info(self, request: r.GetSystemInfoRequest) -> r.GetSystemInfoResponse:
        settings = self._settings
        return r.GetSystemInfoResponse(
            server_version=settings.server_version or _installed_version(),
            database=settings.database,
            default_retention=settings.default_retention,
        )


def _installed_version() -> str:
    try:
        return version("stepwell-server")
    except PackageNotFoundError:
        return "unknown"
