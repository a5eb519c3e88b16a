"""Attempts that are named by workflow id and activity id, and not by their token (AC-21).

The ids mean whatever attempt is current. It is looked up and then named by its number, as a token does; when that one
is over by then, the next is looked up.
"""

import msgspec
from stepwell.api import requests as r
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import (
    ErrorBody,
    FailedPrecondition,
    NotFound,
    Unavailable,
    WorkflowExecutionClosed,
    error_from,
)

from ..common.spaces import has_activities, of_activities
from .activities_shell import ActivityShell
from .activity_item import is_finished
from .commit import ExecutionKey
from .executions import Executions
from .items import ActivityItems
from .outcomes import ActivityOutcomes
from .state import ExecutionState
from .task_tokens import ActivityToken
from .tokens import TokenSigner

_TRIES = 4


class ActivitiesById:
    def __init__(
        self,
        executions: Executions,
        items: ActivityItems,
        activities: ActivityShell,
        outcomes: ActivityOutcomes,
        signer: TokenSigner,
    ) -> None:
        self._executions = executions
        self._items = items
        self._activities = activities
        self._outcomes = outcomes
        self._signer = signer

    async def respond(self, request: r.RespondActivityByIdRequest) -> None:
        """Raises NotFound when no such activity is pending, or nothing of it runs that could end so."""
        key = key_of(request)
        token = await self.token(key, request.execution.run_id, request.activity_id)
        if not request.execution.workflow_id and isinstance(request.outcome, r.ActivityCanceled):
            await self._check_asked(key, token)
        for _ in range(_TRIES):
            reply = await self._respond(key, token, request)
            if not reply.error_code:
                return
            newer = await self.token(key, token.run_id, request.activity_id)
            if newer == token:
                raise error_from(ErrorBody(code=reply.error_code, message=reply.message))
            token = newer
        raise _changing(request.activity_id)

    async def _check_asked(self, key: ExecutionKey, token: ActivityToken) -> None:
        """Raises FailedPrecondition where nobody has asked a stand-alone activity to cancel."""
        state = await self._executions.read(key)
        pending = None if state is None else state.activities.get(token.scheduled_event_id)
        if pending is not None and not pending.cancel_requested_event_id:
            raise FailedPrecondition(
                f"activity {token.activity_id!r} was not asked to cancel (invalid transition from Started); cancel it "
                "first, or fail it"
            )

    async def _respond(
        self, key: ExecutionKey, token: ActivityToken, request: r.RespondActivityByIdRequest
    ) -> r.ActivityOutcomeReply:
        if not token.leased:
            reply = await self._activities.respond(token, request.outcome, by_id=request.identity)
            await self._activities.wake_up(key, token.run_id)
            return reply
        outcome = msgspec.structs.replace(request.outcome, task_token=self._signer.seal(token))
        worker = r.WorkerInfo(identity=request.identity)
        answer = await self._outcomes.respond(
            r.RespondActivityTasksRequest(namespace=request.namespace, worker=worker, outcomes=(outcome,))
        )
        return answer.replies[0]

    async def heartbeat(self, request: r.RecordActivityHeartbeatByIdRequest) -> r.RecordActivityHeartbeatResponse:
        """Raises NotFound as ``respond`` does."""
        key = key_of(request)
        token = await self.token(key, request.execution.run_id, request.activity_id)
        for _ in range(_TRIES):
            try:
                return await self._activities.heartbeat(token, request.details)
            except NotFound:
                newer = await self.token(key, token.run_id, request.activity_id)
                if newer == token:
                    raise
                token = newer
        raise _changing(request.activity_id)

    async def token(self, key: ExecutionKey, run_id: str, activity_id: str) -> ActivityToken:
        """Of the attempt that is current. Raises NotFound when the activity is not pending."""
        state = running(await self._executions.read(key), key, run_id)
        scheduled_event_id = scheduled_event_id_of(state, activity_id)
        pending = state.activities[scheduled_event_id]
        attempt, stamp = pending.attempt, 0
        if pending.lease is None:
            item = await self._items.get(key, state.run_id, scheduled_event_id)
            if item is not None:
                if is_finished(item):
                    raise ended(activity_id)
                attempt, stamp = item.attempt, item.stamp
        leased = pending.lease is not None
        return ActivityToken(
            key.namespace, key.workflow_id, state.run_id, scheduled_event_id, attempt, leased, activity_id, stamp
        )


def key_of(
    request: r.RespondActivityByIdRequest
    | r.RecordActivityHeartbeatByIdRequest
    | r.PauseActivityRequest
    | r.UnpauseActivityRequest
    | r.ResetActivityRequest
    | r.UpdateActivityOptionsRequest,
) -> ExecutionKey:
    """Of the workflow whose activity it is; without one the activity is alone."""
    if request.execution.workflow_id:
        return ExecutionKey(request.namespace, request.execution.workflow_id)
    return ExecutionKey(of_activities(request.namespace), request.activity_id)


def running(state: ExecutionState | None, key: ExecutionKey, run_id: str) -> ExecutionState:
    """The state. Raises NotFound unless the run (empty: any) is open."""
    if has_activities(key.namespace) and (
        state is None or (run_id and state.run_id != run_id) or state.close_time is not None
    ):
        raise NotFound(
            f"no stand-alone activity {key.workflow_id!r} is pending: it has ended, or never was; drop what you have, "
            "or check the id: one of a workflow is named with its workflow_id too",
            activity_id=key.workflow_id,
        )
    if state is None or (run_id and state.run_id != run_id):
        which = f"run {run_id} of workflow" if run_id else "workflow"
        raise NotFound(f"{which} {key.workflow_id!r} is not open; check workflow_id, run_id and namespace")
    if state.status is not WorkflowExecutionStatus.RUNNING:
        raise WorkflowExecutionClosed(
            f"workflow {key.workflow_id!r} is closed ({state.status.value}), and so are its activities",
            status=state.status.value,
        )
    return state


def scheduled_event_id_of(state: ExecutionState, activity_id: str) -> int:
    """Raises NotFound when the activity is not pending."""
    scheduled_event_id = state.activity_ids.get(activity_id)
    if scheduled_event_id is None:
        raise ended(activity_id)
    return scheduled_event_id


def ended(activity_id: str) -> NotFound:
    return NotFound(
        f"activity {activity_id!r} is not pending: it has ended, or never was; drop what you have, or check the id",
        activity_id=activity_id,
    )


def _changing(activity_id: str) -> Unavailable:
    return Unavailable(f"activity {activity_id!r} is being changed by others; call again")
