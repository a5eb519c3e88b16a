"""Lists and counts of runs: a query of the filter language, its attributes, and pages of what the store finds."""

import hashlib
from datetime import UTC, datetime, timedelta

from stepwell.api import limits
from stepwell.api.errors import InvalidArgument
from stepwell.api.requests import (
    CountGroup,
    CountWorkflowsRequest,
    CountWorkflowsResponse,
    ListWorkflowsRequest,
    ListWorkflowsResponse,
    ScanWorkflowsRequest,
    ScanWorkflowsResponse,
)

from ..common.spaces import has_activities
from ..visibility.attributes import OF_ACTIVITIES, STATUS, SYSTEM, WORKFLOW_TYPE, Value
from ..visibility.filters import Compare, Filter, Operator, Query, both
from ..visibility.pages import MAX_GROUPS, Position, TooManyGroups
from ..visibility.query import parse
from .attribute_types import AttributeTypes
from .executions import unavailable
from .ports import StoreUnavailable, VisibilityStore
from .tokens import ListToken, TokenSigner

_PAGE = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TOKEN = "next_page_token"


class Listing:
    """Raises InvalidArgument for a query that is not right, Unavailable when the store cannot serve."""

    def __init__(self, visibility: VisibilityStore, types: AttributeTypes, signer: TokenSigner) -> None:
        self._visibility = visibility
        self._types = types
        self._signer = signer

    async def list_workflows(self, request: ListWorkflowsRequest) -> ListWorkflowsResponse:
        asked = _hash("list", request.query, request.status or "", request.workflow_type)
        after = self._after(request.next_page_token, request.namespace, asked)
        try:
            query = await self._query(request.namespace, request.query)
            query = Query(both(query.filter, _plain(request)), query.order)
            page = await self._visibility.search(
                request.namespace, query, after=after, limit=min(request.page_size or _PAGE, limits.MAX_LIST_PAGE)
            )
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return ListWorkflowsResponse(
            executions=tuple(page.executions), next_page_token=self._token(request.namespace, page.reached, asked)
        )

    async def scan_workflows(self, request: ScanWorkflowsRequest) -> ScanWorkflowsResponse:
        asked = _hash("scan", request.query)
        after = self._after(request.next_page_token, request.namespace, asked)
        try:
            query = await self._query(request.namespace, request.query)
            if query.order is not None:
                raise InvalidArgument(
                    "query has ORDER BY, but a scan comes in no order; leave it out, or list", field="query"
                )
            limit = min(request.page_size or limits.MAX_LIST_PAGE, limits.MAX_LIST_PAGE)
            page = await self._visibility.scan(request.namespace, query.filter, after=after, limit=limit)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return ScanWorkflowsResponse(
            executions=tuple(page.executions), next_page_token=self._token(request.namespace, page.reached, asked)
        )

    async def count_workflows(self, request: CountWorkflowsRequest) -> CountWorkflowsResponse:
        asked = _hash("count", request.query)
        after = self._after(request.next_page_token, request.namespace, asked)
        try:
            query = await self._query(request.namespace, request.query, counts=True)
            counted = await self._visibility.count(request.namespace, query, after=after)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except TooManyGroups:
            raise InvalidArgument(
                f"GROUP BY would have more than {MAX_GROUPS} groups; group by an attribute of fewer values, or count "
                "with a filter",
                field="query",
            ) from None
        return CountWorkflowsResponse(
            count=counted.count,
            groups=tuple(CountGroup(value=group.value, count=group.count) for group in counted.groups),
            next_page_token=self._token(request.namespace, counted.reached, asked),
        )

    async def _query(self, namespace: str, text: str, *, counts: bool = False) -> Query:
        if not text:
            return Query()
        types = await self._types.known(namespace)
        own = OF_ACTIVITIES if has_activities(namespace) else SYSTEM
        return parse(text, types, counts=counts, ordered_by=self._visibility.ordered_by, own=own)

    def _after(self, token: bytes, namespace: str, asked: bytes) -> Position | None:
        if not token:
            return None
        opened = self._signer.open_as(token, ListToken, namespace, _TOKEN)
        if opened.query not in (b"", asked):
            raise InvalidArgument(
                f"{_TOKEN} belongs to another list; send it with the query that it came from, or begin without it",
                field=_TOKEN,
            )
        value: Value | None = opened.value
        if opened.timed and isinstance(opened.value, int):
            value = _EPOCH + opened.value * _MICROSECOND
        return Position(opened.start_time, opened.run_id, value)

    def _token(self, namespace: str, reached: Position | None, asked: bytes) -> bytes:
        if reached is None:
            return b""
        start_time, run_id, value = reached
        if isinstance(value, datetime):
            microseconds = (value - _EPOCH) // _MICROSECOND
            return self._signer.seal(ListToken(namespace, start_time, run_id, microseconds, asked, True))
        assert not isinstance(value, tuple)
        return self._signer.seal(ListToken(namespace, start_time, run_id, value, asked))


def _plain(request: ListWorkflowsRequest) -> Filter:
    """The filters that are fields of the request."""
    filter_: Filter = Query().filter
    if request.status is not None:
        filter_ = both(filter_, Compare(STATUS, Operator.EQ, request.status.value))
    if request.workflow_type:
        filter_ = both(filter_, Compare(WORKFLOW_TYPE, Operator.EQ, request.workflow_type))
    return filter_


def _hash(*parts: str) -> bytes:
    return hashlib.blake2b("\0".join(parts).encode(errors="replace"), digest_size=8).digest()
