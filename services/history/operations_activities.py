"""Operations on activities: poll, respond, heartbeat."""

from stepwell.api import requests as r

from .engine_parts import EngineParts
from .task_tokens import ActivityToken


class ActivityOperations(EngineParts):
    """For workers, for those who end activities elsewhere, and for those who operate workflows."""

    async def poll_activity_task(self, request: r.PollActivityTaskRequest) -> r.PollActivityTaskResponse:
        self._check_serving()
        return await self._polling.activity_task(request)

    async def start_activity_task(self, request: r.StartActivityTaskRequest) -> r.StartActivityTaskResponse:
        self._check_serving()
        return await self._polling.start_activity_task(request)

    async def respond_activity_tasks(self, request: r.RespondActivityTasksRequest) -> r.RespondActivityTasksResponse:
        self._check_serving()
        return await self._outcomes.respond(request)

    async def record_activity_heartbeat(
        self, request: r.RecordActivityHeartbeatRequest
    ) -> r.RecordActivityHeartbeatResponse:
        self._check_serving()
        token = self._signer.open_as(request.task_token, ActivityToken, request.namespace, "task_token")
        return await self._activities.heartbeat(token, request.details)

    async def respond_activity_by_id(self, request: r.RespondActivityByIdRequest) -> r.RespondActivityByIdResponse:
        self._check_serving()
        await self._by_id.respond(request)
        return r.RespondActivityByIdResponse()

    async def pause_activity(self, request: r.PauseActivityRequest) -> r.ActivitiesChangedResponse:
        self._check_serving()
        return r.ActivitiesChangedResponse(activity_ids=await self._activity_admin.pause(request))

    async def unpause_activity(self, request: r.UnpauseActivityRequest) -> r.ActivitiesChangedResponse:
        self._check_serving()
        return r.ActivitiesChangedResponse(activity_ids=await self._activity_admin.unpause(request))

    async def reset_activity(self, request: r.ResetActivityRequest) -> r.ActivitiesChangedResponse:
        self._check_serving()
        return r.ActivitiesChangedResponse(activity_ids=await self._activity_admin.reset(request))

    async def update_activity_options(self, request: r.UpdateActivityOptionsRequest) -> r.ActivitiesChangedResponse:
        self._check_serving()
        return r.ActivitiesChangedResponse(activity_ids=await self._activity_admin.update_options(request))

    async def record_activity_heartbeat_by_id(
        self, request: r.RecordActivityHeartbeatByIdRequest
    ) -> r.RecordActivityHeartbeatResponse:
        self._check_serving()
        return await self._by_id.heartbeat(request)
