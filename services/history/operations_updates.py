"""Operations on updates of running workflow code."""

from stepwell.api import requests as r
from stepwell.api.errors import NotFound

from ..common import principals
from .commit import ExecutionKey
from .engine_parts import EngineParts
from .requests import Start


class UpdateOperations(EngineParts):
    """For clients."""

    async def update_workflow(self, request: r.UpdateWorkflowRequest) -> r.UpdateWorkflowResponse:
        self._check_serving()
        key = ExecutionKey(request.namespace, request.execution.workflow_id)
        try:
            return await self._updates.update(key, request)
        except NotFound as refusal:
            raise await self._better(refusal, key, request.execution.run_id) from None

    async def update_with_start_workflow(
        self, request: r.UpdateWithStartWorkflowRequest
    ) -> r.UpdateWithStartWorkflowResponse:
        self._check_serving()
        if request.search_attributes:
            await self._attribute_types.admit(request.namespace, request.search_attributes)
        self._admit_callbacks(request)
        start = Start(run_id=self._ids.run_id(), start=request, pace=self._pace, principal=principals.current())
        return await self._updates.update_with_start(
            ExecutionKey(request.namespace, request.workflow_id), start, request
        )

    async def poll_workflow_update(self, request: r.PollWorkflowUpdateRequest) -> r.PollWorkflowUpdateResponse:
        self._check_serving()
        return await self._updates.poll(ExecutionKey(request.namespace, request.execution.workflow_id), request)
