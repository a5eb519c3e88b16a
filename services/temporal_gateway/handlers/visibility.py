"""Runs found by the filter language: lists, scans, counts."""

import re
from collections.abc import Mapping

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.limits import MAX_LIST_PAGE
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..execution_info import to_info
from ..gateway import Call, Gateway, Handlers
from ..search import query_of, to_group_value
from .operator import SYSTEM_ATTRIBUTES

_BY_STATUS = re.compile(r"\bGROUP\s+BY\s+`?ExecutionStatus`?\s*$", re.IGNORECASE)


async def list_workflow_executions(
    gateway: Gateway, request: pb.ListWorkflowExecutionsRequest, call: Call
) -> pb.ListWorkflowExecutionsResponse:
    asked = r.ListWorkflowsRequest(
        namespace=request.namespace,
        page_size=page_size(request.page_size),
        next_page_token=request.next_page_token,
        query=query_of(request.query),
    )
    answer = await gateway.call(o.LIST_WORKFLOWS, asked)
    executions = [to_info(info) for info in answer.executions]
    return pb.ListWorkflowExecutionsResponse(executions=executions, next_page_token=answer.next_page_token)


async def scan_workflow_executions(
    gateway: Gateway, request: pb.ScanWorkflowExecutionsRequest, call: Call
) -> pb.ScanWorkflowExecutionsResponse:
    asked = r.ScanWorkflowsRequest(
        namespace=request.namespace,
        page_size=page_size(request.page_size),
        next_page_token=request.next_page_token,
        query=query_of(request.query),
    )
    answer = await gateway.call(o.SCAN_WORKFLOWS, asked)
    executions = [to_info(info) for info in answer.executions]
    return pb.ScanWorkflowExecutionsResponse(executions=executions, next_page_token=answer.next_page_token)


async def list_archived_workflow_executions(
    gateway: Gateway, request: pb.ListArchivedWorkflowExecutionsRequest, call: Call
) -> pb.ListArchivedWorkflowExecutionsResponse:
    asked = r.ListArchivedWorkflowsRequest(
        namespace=request.namespace,
        page_size=page_size(request.page_size),
        next_page_token=request.next_page_token,
        query=query_of(request.query),
    )
    answer = await gateway.call(o.LIST_ARCHIVED_WORKFLOWS, asked)
    executions = [to_info(info) for info in answer.executions]
    return pb.ListArchivedWorkflowExecutionsResponse(executions=executions, next_page_token=answer.next_page_token)


async def count_workflow_executions(
    gateway: Gateway, request: pb.CountWorkflowExecutionsRequest, call: Call
) -> pb.CountWorkflowExecutionsResponse:
    """Theirs have no pages: what is counted in parts is added up here."""
    count, groups, token = 0, dict[str | None, int](), b""
    while True:
        asked = r.CountWorkflowsRequest(
            namespace=request.namespace, query=query_of(request.query), next_page_token=token
        )
        answer = await gateway.call(o.COUNT_WORKFLOWS, asked)
        count += answer.count
        for group in answer.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        token = answer.next_page_token
        if not token:
            groups = their_groups(request.query, groups)
            return pb.CountWorkflowExecutionsResponse(count=count, groups=_groups(groups))


def page_size(asked: int) -> int:
    return min(asked, MAX_LIST_PAGE)


def their_groups(query: str, groups: Mapping[str | None, int]) -> dict[str | None, int]:
    if not _BY_STATUS.search(query):
        return dict(groups)
    return {_status(value): counted for value, counted in groups.items()}


def _status(value: str | None) -> str | None:
    """Theirs are written in another way: ``ContinuedAsNew``."""
    return None if value is None else "".join(part.title() for part in value.split("_"))


def _groups(groups: Mapping[str | None, int]) -> list[pb.CountWorkflowExecutionsResponse.AggregationGroup]:
    return [
        pb.CountWorkflowExecutionsResponse.AggregationGroup(group_values=[to_group_value(value)], count=count)
        for value, count in groups.items()
    ]


async def get_search_attributes(
    gateway: Gateway, request: pb.GetSearchAttributesRequest, call: Call
) -> pb.GetSearchAttributesResponse:
    """Those of the system: the others are of a namespace, and this names none."""
    return pb.GetSearchAttributesResponse(keys=SYSTEM_ATTRIBUTES)


HANDLERS: Handlers = {
    "ListWorkflowExecutions": list_workflow_executions,
    "ScanWorkflowExecutions": scan_workflow_executions,
    "ListArchivedWorkflowExecutions": list_archived_workflow_executions,
    "CountWorkflowExecutions": count_workflow_executions,
    "GetSearchAttributes": get_search_attributes,
}
