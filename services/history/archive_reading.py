"""Reads what is archived: histories of runs whose retention is over (OP-08), and lists of archived runs (VI-17).

Theory of operation. A history is read part by part; a page is of one part, so it costs one object however long the
history is. A list goes along the index from the newest close on, or from what the filter says of ``CloseTime``, and
decides the filter run by run; one call looks at so many and no more. Its place is a name in the index: what is archived
later has another one, so pages neither repeat nor leave out a run that was there all the time.
"""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime

from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import FailedPrecondition, InvalidArgument, NotFound
from stepwell.api.requests import (
    GetHistoryRequest,
    GetHistoryResponse,
    ListArchivedWorkflowsRequest,
    ListArchivedWorkflowsResponse,
    WorkflowExecutionInfo,
)

from ..visibility.attributes import CLOSE_TIME
from ..visibility.bounds import bounds
from ..visibility.evaluate import matches
from ..visibility.filters import EVERY_RUN, Filter
from ..visibility.query import parse
from . import archive_objects as objects
from .archive_objects import ArchivedRun
from .archives import Archives
from .attribute_types import AttributeTypes
from .commit import ExecutionKey
from .executions import Executions, unavailable
from .machines.run_checks import is_deleted
from .ports import StoreUnavailable
from .tokens import ArchivedListToken, ArchiveToken, TokenSigner

_PAGE = 100
_TOGETHER = 16
"""Runs of the index that are read at the same time."""

_TOKEN = "next_page_token"


