"""What is asked across workflows: lists."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation


async def list_workflows(engine: Engine, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse:
    validation.list_workflows(request)
    return await engine.list_workflows(request)
