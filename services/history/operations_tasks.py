"""Operations of workers on workflow tasks, and what becomes of workers themselves."""

import msgspec
from stepwell.api import requests as r
from stepwell.api.enums import WorkflowTaskFailedCause

from ..common import metric_names as names
from .engine_parts import EngineParts
from .run_limits import RUN_LIMITS, run_limits


class WorkflowTaskOperations(EngineParts):
    """For workers."""

    async def poll_workflow_task(self, request: r.PollWorkflowTaskRequest) -> r.PollWorkflowTaskResponse:
        self._check_serving()
        return await self._polling.workflow_task(request)

    async def start_workflow_task(self, request: r.StartWorkflowTaskRequest) -> r.StartWorkflowTaskResponse:
        self._check_serving()
        return await self._polling.start_workflow_task(request)

    async def respond_workflow_task_completed(
        self, request: r.RespondWorkflowTaskCompletedRequest
    ) -> r.RespondWorkflowTaskCompletedResponse:
        self._check_serving()
        misfit = await self._attribute_types.misfit(request.namespace, request.commands) if request.commands else ""
        allowed = run_limits(self.namespaces.limits(request.namespace)) if request.commands else RUN_LIMITS
        response = await self._workflow_tasks.complete(request, misfit, allowed)
        if not _left_over(response.activity_replies):
            return response
        replies = await self._outcomes_of(request, response.activity_replies)
        return msgspec.structs.replace(response, activity_replies=replies)

    async def respond_workflow_task_failed(
        self, request: r.RespondWorkflowTaskFailedRequest
    ) -> r.RespondWorkflowTaskFailedResponse:
        self._check_serving()
        response = await self._workflow_tasks.fail(request)
        if request.cause is WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR:
            self._metrics.count(names.NON_DETERMINISM)
        if not _left_over(response.activity_replies):
            return response
        replies = await self._outcomes_of(request, response.activity_replies)
        return r.RespondWorkflowTaskFailedResponse(activity_replies=replies)

    async def _outcomes_of(
        self,
        request: r.RespondWorkflowTaskCompletedRequest | r.RespondWorkflowTaskFailedRequest,
        replies: tuple[r.ActivityOutcomeReply, ...],
    ) -> tuple[r.ActivityOutcomeReply, ...]:
        return await self._outcomes.left_to_items(
            request.namespace, request.worker.worker_key, request.activity_outcomes, replies
        )

    async def respond_query_task_completed(
        self, request: r.RespondQueryTaskCompletedRequest
    ) -> r.RespondQueryTaskCompletedResponse:
        return await self._queries.respond(request)

    async def undelivered(self, response: r.PollWorkflowTaskResponse | r.PollActivityTaskResponse) -> None:
        """The answer of a poll could not be sent, so nobody has its tasks: they are offered again (WC-32)."""
        await self._polling.undelivered(response)

    def connection_lost(self, worker: r.WorkerInfo) -> None:
        """A connection of this worker ended while it waited for an answer."""
        if worker.process is not None and not self._stopping:
            self._background.spawn(self._holders.look_soon(worker.process))

    async def shutdown_worker(self, request: r.ShutdownWorkerRequest) -> r.ShutdownWorkerResponse:
        self._matching.shut_down_worker(request.namespace, request.task_queue, request.worker)
        return r.ShutdownWorkerResponse()


def _left_over(replies: tuple[r.ActivityOutcomeReply, ...]) -> bool:
    """Whether the log did not take all of the outcomes."""
    for reply in replies:
        if reply.error_code:
            return True
    return False
