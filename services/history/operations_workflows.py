"""Operations on workflow executions: start, cancel, terminate and reset them, and read what they are."""

import logging

import msgspec
from stepwell.api import requests as r
from stepwell.api.callbacks import CallbackInfo
from stepwell.api.enums import CallbackState
from stepwell.api.errors import ApiError, NotFound, WorkflowExecutionClosed

from ..common import principals
from . import earlier_starts
from .callback_delivery import Callbacks
from .commit import ExecutionKey
from .engine_parts import EngineParts, key_of
from .executions import Known
from .machines import options
from .ports import WorkflowTaskRef
from .requests import Pause, Request, RequestCancel, ResetAffinity, Start, Terminate, Unpause, UpdateOptions
from .start_keys import StartKeys
from .transition import StartReply

log = logging.getLogger(__name__)


class WorkflowOperations(EngineParts):
    """For clients."""

    async def start_workflow(self, request: r.StartWorkflowRequest) -> r.StartWorkflowResponse:
        self._check_serving()
        if request.search_attributes:
            await self._attribute_types.admit(request.namespace, request.search_attributes)
        self._admit_callbacks(request)
        if request.deduplication is not None:
            return await self.attached(StartKeys).start(request, request.deduplication)
        key = ExecutionKey(request.namespace, request.workflow_id)
        asked = Start(run_id=self._ids.run_id(), start=request, pace=self._pace, principal=principals.current())

        async def prepare(state: Known) -> Request:
            return await earlier_starts.marked(self._log, key, state, asked, self._clock.now())

        starting = self._starting
        if not starting.try_enter():
            await starting.enter()
        try:
            outcome = await self._executions.transact(key, None, prepare)
        finally:
            starting.leave()
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"a start was answered with {type(reply).__name__}")
        task = None
        if request.eager_worker is not None and outcome.commit is not None and reply.run_id == asked.run_id:
            task = await self._first_task(WorkflowTaskRef(key, reply.run_id, 1), request.eager_worker)
        return r.StartWorkflowResponse(
            run_id=reply.run_id,
            started=reply.started,
            first_execution_run_id=reply.first_run_id,
            eager_workflow_task=task,
        )

    async def _first_task(self, ref: WorkflowTaskRef, worker: r.WorkerInfo) -> r.WorkflowTask | None:
        """For the worker that the caller of a start has at hand (LC-08). The run is started whatever becomes of this:
        a task that does not arrive is offered again when its time is over."""
        try:
            return await self._workflow_tasks.begin(ref, worker)
        except ApiError as error:
            log.info("The first workflow task of %s goes to a poll instead: %s", ref.key.workflow_id, error)
            return None

    async def cancel_workflow(self, request: r.CancelWorkflowRequest) -> r.CancelWorkflowResponse:
        self._check_serving()
        key = key_of(request)
        asked = RequestCancel(
            run_id=request.execution.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            first_run_id=request.first_execution_run_id,
            principal=principals.current(),
        )
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            better = await self._better(refusal, key, asked.run_id)
            if not isinstance(better, WorkflowExecutionClosed):  # a closed run needs no cancelling (CH-09)
                raise better from None
        return r.CancelWorkflowResponse()

    async def terminate_workflow(self, request: r.TerminateWorkflowRequest) -> r.TerminateWorkflowResponse:
        self._check_serving()
        key = key_of(request)
        asked = Terminate(
            run_id=request.execution.run_id,
            reason=request.reason,
            details=request.details,
            identity=request.identity,
            first_run_id=request.first_execution_run_id,
            principal=principals.current(),
        )
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.TerminateWorkflowResponse()

    async def delete_workflow(self, request: r.DeleteWorkflowRequest) -> r.DeleteWorkflowResponse:
        self._check_serving()
        first_run_id = request.first_execution_run_id
        key, run_id = key_of(request), request.execution.run_id
        try:
            await self._deleting.ask(key, run_id, request.identity, first_run_id)
        except NotFound:
            if not await self._deleting.ask_archived(key, run_id):
                raise
        return r.DeleteWorkflowResponse()

    async def pause_workflow(self, request: r.PauseWorkflowRequest) -> r.PauseWorkflowResponse:
        self._check_serving()
        asked = Pause(
            run_id=request.execution.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            principal=principals.current(),
        )
        await self._change(key_of(request), asked)
        return r.PauseWorkflowResponse()

    async def unpause_workflow(self, request: r.UnpauseWorkflowRequest) -> r.UnpauseWorkflowResponse:
        self._check_serving()
        asked = Unpause(
            run_id=request.execution.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            principal=principals.current(),
        )
        await self._change(key_of(request), asked)
        return r.UnpauseWorkflowResponse()

    async def update_workflow_options(self, request: r.UpdateWorkflowOptionsRequest) -> r.UpdateWorkflowOptionsResponse:
        self._check_serving()
        asked, mask, identity = request.workflow_execution_options, request.update_mask, request.identity
        change = options.change_of(asked, mask, identity, principal=principals.current())
        await self._change(key_of(request), UpdateOptions(run_id=request.execution.run_id, change=change))
        return r.UpdateWorkflowOptionsResponse()

    async def reset_worker_affinity(self, request: r.ResetWorkerAffinityRequest) -> r.ResetWorkerAffinityResponse:
        self._check_serving()
        await self._change(key_of(request), ResetAffinity(run_id=request.execution.run_id))
        return r.ResetWorkerAffinityResponse()

    async def _change(self, key: ExecutionKey, asked: Pause | Unpause | UpdateOptions | ResetAffinity) -> None:
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None

    async def reset_workflow(self, request: r.ResetWorkflowRequest) -> r.ResetWorkflowResponse:
        self._check_serving()
        return r.ResetWorkflowResponse(run_id=await self._resetting.reset(request))

    async def import_workflow(self, request: r.ImportWorkflowRequest) -> r.ImportWorkflowResponse:
        self._check_serving()
        return await self._importing.run(request)

    async def describe_workflow(self, request: r.DescribeWorkflowRequest) -> r.DescribeWorkflowResponse:
        try:
            described = await self._describer.workflow(request)
        except NotFound as refusal:
            if await self._archive.is_there(request.namespace, request.execution):
                raise NotFound(
                    f"the retention of run {request.execution.run_id} of workflow {request.execution.workflow_id!r} is "
                    "over; its history is in the archive: GetHistory (`stepwell workflow show`) reads it, and "
                    "ListArchivedWorkflows (`stepwell workflow list --archived`) says what it was"
                ) from refusal
            raise
        if not described.callbacks or described.info.close_time is None:
            return described
        return msgspec.structs.replace(described, callbacks=await self._callbacks_of(request.namespace, described))

    async def _callbacks_of(self, namespace: str, described: r.DescribeWorkflowResponse) -> tuple[CallbackInfo, ...]:
        """Of a run that is closed."""
        execution, standing = described.info.execution, described.callbacks
        if described.new_execution_run_id:
            return standing
        told = await self.attached(Callbacks).infos(namespace, execution.run_id)
        if told:
            return told
        head = await self._executions.read(ExecutionKey(namespace, execution.workflow_id))
        if head is not None and head.first_run_id == described.info.first_run_id and head.run_id != execution.run_id:
            return standing  # a reset has gone on with the chain
        return tuple([msgspec.structs.replace(one, state=CallbackState.SCHEDULED) for one in standing])

    async def get_history(self, request: r.GetHistoryRequest) -> r.GetHistoryResponse:
        if request.wait_new_event:
            self._check_serving()
        archived = await self._archive.go_on(request)
        if archived is not None:
            return archived
        try:
            return await self._reader.get_history(request)
        except NotFound:
            archived = await self._archive.begin(request)
            if archived is None:
                raise
            return archived

    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse:
        return await self._listing.list_workflows(request)

    async def scan_workflows(self, request: r.ScanWorkflowsRequest) -> r.ScanWorkflowsResponse:
        return await self._listing.scan_workflows(request)

    async def list_archived_workflows(self, request: r.ListArchivedWorkflowsRequest) -> r.ListArchivedWorkflowsResponse:
        return await self._archive.list(request)

    async def erase_archive(self, namespace: str) -> bool:
        """Some of it; whether there may be more. Raises Unavailable."""
        return await self._deleting.erase_archive(namespace)

    async def count_workflows(self, request: r.CountWorkflowsRequest) -> r.CountWorkflowsResponse:
        return await self._listing.count_workflows(request)
