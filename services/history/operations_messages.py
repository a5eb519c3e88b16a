"""Operations that say something to running workflow code: signals and queries."""

from stepwell.api import requests as r
from stepwell.api.errors import NotFound

from ..common import principals
from .commit import ExecutionKey
from .engine_parts import EngineParts, key_of
from .requests import Signal, SignalWithStart, Start


class MessageOperations(EngineParts):
    """For clients."""

    async def signal_workflow(self, request: r.SignalWorkflowRequest) -> r.SignalWorkflowResponse:
        self._check_serving()
        key = key_of(request)
        asked = Signal(
            run_id=request.execution.run_id,
            signal_name=request.signal_name,
            input=request.input,
            identity=request.identity,
            headers=request.headers,
            request_id=request.request_id,
            principal=principals.current(),
        )
        try:
            await self._signalling.record(key, asked, request.idempotency_key)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.SignalWorkflowResponse()

    async def signal_with_start_workflow(
        self, request: r.SignalWithStartWorkflowRequest
    ) -> r.SignalWithStartWorkflowResponse:
        self._check_serving()
        if request.search_attributes:
            await self._attribute_types.admit(request.namespace, request.search_attributes)
        self._admit_callbacks(request)
        asked = SignalWithStart(
            start=Start(run_id=self._ids.run_id(), start=request, pace=self._pace, principal=principals.current()),
            signal=Signal(
                run_id="",
                signal_name=request.signal_name,
                input=request.signal_input,
                identity=request.identity,
                headers=request.signal_headers,
                request_id=request.request_id,
                principal=principals.current(),
            ),
        )
        reply = await self._signalling.record_with_start(ExecutionKey(request.namespace, request.workflow_id), asked)
        return r.SignalWithStartWorkflowResponse(
            run_id=reply.run_id, started=reply.started, first_execution_run_id=reply.first_run_id
        )

    async def query_workflow(self, request: r.QueryWorkflowRequest) -> r.QueryWorkflowResponse:
        self._check_serving()
        return await self._queries.query(request)
