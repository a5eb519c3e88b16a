"""What is asked across workflows: lists and counts."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation


async def list_workflows(engine: Engine, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse:
    validation.list_workflows(request)
    return await engine.list_workflows(request)


async def scan_workflows(engine: Engine, request: r.ScanWorkflowsRequest) -> r.ScanWorkflowsResponse:
    validation.scan_workflows(request)
    return await engine.scan_workflows(request)


async def list_archived_workflows(
    engine: Engine, request: r.ListArchivedWorkflowsRequest
) -> r.ListArchivedWorkflowsResponse:
    validation.list_archived_workflows(request)
    return await engine.list_archived_workflows(request)


async def count_workflows(engine: Engine, request: r.CountWorkflowsRequest) -> r.CountWorkflowsResponse:
    validation.count_workflows(request)
    return await engine.count_workflows(request)