class ArchiveReader:
    """``archives`` None: there are none. ``is_archived``: whether runs of the namespace may be in the archive. Raises
    Unavailable."""

    def __init__(
        self,
        archives: Archives | None,
        executions: Executions,
        types: AttributeTypes,
        signer: TokenSigner,
        is_archived: Callable[[str], bool],
    ) -> None:
        self._archives = archives
        self._executions = executions
        self._types = types
        self._signer = signer
        self._is_archived = is_archived

    def _of(self, namespace: str) -> Archives | None:
        return self._archives if self._is_archived(namespace) else None

    # --- histories ---

    async def is_there(self, namespace: str, execution: WorkflowExecution) -> bool:
        """Whether the run, named by its run id, is in the archive and not deleted."""
        archives, key = self._of(namespace), ExecutionKey(namespace, execution.workflow_id)
        if archives is None or not execution.run_id:
            return False
        try:
            head = await self._executions.read(key)
            if head is not None and is_deleted(head, execution.run_id):
                return False
            return await archives.run(key, execution.run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def find(self, key: ExecutionKey, run_id: str) -> ArchivedRun | None:
        """The run, also one that is being deleted. Raises Unavailable."""
        archives = self._of(key.namespace)
        try:
            return None if archives is None else await archives.run(key, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def begin(self, request: GetHistoryRequest) -> GetHistoryResponse | None:
        """The first page of a history that no log has (any more); None when the archive does not have it either."""
        execution = request.execution
        if request.skip_archival or not await self.is_there(request.namespace, execution):
            return None
        if request.next_page_token:
            raise NotFound(
                f"run {execution.run_id} of workflow {execution.workflow_id!r} is in the archive alone since the page "
                f"before; begin its history anew, without {_TOKEN}"
            )
        parts = await self._parts(request)
        last = parts - 1 if request.reverse or request.close_event_only else 0
        place = ArchiveToken(request.namespace, *_ids(execution), last, 0, parts, request.reverse)
        return await self._page(request, place)

    async def go_on(self, request: GetHistoryRequest) -> GetHistoryResponse | None:
        """The next page; None when the token is none of the archive's. Raises InvalidArgument, NotFound."""
        if not request.next_page_token:
            return None
        token = self._signer.open(request.next_page_token, _TOKEN)
        if not isinstance(token, ArchiveToken):
            return None
        execution = request.execution
        ours = token.namespace == request.namespace and token.workflow_id == execution.workflow_id
        if not ours or execution.run_id not in ("", token.run_id) or token.reverse != request.reverse:
            raise InvalidArgument(
                f"{_TOKEN} belongs to another workflow, run or direction; begin that one's history without a token",
                field=_TOKEN,
            )
        return await self._page(request, token)

    async def _parts(self, request: GetHistoryRequest) -> int:
        run = await self._must_have().run(_key(request), request.execution.run_id)
        if run is None:
            raise _gone(request)
        return run.parts

    async def _page(self, request: GetHistoryRequest, place: ArchiveToken) -> GetHistoryResponse:
        key = ExecutionKey(place.namespace, place.workflow_id)
        try:
            found = await self._must_have().part(key, place.run_id, place.part)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        if found is None:
            raise _gone(request)
        events = found[1][::-1] if place.reverse else found[1]
        if request.close_event_only:
            return GetHistoryResponse(run_id=place.run_id, events=tuple(events[-1:]))
        size = min(request.maximum_page_size or limits.HISTORY_PAGE_EVENTS, limits.MAX_HISTORY_PAGE_EVENTS)
        page = events[place.skip : place.skip + size]
        following = _following(place, len(page), len(events))
        token = b"" if following is None else self._signer.seal(following)
        return GetHistoryResponse(run_id=place.run_id, events=tuple(page), next_page_token=token)

    def _must_have(self) -> Archives:
        if self._archives is None:
            raise FailedPrecondition("this process has no place for archives; ask another one")
        return self._archives

    # --- lists ---

    async def list(self, request: ListArchivedWorkflowsRequest) -> ListArchivedWorkflowsResponse:
        archives = self._of(request.namespace)
        if archives is None:
            raise FailedPrecondition(
                f"namespace {request.namespace!r} has no archive; switch archival on (`stepwell namespace update "
                f"{request.namespace} --archival`), and what closes from then on is in it"
            )
        try:
            return await self._list(archives, request)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _list(self, archives: Archives, request: ListArchivedWorkflowsRequest) -> ListArchivedWorkflowsResponse:
        filter_ = await self._filter(request)
        asked = hashlib.blake2b(request.query.encode(errors="replace"), digest_size=8).digest()
        first, last = _between(request.namespace, filter_)
        after = self._after(request, asked) or first
        page = await archives.index(request.namespace, after, limits.MAX_ARCHIVE_SCAN)
        names = page.names if last is None else [name for name in page.names if name <= last]
        more = page.more and len(names) == len(page.names)
        found: list[WorkflowExecutionInfo] = []
        size, scanned = request.page_size or _PAGE, 0
        for start in range(0, len(names), _TOGETHER):
            together = names[start : start + _TOGETHER]
            for name, run in zip(together, await archives.indexed(together), strict=True):
                scanned, after = scanned + 1, name
                if run is not None and matches(filter_, objects.values_of(run)):
                    found.append(objects.info_of(run))
                if len(found) == size:
                    more = more or name != names[-1]
                    return self._answer(request, found, scanned, after if more else "", asked)
        return self._answer(request, found, scanned, after if more else "", asked)

    async def _filter(self, request: ListArchivedWorkflowsRequest) -> Filter:
        if not request.query:
            return EVERY_RUN
        query = parse(request.query, await self._types.known(request.namespace))
        if query.order is not None:
            raise InvalidArgument(
                "query has ORDER BY, but archived workflows come newest close first; leave it out", field="query"
            )
        return query.filter

    def _after(self, request: ListArchivedWorkflowsRequest, asked: bytes) -> str:
        if not request.next_page_token:
            return ""
        token = self._signer.open_as(request.next_page_token, ArchivedListToken, request.namespace, _TOKEN)
        if token.query != asked:
            raise InvalidArgument(
                f"{_TOKEN} belongs to another list; send it with the query that it came from, or begin without it",
                field=_TOKEN,
            )
        return token.after

    def _answer(
        self,
        request: ListArchivedWorkflowsRequest,
        found: Sequence[WorkflowExecutionInfo],
        scanned: int,
        after: str,
        asked: bytes,
    ) -> ListArchivedWorkflowsResponse:
        token = self._signer.seal(ArchivedListToken(request.namespace, after, asked)) if after else b""
        return ListArchivedWorkflowsResponse(executions=tuple(found), next_page_token=token, scanned_count=scanned)


def _between(namespace: str, filter_: Filter) -> tuple[str, str | None]:
    """Behind which name runs of the filter begin, and up to which they are."""
    low, high = bounds(filter_, CLOSE_TIME)
    first = objects.index_before(namespace, high) if isinstance(high, datetime) else ""
    return first, objects.index_behind(namespace, low) if isinstance(low, datetime) else None


def _following(place: ArchiveToken, read: int, of: int) -> ArchiveToken | None:
    """Where the page behind that one begins."""
    names = (place.namespace, place.workflow_id, place.run_id)
    if place.skip + read < of:
        return ArchiveToken(*names, place.part, place.skip + read, place.parts, place.reverse)
    part = place.part - 1 if place.reverse else place.part + 1
    return ArchiveToken(*names, part, 0, place.parts, place.reverse) if 0 <= part < place.parts else None


def _ids(execution: WorkflowExecution) -> tuple[str, str]:
    return execution.workflow_id, execution.run_id


def _key(request: GetHistoryRequest) -> ExecutionKey:
    return ExecutionKey(request.namespace, request.execution.workflow_id)


def _gone(request: GetHistoryRequest) -> NotFound:
    execution = request.execution
    return NotFound(f"run {execution.run_id} of workflow {execution.workflow_id!r} was deleted, also from the archive")
