"""Operations on workflow executions: start, cancel and terminate them, and read what they are."""

from stepwell.api import requests as r
from stepwell.api.errors import NotFound, WorkflowExecutionClosed

from .commit import ExecutionKey
from .engine_parts import EngineParts, key_of
from .requests import RequestCancel, Start, Terminate
from .transition import StartReply


class WorkflowOperations(EngineParts):
    """For clients."""

    async def start_workflow(self, request: r.StartWorkflowRequest) -> r.StartWorkflowResponse:
        self._check_serving()
        key = ExecutionKey(request.namespace, request.workflow_id)
        asked = Start(run_id=self._ids.run_id(), start=request)
        outcome = await self._executions.transact(key, asked)
        reply = outcome.transition.reply
        if not isinstance(reply, StartReply):
            raise TypeError(f"a start was answered with {type(reply).__name__}")
        return r.StartWorkflowResponse(
            run_id=reply.run_id, started=reply.started, first_execution_run_id=reply.first_run_id
        )

    async def cancel_workflow(self, request: r.CancelWorkflowRequest) -> r.CancelWorkflowResponse:
        self._check_serving()
        key = key_of(request)
        asked = RequestCancel(
            run_id=request.execution.run_id,
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            first_run_id=request.first_execution_run_id,
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
        )
        try:
            await self._executions.transact(key, asked)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.TerminateWorkflowResponse()

    async def describe_workflow(self, request: r.DescribeWorkflowRequest) -> r.DescribeWorkflowResponse:
        return await self._describer.workflow(request)

    async def get_history(self, request: r.GetHistoryRequest) -> r.GetHistoryResponse:
        if request.wait_new_event:
            self._check_serving()
        return await self._reader.get_history(request)

    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse:
        return await self._reader.list_workflows(request)
