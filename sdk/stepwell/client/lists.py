"""Lists and counts of executions, over all pages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

from ..api import operations as op
from ..api.limits import MAX_LIST_PAGE
from ..api.operations import Operation
from ..api.requests import (
    CountActivitiesResponse,
    CountSchedulesRequest,
    CountSchedulesResponse,
    CountWorkflowsRequest,
    CountWorkflowsResponse,
    ListArchivedWorkflowsRequest,
    ListArchivedWorkflowsResponse,
    ListWorkflowsRequest,
    ListWorkflowsResponse,
    ScanWorkflowsRequest,
    ScanWorkflowsResponse,
)
from ..converter import DataConverter
from .executions import WorkflowExecution
from .filters import WorkflowFilters, query_of

if TYPE_CHECKING:
    from .outbound import RootOutbound

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


async def _all_of(
    page: Callable[[bytes], Awaitable[ListWorkflowsResponse | ScanWorkflowsResponse | ListArchivedWorkflowsResponse]],
    converter: DataConverter,
    token: bytes,
    limit: int | None,
) -> AsyncIterator[WorkflowExecution]:
    """A page may be empty and not be the last one."""
    given = 0
    while limit is None or given < limit:
        response = await page(token)
        for info in response.executions:
            if limit is not None and given >= limit:
                return
            given += 1
            yield WorkflowExecution(info, converter)
        token = response.next_page_token
        if not token:
            return


def check_limit(limit: int | None) -> None:
    """Raises ``ValueError``."""
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}; use 1 or more, or leave it out to have all")


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

    return WorkflowExecutionCount(*await all_counted(page))


async def schedules_counted(engine: Calls, namespace: str, query: str) -> ScheduleCount:
    async def page(token: bytes) -> CountSchedulesResponse:
        request = CountSchedulesRequest(namespace=namespace, query=query, next_page_token=token)
        return await engine.call(op.COUNT_SCHEDULES, request)

    return ScheduleCount(*await all_counted(page))


async def all_counted(
    page: Callable[[bytes], Awaitable[CountWorkflowsResponse | CountSchedulesResponse | CountActivitiesResponse]],
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


class ListCalls:
    """The methods that a client has for lists and counts of workflows."""

    namespace: str
    data_converter: DataConverter
    _root: "RootOutbound"

    def list_workflows(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        page_size: int = 100,
        next_page_token: bytes | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> AsyncIterator[WorkflowExecution]:
        """Executions of the namespace that a query of the filter language and all filters find; newest start first,
        unless the query has an ORDER BY. ``limit``: at most so many, 1 or more."""
        check_limit(limit)
        asked = query_of(query, **filters)

        async def page(token: bytes) -> ListWorkflowsResponse:
            request = ListWorkflowsRequest(
                namespace=self.namespace, query=asked, page_size=page_size, next_page_token=token
            )
            return await self._root.call(op.LIST_WORKFLOWS, request)

        return _all_of(page, self.data_converter, next_page_token or b"", limit)

    def scan_workflows(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        page_size: int = MAX_LIST_PAGE,
        next_page_token: bytes | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> AsyncIterator[WorkflowExecution]:
        """Executions that a query, without ORDER BY, and all filters find, in the order that costs least: for who goes
        through many. One that closes meanwhile may come twice. ``limit`` as in ``list_workflows``."""
        check_limit(limit)
        asked = query_of(query, **filters)

        async def page(token: bytes) -> ScanWorkflowsResponse:
            request = ScanWorkflowsRequest(
                namespace=self.namespace, query=asked, page_size=page_size, next_page_token=token
            )
            return await self._root.call(op.SCAN_WORKFLOWS, request)

        return _all_of(page, self.data_converter, next_page_token or b"", limit)

    def list_archived_workflows(
        self,
        query: str | None = None,
        *,
        limit: int | None = None,
        page_size: int = 100,
        next_page_token: bytes | None = None,
        **filters: Unpack[WorkflowFilters],
    ) -> AsyncIterator[WorkflowExecution]:
        """Executions in the archive of the namespace that a query, without ORDER BY, and all filters find; newest close
        first. Each call of the API looks at so many and no more: to bound the time of the close saves calls. Their
        histories are read by workflow id and run id. ``limit`` as in ``list_workflows``."""
        check_limit(limit)
        asked = query_of(query, **filters)

        async def page(token: bytes) -> ListArchivedWorkflowsResponse:
            request = ListArchivedWorkflowsRequest(
                namespace=self.namespace, query=asked, page_size=page_size, next_page_token=token
            )
            return await self._root.call(op.LIST_ARCHIVED_WORKFLOWS, request)

        return _all_of(page, self.data_converter, next_page_token or b"", limit)

    async def count_workflows(
        self, query: str | None = None, **filters: Unpack[WorkflowFilters]
    ) -> WorkflowExecutionCount:
        """How many executions a query and all filters find, with GROUP BY by the values of one attribute."""
        return await counted(self._root, self.namespace, query_of(query, **filters))
