"""Namespaces: registered, described, changed, let go."""

from stepwell.api import requests as r
from stepwell.api.enums import WorkflowExecutionStatus

from ...common.spaces import of_activities
from ...history.engine import Engine
from .. import validation_namespaces as validation

_OPEN = (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.PAUSED)


async def register_namespace(engine: Engine, request: r.RegisterNamespaceRequest) -> r.RegisterNamespaceResponse:
    validation.register_namespace(request)
    return await engine.namespaces.register(request)


async def describe_namespace(engine: Engine, request: r.DescribeNamespaceRequest) -> r.DescribeNamespaceResponse:
    validation.name(request.namespace)
    return await engine.namespaces.describe(request)


async def update_namespace(engine: Engine, request: r.UpdateNamespaceRequest) -> r.UpdateNamespaceResponse:
    validation.update_namespace(request)
    return await engine.namespaces.update(request)


async def deprecate_namespace(engine: Engine, request: r.DeprecateNamespaceRequest) -> r.DeprecateNamespaceResponse:
    validation.name(request.namespace)
    return await engine.namespaces.deprecate(request)


async def delete_namespace(engine: Engine, request: r.DeleteNamespaceRequest) -> r.DeleteNamespaceResponse:
    validation.delete_namespace(request)

    async def is_used(namespace: str) -> bool:
        for space in (namespace, of_activities(namespace)):
            for status in _OPEN:
                request = r.ListWorkflowsRequest(namespace=space, status=status, page_size=1)
                if (await engine.list_workflows(request)).executions:
                    return True
        return False

    return await engine.namespaces.delete(request, is_used)


async def list_namespaces(engine: Engine, request: r.ListNamespacesRequest) -> r.ListNamespacesResponse:
    after, limit = validation.list_namespaces(request)
    found = await engine.namespaces.list(after, limit + 1)
    more = found[limit - 1].name.encode() if len(found) > limit else b""
    return r.ListNamespacesResponse(namespaces=tuple(found[:limit]), next_page_token=more)
