"""Operations that say something to running workflow code: signals and queries."""

from stepwell.api import requests as r
from stepwell.api.errors import NotFound

from .engine_parts import EngineParts, key_of
from .requests import Signal


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
        )
        try:
            await self._signalling.record(key, asked, request.idempotency_key)
        except NotFound as refusal:
            raise await self._better(refusal, key, asked.run_id) from None
        return r.SignalWorkflowResponse()

    async def query_workflow(self, request: r.QueryWorkflowRequest) -> r.QueryWorkflowResponse:
        self._check_serving()
        return await self._queries.query(request)
