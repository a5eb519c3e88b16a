"""What is asked of the engine itself: its version and storage, its task queues."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation


async def describe_task_queue(engine: Engine, request: r.DescribeTaskQueueRequest) -> r.DescribeTaskQueueResponse:
    validation.describe_task_queue(request)
    return await engine.describe_task_queue(request)


async def list_workers(engine: Engine, request: r.ListWorkersRequest) -> r.ListWorkersResponse:
    validation.list_workers(request)
    return await engine.list_workers(request)


async def get_task_sources(engine: Engine, request: r.GetTaskSourcesRequest) -> r.GetTaskSourcesResponse:
    validation.get_task_sources(request)
    return await engine.get_task_sources(request)


async def get_system_info(engine: Engine, request: r.GetSystemInfoRequest) -> r.GetSystemInfoResponse:
    validation.get_system_info(request)
    return await engine.get_system_info(request)
