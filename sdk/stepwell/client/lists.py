"""Lists and counts of executions, over all pages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ..api import operations as op
from ..api.enums import WorkflowExecutionStatus
from ..api.operations import Operation
from ..api.requests import (
    CountSchedulesRequest,
    CountSchedulesResponse,
    CountWorkflowsRequest,
    CountWorkflowsResponse,
    ListWorkflowsRequest,
)
from ..converter import DataConverter
from .executions import WorkflowExecution

Req = TypeVar("Req")
Resp = TypeVar("Resp")


class Calls(Protocol):
    """Whatever carries an operation out."""

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp: ...


@dataclass(frozen=True)
class WorkflowExecutionCountAggregationGroup:
    """How many executions, or schedules, have a value of the attribute of GROUP BY."""

    count: int
    group_values: Sequence[str | None]
    """One value; None for those that do not have the attribute."""


@dataclass(frozen=True)
class WorkflowExecutionCount:
    """How many executions a query finds."""

    count: int
    groups: Sequence[WorkflowExecutionCountAggregationGroup] = ()
    """Of a query with GROUP BY, most executions first."""


async def listed(
    engine: Calls, converter: DataConverter, request: ListWorkflowsRequest, limit: int | None
) -> AsyncIterator[WorkflowExecution]:
    """A page may be empty and not be the last one."""
    token, given = request.next_page_token, 0
    while limit is None or given < limit:
        response = await engine.call(op.LIST_WORKFLOWS, _behind(request, token))
        for info in response.executions:
            if limit is not None and given >= limit:
                return
            given += 1
            yield WorkflowExecution(info, converter)
        token = response.next_page_token
        if not token:
            return


def _behind(request: ListWorkflowsRequest, token: bytes) -> ListWorkflowsRequest:
    return ListWorkflowsRequest(
        namespace=request.namespace,
        status=request.status,
        workflow_type=request.workflow_type,
        page_size=request.page_size,
        next_page_token=token,
        query=request.query,
    )


@dataclass(frozen=True)
class ScheduleCount:
    """How many schedules a query finds."""

    count: int
    groups: Sequence[WorkflowExecutionCountAggregationGroup] = ()
    """Of a query with GROUP BY, most schedules first."""


async def counted(engine: Calls, namespace: str, query: str) -> WorkflowExecutionCount:
    async def page(token: bytes) -> CountWorkflowsResponse:
        request = CountWorkflowsRequest(namespace=namespace, query=query, next_page_token=token)
        return await engine.call(op.COUNT_WORKFLOWS, request)

    return WorkflowExecutionCount(*await _all_counted(page))


async def schedules_counted(engine: Calls, namespace: str, query: str) -> ScheduleCount:
    async def page(token: bytes) -> CountSchedulesResponse:
        request = CountSchedulesRequest(namespace=namespace, query=query, next_page_token=token)
        return await engine.call(op.COUNT_SCHEDULES, request)

    return ScheduleCount(*await _all_counted(page))


async def _all_counted(
    page: Callable[[bytes], Awaitable[CountWorkflowsResponse | CountSchedulesResponse]],
) -> tuple[int, tuple[WorkflowExecutionCountAggregationGroup, ...]]:
    """Asks until all are counted."""
    total, groups, token = 0, dict[str | None, int](), b""
    while True:
        response = await page(token)
        total += response.count
        for group in response.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        token = response.next_page_token
        if not token:
            break
    in_order = sorted(groups.items(), key=lambda group: (-group[1], group[0] or ""))
    return total, tuple([WorkflowExecutionCountAggregationGroup(count, (value,)) for value, count in in_order])


def list_request(
    namespace: str,
    query: str | None,
    status: WorkflowExecutionStatus | None,
    workflow_type: str,
    limit: int | None,
    page_size: int,
    next_page_token: bytes | None,
) -> ListWorkflowsRequest:
    """As arguments of the client say it. Raises ``ValueError``."""
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; use 1 or more, or leave it out to have all")
    return ListWorkflowsRequest(
        namespace=namespace,
        status=status,
        workflow_type=workflow_type,
        page_size=page_size,
        next_page_token=next_page_token or b"",
        query=query or "",
    )
