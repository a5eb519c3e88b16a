"""Imports at the edge of the core: looks at the whole history before anything is written, then opens its run (LC-46).

The run comes to be in one commit, so there is none of it before, and all of it behind. A repeat with the same request
id finds it.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import msgspec
from stepwell.api.errors import FailedPrecondition, InvalidArgument, WorkflowExecutionAlreadyStarted
from stepwell.api.events import (
    HistoryEvent,
    WorkflowExecutionStarted,
    WorkflowExecutionUpdateAccepted,
    WorkflowExecutionUpdateAdmitted,
    WorkflowExecutionUpdateCompleted,
)
from stepwell.api.requests import ImportWorkflowRequest, ImportWorkflowResponse
from stepwell.api.updates import UpdateRequest

from ..common.clock import Clock
from . import request_ids
from .apply import apply, opened
from .archive_reading import ArchiveReader
from .attribute_types import AttributeTypes
from .commit import ExecutionKey
from .executions import Executions, unavailable
from .machines.importing import Check, run_id_of
from .ports import ExecutionLog, StoreUnavailable
from .requests import ImportRun, Request
from .state import ExecutionState
from .transition import StartReply

_replace = msgspec.structs.replace

_AT_ONCE = 500
"""Events that are looked at before others have their turn."""

_CLOCKS_APART = timedelta(minutes=10)


class Importing:
    """``retention``: of a namespace. Raises what ``machines.importing`` does, and Unavailable."""

    def __init__(
        self,
        log: ExecutionLog,
        executions: Executions,
        types: AttributeTypes,
        clock: Clock,
        retention: Callable[[str], timedelta],
        archive: ArchiveReader,
    ) -> None:
        self._log = log
        self._executions = executions
        self._types = types
        self._clock = clock
        self._retention = retention
        self._archive = archive

    async def run(self, request: ImportWorkflowRequest) -> ImportWorkflowResponse:
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        state = await self._looked_at(request)
        self._check_times(state)
        if state.search_attributes:
            await self._types.admit(request.namespace, state.search_attributes)
        asked = ImportRun(
            namespace=key.namespace,
            run_id=state.run_id,
            events=tuple([_of_nobody(event) for event in request.events]),
            request_id=request.request_id,
        )

        async def prepare(head: ExecutionState | None) -> Request:
            known = None if head is None else request_ids.started(head, request.request_id)
            if known is not None and await self._is_there(key, known.run_id):
                return asked
            if head is not None and known is None:
                await self._check_new(key, asked.run_id)
            await self._check_archive(key, state)
            # Of one that is known, and not there: it was deleted since, and comes again.
            return asked if known is None else msgspec.structs.replace(asked, request_id="")

        outcome = await self._executions.transact(key, None, prepare)
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"an import was answered with {type(reply).__name__}")
        return ImportWorkflowResponse(run_id=reply.run_id)

    async def _looked_at(self, request: ImportWorkflowRequest) -> ExecutionState:
        """All that the history says. Raises InvalidArgument."""
        run_id = run_id_of(request.events)
        if request.execution.run_id not in ("", run_id):
            raise InvalidArgument(
                f"execution.run_id is {request.execution.run_id!r}, and the history is that of run {run_id!r}; leave "
                "it out, or give the other history",
                field="execution.run_id",
            )
        check, state = Check(), None
        for first in range(0, len(request.events), _AT_ONCE):
            events = request.events[first : first + _AT_ONCE]
            check.add(events)
            state = _folded(state, events, request.namespace, run_id)
            await asyncio.sleep(0)
        check.end()
        assert state is not None  # run_id_of has seen the first event
        if state.workflow_id != request.execution.workflow_id:
            raise InvalidArgument(
                f"execution.workflow_id is {request.execution.workflow_id!r}, and the history is of workflow "
                f"{state.workflow_id!r}; a run keeps its id",
                field="execution.workflow_id",
            )
        return state

    def _check_times(self, state: ExecutionState) -> None:
        now = self._clock.now()
        if state.last_event_time > now + _CLOCKS_APART:
            raise InvalidArgument(
                f"the last event is of {state.last_event_time.isoformat()}, and here it is {now.isoformat()}; time of "
                "a run never goes back, so correct the clock, or import it then",
                field="events",
            )
        retention = self._retention(state.namespace)
        if state.close_time is not None and state.close_time + retention <= now:
            raise FailedPrecondition(
                f"run {state.run_id} closed at {state.close_time.isoformat()}, and namespace {state.namespace!r} keeps "
                f"closed runs for {retention.total_seconds() / 86_400:g} days, so it would be deleted at once; raise "
                "the retention of the namespace first, or import into another one"
            )

    async def _check_new(self, key: ExecutionKey, run_id: str) -> None:
        if await self._is_there(key, run_id):
            raise WorkflowExecutionAlreadyStarted(
                f"run {run_id} of workflow {key.workflow_id!r} is in namespace {key.namespace!r} already; delete it "
                "there first, or import into another namespace",
                run_id=run_id,
            )

    async def _check_archive(self, key: ExecutionKey, state: ExecutionState) -> None:
        """What is archived of a run stays as it is: of another end of it nothing would be kept."""
        archived = await self._archive.find(key, state.run_id)
        if archived is None:
            return
        if state.close_time != archived.closed or state.next_event_id - 1 != archived.shown.history_length:
            raise WorkflowExecutionAlreadyStarted(
                f"run {state.run_id} of workflow {key.workflow_id!r} is in the archive of namespace "
                f"{key.namespace!r}, with another end; import the history as it is there, delete the run there first, "
                "or import into another namespace",
                run_id=state.run_id,
            )

    async def _is_there(self, key: ExecutionKey, run_id: str) -> bool:
        try:
            return await self._log.find_run(key, run_id) is not None
        except StoreUnavailable as error:
            raise unavailable(error) from error


def _of_nobody(event: HistoryEvent) -> HistoryEvent:
    """Whose credentials were verified elsewhere, a history in a file can only claim."""
    attributes: Any = event.attributes
    match attributes:
        case WorkflowExecutionUpdateAccepted(accepted_request=UpdateRequest() as asked) if asked.meta.principal:
            changes: dict[str, Any] = {"accepted_request": _replace(asked, meta=_replace(asked.meta, principal=""))}
        case WorkflowExecutionUpdateAdmitted(request=asked) if asked.meta.principal:
            changes = {"request": _replace(asked, meta=_replace(asked.meta, principal=""))}
        case WorkflowExecutionUpdateCompleted(meta=meta) if meta.principal:
            changes = {"meta": _replace(meta, principal="")}
        case _ if getattr(attributes, "principal", ""):
            changes = {"principal": ""}
        case _:
            return event
    return _replace(event, attributes=_replace(attributes, **changes))


def _folded(
    state: ExecutionState | None, events: tuple[HistoryEvent, ...], namespace: str, run_id: str
) -> ExecutionState:
    for event in events:
        try:
            if state is not None:
                state = apply(state, event)
            else:  # the first is one that starts, by the rules that were checked
                state = opened(event, cast(WorkflowExecutionStarted, event.attributes), namespace, run_id)
        except KeyError:
            raise InvalidArgument(
                f"event {event.event_id} {event.event_type} is about something that is not pending there; give the "
                "history as it was read",
                field="events",
            ) from None
    assert state is not None
    return state
