"""One workflow execution, as its client sees it."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, overload

from ..api.enums import QueryRejectCondition, ResetReapplyExcludeType, ResetType, WorkflowUpdateStage
from ..api.events import (
    HistoryEvent,
    WorkflowExecutionCompleted,
    WorkflowExecutionContinuedAsNew,
)
from ..api.limits import MAX_HISTORY_PAGE_EVENTS
from ..converter.signatures import untyped_signature
from ..replay.history import WorkflowHistory
from ..workflow.definition import query_reference, signal_reference, update_reference
from ..workflow.updates import UpdateMethodMultiParam
from . import interceptors as i
from .activity_operations import ActivityOperations
from .arguments import UNSET, arguments
from .close_causes import close_cause
from .close_events import close_event
from .deleting import DeleteOperations
from .errors import WorkflowContinuedAsNewError, WorkflowFailureError
from .executions import WorkflowExecutionDescription
from .pausing import PauseOperations
from .update_handle import WorkflowUpdateHandle

if TYPE_CHECKING:
    from .client import Client

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class WorkflowHandle(ActivityOperations, PauseOperations, DeleteOperations, Generic[R_co]):
    """Made by ``Client.start_workflow`` and ``Client.get_workflow_handle``. All methods raise :class:`RPCError`
    when the engine refuses the call or is out of reach."""

    def __init__(
        self,
        client: "Client",
        id: str,
        *,
        run_id: str | None = None,
        result_run_id: str | None = None,
        first_execution_run_id: str | None = None,
        result_type: Any = None,
    ) -> None:
        self._client = client
        self._id = id
        self._run_id = run_id
        self._result_run_id = result_run_id
        self._first_execution_run_id = first_execution_run_id
        self._result_type = Any if result_type is None else result_type

    def __repr__(self) -> str:
        run_id = self._run_id or self._result_run_id
        return f"<WorkflowHandle {self._id!r}{f' run {run_id}' if run_id else ''}>"

    @property
    def id(self) -> str:
        return self._id

    @property
    def run_id(self) -> str | None:
        """Run that signals, queries and the like are bound to; None means whichever run of the id is current."""
        return self._run_id

    @property
    def result_run_id(self) -> str | None:
        """Run whose result :meth:`result` waits for; of a handle from a start, the run that was started."""
        return self._result_run_id

    @property
    def first_execution_run_id(self) -> str | None:
        """First run of the chain; cancel and terminate touch no run of another chain."""
        return self._first_execution_run_id

    async def result(self, *, follow_runs: bool = True) -> R_co:
        """Wait for the end and return the result (LC-09).

        The end of the chain: of the last run, where a run continued as new, was retried, or is repeated by its cron
        schedule (whose chain has an end only when it is cancelled or terminated). ``follow_runs=False`` waits for the
        end of this handle's run alone.

        Raises :class:`WorkflowFailureError` when the workflow failed, was cancelled or terminated, or timed out, and
        :class:`WorkflowContinuedAsNewError` when the run continued as new and the next one is not to be followed.
        """
        run_id = self._result_run_id or self._run_id or ""
        while True:
            closed = await close_event(self._client, self._id, run_id)
            next_run_id = getattr(closed, "new_execution_run_id", "")
            if not (follow_runs and next_run_id):
                break
            run_id = next_run_id
        if isinstance(closed, WorkflowExecutionContinuedAsNew):
            raise WorkflowContinuedAsNewError(closed.new_execution_run_id)
        if not isinstance(closed, WorkflowExecutionCompleted):
            raise WorkflowFailureError(cause=close_cause(self._client.data_converter, closed))
        signature = untyped_signature(f"workflow {self._id!r}", self._result_type)
        result: R_co = signature.decode_result(self._client.data_converter.payload_converter, closed.result)
        return result

    @overload
    async def query(
        self,
        query: Callable[..., R],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        reject_condition: QueryRejectCondition | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> R: ...
    @overload
    async def query(
        self,
        query: str,
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        result_type: Any = None,
        reject_condition: QueryRejectCondition | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any: ...
    async def query(
        self,
        query: str | Callable[..., Any],
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        result_type: Any = None,
        reject_condition: QueryRejectCondition | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """Ask the workflow, by method or by name (MS-19).

        Raises :class:`WorkflowQueryFailedError` when the handler fails or does not exist,
        :class:`WorkflowQueryRejectedError` when ``reject_condition`` excludes the run's status, ``ArgumentError``
        when the arguments do not fit the method.
        """
        name, signature = query_reference(query)
        if isinstance(query, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        return await self._client.outbound.query_workflow(
            i.QueryWorkflowInput(
                id=self._id,
                run_id=self._run_id,
                query=name,
                signature=signature,
                args=arguments(arg, args, more),
                reject_condition=reject_condition or QueryRejectCondition.NONE,
                rpc_timeout=rpc_timeout,
            )
        )

    async def signal(
        self,
        signal: str | Callable[..., Any],
        arg: Any = UNSET,
        *more: Never,
        args: Sequence[Any] = (),
        idempotency_key: str | None = None,
    ) -> None:
        """Send a signal, by method or by name. Returning means recorded, not handled (MS-01).

        A call that fails may be made again with the same ``idempotency_key``, also by another process and after a
        continue-as-new: the workflow id gets one signal for each key, for the time of the retention (MS-16).

        Raises ``ArgumentError`` when the arguments do not fit the method, ``ValueError`` for an empty key.
        """
        if idempotency_key == "":
            raise ValueError("idempotency_key is empty (an unset variable?); leave it out for a signal without one")
        name, signature = signal_reference(signal)
        await self._client.outbound.signal_workflow(
            i.SignalWorkflowInput(
                self._id, self._run_id, name, signature, arguments(arg, args, more), idempotency_key=idempotency_key
            )
        )

    @overload
    async def execute_update(
        self,
        update: UpdateMethodMultiParam[..., R],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> R: ...
    @overload
    async def execute_update(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any: ...
    async def execute_update(
        self,
        update: Any,
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """Send an update, by method or by name, and wait for its result. Raises what :meth:`start_update` and
        ``WorkflowUpdateHandle.result`` raise.
        """
        handle: WorkflowUpdateHandle[Any] = await self.start_update(
            update,
            args=arguments(arg, args, more),
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
            id=id,
            result_type=result_type,
            rpc_timeout=rpc_timeout,
        )
        return await handle.result()

    @overload
    async def start_update(
        self,
        update: UpdateMethodMultiParam[..., R],
        arg: Any = UNSET,
        *,
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[R]: ...
    @overload
    async def start_update(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]: ...
    async def start_update(
        self,
        update: Any,
        arg: Any = UNSET,
        *more: Any,
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]:
        """Send an update and wait until it is recorded (ADMITTED), taken or rejected (ACCEPTED), or over (COMPLETED).

        ``id`` makes it the same update for every call with that id in the run: a call that fails may be made again,
        also by another process. Raises :class:`RPCError` when the workflow is closed or has too many updates in
        flight, :class:`WorkflowUpdateRPCTimeoutOrCancelledError` when ``rpc_timeout`` ends first, ``ArgumentError``
        when the arguments do not fit the method, ``ValueError`` for an empty ``id``.
        """
        if id == "":
            raise ValueError("id is empty (an unset variable?); leave it out for a new one")
        name, signature = update_reference(update)
        if isinstance(update, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        return await self._client.outbound.start_workflow_update(
            i.StartWorkflowUpdateInput(
                id=self._id,
                run_id=self._run_id,
                first_execution_run_id=self._first_execution_run_id,
                update_id=id,
                update=name,
                signature=signature,
                args=arguments(arg, args, more),
                wait_for_stage=WorkflowUpdateStage(wait_for_stage),
                rpc_timeout=rpc_timeout,
            )
        )

    def get_update_handle(
        self, id: str, *, workflow_run_id: str | None = None, result_type: Any = None
    ) -> WorkflowUpdateHandle[Any]:
        """A handle for an update that was sent before, without asking the engine whether there is such an update."""
        return WorkflowUpdateHandle(
            self._client,
            id,
            self._id,
            workflow_run_id=workflow_run_id or self._run_id,
            signature=untyped_signature(f"update {id!r}", Any if result_type is None else result_type),
        )

    def get_update_handle_for(
        self, update: UpdateMethodMultiParam[..., R], id: str, *, workflow_run_id: str | None = None
    ) -> WorkflowUpdateHandle[R]:
        """Like :meth:`get_update_handle`, with the result's type taken from the update."""
        _, signature = update_reference(update)
        return self.get_update_handle(id, workflow_run_id=workflow_run_id, result_type=signature.result_type)

    async def cancel(self, *, reason: str = "") -> None:
        """Ask the workflow to stop; it may clean up first (CH-09). Succeeds also when it is closed already (CH-11)."""
        await self._client.outbound.cancel_workflow(
            i.CancelWorkflowInput(self._id, self._run_id, self._first_execution_run_id, reason)
        )

    async def terminate(self, *args: Any, reason: str | None = None) -> None:
        """End the workflow now, unseen by its code (CH-13). ``args`` are kept as details."""
        await self._client.outbound.terminate_workflow(
            i.TerminateWorkflowInput(self._id, self._run_id, self._first_execution_run_id, args, reason or "")
        )

    async def reset(
        self,
        *,
        event_id: int | None = None,
        reset_type: ResetType | None = None,
        build_id: str | None = None,
        current_run_only: bool = False,
        exclude: Sequence[ResetReapplyExcludeType] = (),
        reason: str = "",
        request_id: str | None = None,
        signals: Sequence[tuple[str | Callable[..., Any], Sequence[Any]]] = (),
    ) -> "WorkflowHandle[R_co]":
        """Go back to an earlier workflow task and on from there, as a new run, whose handle this returns (LC-13).

        The handle's run is the one to go back in, or the current one when the handle has none; whichever run is open is
        terminated. ``event_id`` names a WorkflowTaskCompleted, WorkflowTaskFailed, WorkflowTaskTimedOut or
        WorkflowTaskStarted event; without it and without a ``reset_type`` it is the last workflow task. Signals,
        updates and a request to cancel that came in since come in again, less those that ``exclude`` names. A call
        that fails may be made again with the same ``request_id`` and makes one run. ``signals``, each by method or by
        name with its arguments, come in behind all that, before the run's first workflow task (LC-18).
        """
        if build_id == "":
            raise ValueError("build_id is empty (an unset variable?); leave it out to go back to another point")
        if event_id == 0:
            raise ValueError("event_id is 0; events are numbered from 1 on")
        if event_id is None and reset_type is None:
            reset_type = ResetType.BUILD_ID if build_id else ResetType.LAST_WORKFLOW_TASK
        handle = await self._client.outbound.reset_workflow(
            i.ResetWorkflowInput(
                self._id,
                self._run_id,
                event_id,
                reset_type,
                build_id,
                current_run_only,
                exclude,
                reason,
                request_id,
                [i.SignalWorkflowInput(self._id, None, *signal_reference(name), args) for name, args in signals],
            )
        )
        handle._first_execution_run_id = self._first_execution_run_id
        handle._result_type = self._result_type
        return handle

    async def describe(self) -> WorkflowExecutionDescription:
        """Status and what the run waits for."""
        return await self._client.outbound.describe_workflow(i.DescribeWorkflowInput(self._id, self._described_run()))

    async def fetch_history(self, *, skip_archival: bool = False) -> WorkflowHistory:
        """All events so far, of a run that is gone from the archive, unless that is skipped."""
        events = self.fetch_history_events(page_size=MAX_HISTORY_PAGE_EVENTS, skip_archival=skip_archival)
        return WorkflowHistory(self._id, tuple([event async for event in events]))

    def fetch_history_events(
        self,
        *,
        page_size: int | None = None,
        wait_new_event: bool = False,
        reverse: bool = False,
        skip_archival: bool = False,
    ) -> AsyncIterator[HistoryEvent]:
        """Events one by one, with ``reverse`` newest first; with ``wait_new_event`` those to come until its end."""
        run_id = self._described_run()
        return self._client.outbound.fetch_workflow_history_events(
            i.FetchWorkflowHistoryEventsInput(self._id, run_id, page_size, wait_new_event, reverse, skip_archival)
        )

    def _described_run(self) -> str | None:
        return self._run_id or self._result_run_id
