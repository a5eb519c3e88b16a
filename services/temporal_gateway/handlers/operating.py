"""What those who operate workflows do to runs and their pending activities: reset, pause, unpause."""

from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..change_records import activity_options_of, excluded_of, mask_of, options_of, post_reset_of, to_activity_options
from ..gateway import Call, Gateway, Handlers
from ..records import execution_of
from ..times import timedelta_of


async def reset_workflow_execution(
    gateway: Gateway, request: pb.ResetWorkflowExecutionRequest, call: Call
) -> pb.ResetWorkflowExecutionResponse:
    asked = r.ResetWorkflowRequest(
        namespace=request.namespace,
        execution=execution_of(request.workflow_execution),
        workflow_task_finish_event_id=request.workflow_task_finish_event_id,
        reset_reapply_exclude_types=excluded_of(request.reset_reapply_exclude_types, request.reset_reapply_type),
        reason=request.reason,
        identity=request.identity,
        request_id=request.request_id,
        post_reset_operations=tuple([post_reset_of(operation) for operation in request.post_reset_operations]),
    )
    answer = await gateway.call(o.RESET_WORKFLOW, asked)
    return pb.ResetWorkflowExecutionResponse(run_id=answer.run_id)


async def pause_workflow_execution(
    gateway: Gateway, request: pb.PauseWorkflowExecutionRequest, call: Call
) -> pb.PauseWorkflowExecutionResponse:
    await gateway.call(o.PAUSE_WORKFLOW, r.PauseWorkflowRequest(**_run(request)))
    return pb.PauseWorkflowExecutionResponse()


async def unpause_workflow_execution(
    gateway: Gateway, request: pb.UnpauseWorkflowExecutionRequest, call: Call
) -> pb.UnpauseWorkflowExecutionResponse:
    await gateway.call(o.UNPAUSE_WORKFLOW, r.UnpauseWorkflowRequest(**_run(request)))
    return pb.UnpauseWorkflowExecutionResponse()


def _run(request: pb.PauseWorkflowExecutionRequest | pb.UnpauseWorkflowExecutionRequest) -> dict[str, Any]:
    return {
        "namespace": request.namespace,
        "execution": WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id),
        "reason": request.reason,
        "identity": request.identity,
        "request_id": request.request_id,
    }


async def reset_sticky_task_queue(
    gateway: Gateway, request: pb.ResetStickyTaskQueueRequest, call: Call
) -> pb.ResetStickyTaskQueueResponse:
    asked = r.ResetWorkerAffinityRequest(namespace=request.namespace, execution=execution_of(request.execution))
    await gateway.call(o.RESET_WORKER_AFFINITY, asked)
    return pb.ResetStickyTaskQueueResponse()


async def update_workflow_execution_options(
    gateway: Gateway, request: pb.UpdateWorkflowExecutionOptionsRequest, call: Call
) -> pb.UpdateWorkflowExecutionOptionsResponse:
    """The answer has what was given: nobody tells of the rest."""
    asked = r.UpdateWorkflowOptionsRequest(
        namespace=request.namespace,
        execution=execution_of(request.workflow_execution),
        workflow_execution_options=options_of(request.workflow_execution_options),
        update_mask=mask_of(request.update_mask.paths),
        identity=request.identity,
    )
    await gateway.call(o.UPDATE_WORKFLOW_OPTIONS, asked)
    return pb.UpdateWorkflowExecutionOptionsResponse(workflow_execution_options=request.workflow_execution_options)


_Activity = (
    pb.PauseActivityRequest | pb.UnpauseActivityRequest | pb.ResetActivityRequest | pb.UpdateActivityOptionsRequest
)


def _activity(request: _Activity) -> dict[str, Any]:
    """Raises InvalidArgument where it is said for all: here by id or type."""
    if request.WhichOneof("activity") not in ("id", "type"):
        raise InvalidArgument("name an activity by its id, or those of a type", field="activity")
    return {
        "namespace": request.namespace,
        "execution": execution_of(request.execution),
        "activity_id": request.id,
        "activity_type": request.type,
        "identity": request.identity,
    }


async def pause_activity(gateway: Gateway, request: pb.PauseActivityRequest, call: Call) -> pb.PauseActivityResponse:
    await gateway.call(o.PAUSE_ACTIVITY, r.PauseActivityRequest(**_activity(request), reason=request.reason))
    return pb.PauseActivityResponse()


async def unpause_activity(
    gateway: Gateway, request: pb.UnpauseActivityRequest, call: Call
) -> pb.UnpauseActivityResponse:
    asked = r.UnpauseActivityRequest(
        **_activity(request),
        reset_attempts=request.reset_attempts,
        reset_heartbeat=request.reset_heartbeat,
        jitter=timedelta_of(request.jitter),
    )
    await gateway.call(o.UNPAUSE_ACTIVITY, asked)
    return pb.UnpauseActivityResponse()


async def reset_activity(gateway: Gateway, request: pb.ResetActivityRequest, call: Call) -> pb.ResetActivityResponse:
    asked = r.ResetActivityRequest(
        **_activity(request),
        keep_paused=request.keep_paused,
        reset_heartbeat=request.reset_heartbeat,
        restore_original_options=request.restore_original_options,
        jitter=timedelta_of(request.jitter),
    )
    await gateway.call(o.RESET_ACTIVITY, asked)
    return pb.ResetActivityResponse()


async def update_activity_options(
    gateway: Gateway, request: pb.UpdateActivityOptionsRequest, call: Call
) -> pb.UpdateActivityOptionsResponse:
    """The answer has the options of one of the activities as they are then; none, if all have ended meanwhile."""
    options = activity_options_of(
        request.activity_options, request.update_mask.paths, restore_original=request.restore_original
    )
    asked = r.UpdateActivityOptionsRequest(**_activity(request), options=options)
    changed = (await gateway.call(o.UPDATE_ACTIVITY_OPTIONS, asked)).activity_ids
    described = await gateway.call(
        o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(namespace=request.namespace, execution=asked.execution)
    )
    now = [to_activity_options(it) for it in described.pending_activities if it.activity_id in changed]
    return pb.UpdateActivityOptionsResponse(activity_options=now[0] if now else None)


HANDLERS: Handlers = {
    "ResetWorkflowExecution": reset_workflow_execution,
    "PauseWorkflowExecution": pause_workflow_execution,
    "UnpauseWorkflowExecution": unpause_workflow_execution,
    "ResetStickyTaskQueue": reset_sticky_task_queue,
    "PauseActivity": pause_activity,
    "UnpauseActivity": unpause_activity,
    "ResetActivity": reset_activity,
    "UpdateActivityOptions": update_activity_options,
    "UpdateWorkflowExecutionOptions": update_workflow_execution_options,
}
