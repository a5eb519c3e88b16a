"""Activities: polled, ended, heartbeats; by task token or by their ids."""

from datetime import timedelta

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import ErrorBody, error_from
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from .. import workers
from ..failures import failure_of
from ..gateway import Call, Gateway, Handlers
from ..payloads import payloads_of, to_header, to_payloads
from ..records import to_execution, to_priority, to_retry_policy
from ..times import duration, optional_duration, timestamp


async def poll_activity_task_queue(
    gateway: Gateway, request: pb.PollActivityTaskQueueRequest, call: Call
) -> pb.PollActivityTaskQueueResponse:
    """Without a worker key: what is pushed to workers by their polls comes to these by heartbeats."""
    limit = request.task_queue_metadata.max_tasks_per_second
    asked = r.PollActivityTaskRequest(
        namespace=request.namespace,
        task_queue=request.task_queue.name,
        worker=workers.worker(request.identity, build_id=request.deployment_options.build_id),
        timeout=call.wait(),
        max_tasks_per_second=limit.value if limit.value > 0 else None,
    )
    answer = await gateway.call(o.POLL_ACTIVITY_TASK, asked)
    return to_activity_task(request.namespace, answer.tasks[0]) if answer.tasks else pb.PollActivityTaskQueueResponse()


def to_activity_task(namespace: str, task: r.ActivityTask) -> pb.PollActivityTaskQueueResponse:
    """A limit that is not set is zero, as their servers write it: the TypeScript SDK takes no task without it."""
    alone = bool(task.activity_run_id)
    return pb.PollActivityTaskQueueResponse(
        task_token=task.task_token,
        workflow_namespace=namespace,
        workflow_type=None if alone else common_pb2.WorkflowType(name=task.workflow_type),
        workflow_execution=None if alone else to_execution(task.execution),
        activity_run_id=task.activity_run_id,
        activity_type=common_pb2.ActivityType(name=task.activity_type),
        activity_id=task.activity_id,
        header=to_header(task.headers),
        input=to_payloads(task.input),
        heartbeat_details=to_payloads(task.heartbeat_details),
        scheduled_time=timestamp(task.scheduled_time),
        current_attempt_scheduled_time=timestamp(task.current_attempt_scheduled_time),
        started_time=timestamp(task.started_time),
        attempt=task.attempt,
        schedule_to_close_timeout=duration(task.schedule_to_close_timeout or timedelta()),
        start_to_close_timeout=duration(task.start_to_close_timeout or timedelta()),
        heartbeat_timeout=optional_duration(task.heartbeat_timeout),
        retry_policy=to_retry_policy(task.retry_policy),
        priority=to_priority(task.priority),
    )


async def _respond(gateway: Gateway, namespace: str, identity: str, outcome: r.ActivityOutcome) -> None:
    """Raises what is said against the outcome."""
    asked = r.RespondActivityTasksRequest(namespace=namespace, worker=workers.worker(identity), outcomes=(outcome,))
    answer = await gateway.call(o.RESPOND_ACTIVITY_TASKS, asked)
    for reply in answer.replies:
        if reply.error_code:
            raise error_from(ErrorBody(code=reply.error_code, message=reply.message))


async def _respond_by_id(gateway: Gateway, request: "_ById", outcome: r.ActivityOutcome) -> None:
    """Without a workflow id: of an activity that has none."""
    asked = r.RespondActivityByIdRequest(
        namespace=request.namespace,
        execution=_named(request),
        activity_id=request.activity_id,
        outcome=outcome,
        identity=request.identity,
    )
    of_workflow = bool(request.workflow_id)
    await gateway.call(o.RESPOND_ACTIVITY_BY_ID if of_workflow else o.COMPLETE_STANDALONE_ACTIVITY, asked)


_ById = (
    pb.RespondActivityTaskCompletedByIdRequest
    | pb.RespondActivityTaskFailedByIdRequest
    | pb.RespondActivityTaskCanceledByIdRequest
    | pb.RecordActivityTaskHeartbeatByIdRequest
)


def _named(request: _ById) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id)


def _failed(
    request: pb.RespondActivityTaskFailedRequest | pb.RespondActivityTaskFailedByIdRequest, token: bytes
) -> r.ActivityFailed:
    return r.ActivityFailed(
        task_token=token,
        failure=failure_of(request.failure),
        last_heartbeat_details=payloads_of(request.last_heartbeat_details),
    )


async def respond_activity_task_completed(
    gateway: Gateway, request: pb.RespondActivityTaskCompletedRequest, call: Call
) -> pb.RespondActivityTaskCompletedResponse:
    outcome = r.ActivityCompleted(task_token=request.task_token, result=payloads_of(request.result))
    await _respond(gateway, request.namespace, request.identity, outcome)
    return pb.RespondActivityTaskCompletedResponse()


async def respond_activity_task_failed(
    gateway: Gateway, request: pb.RespondActivityTaskFailedRequest, call: Call
) -> pb.RespondActivityTaskFailedResponse:
    await _respond(gateway, request.namespace, request.identity, _failed(request, request.task_token))
    return pb.RespondActivityTaskFailedResponse()


async def respond_activity_task_canceled(
    gateway: Gateway, request: pb.RespondActivityTaskCanceledRequest, call: Call
) -> pb.RespondActivityTaskCanceledResponse:
    outcome = r.ActivityCanceled(task_token=request.task_token, details=payloads_of(request.details))
    await _respond(gateway, request.namespace, request.identity, outcome)
    return pb.RespondActivityTaskCanceledResponse()


async def respond_activity_task_completed_by_id(
    gateway: Gateway, request: pb.RespondActivityTaskCompletedByIdRequest, call: Call
) -> pb.RespondActivityTaskCompletedByIdResponse:
    await _respond_by_id(gateway, request, r.ActivityCompleted(task_token=b"", result=payloads_of(request.result)))
    return pb.RespondActivityTaskCompletedByIdResponse()


async def respond_activity_task_failed_by_id(
    gateway: Gateway, request: pb.RespondActivityTaskFailedByIdRequest, call: Call
) -> pb.RespondActivityTaskFailedByIdResponse:
    await _respond_by_id(gateway, request, _failed(request, b""))
    return pb.RespondActivityTaskFailedByIdResponse()


async def respond_activity_task_canceled_by_id(
    gateway: Gateway, request: pb.RespondActivityTaskCanceledByIdRequest, call: Call
) -> pb.RespondActivityTaskCanceledByIdResponse:
    await _respond_by_id(gateway, request, r.ActivityCanceled(task_token=b"", details=payloads_of(request.details)))
    return pb.RespondActivityTaskCanceledByIdResponse()


async def record_activity_task_heartbeat(
    gateway: Gateway, request: pb.RecordActivityTaskHeartbeatRequest, call: Call
) -> pb.RecordActivityTaskHeartbeatResponse:
    answer = await gateway.call(
        o.RECORD_ACTIVITY_HEARTBEAT,
        r.RecordActivityHeartbeatRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            details=payloads_of(request.details),
            identity=request.identity,
        ),
    )
    return pb.RecordActivityTaskHeartbeatResponse(
        cancel_requested=answer.cancel_requested, activity_paused=answer.paused, activity_reset=answer.reset
    )


async def record_activity_task_heartbeat_by_id(
    gateway: Gateway, request: pb.RecordActivityTaskHeartbeatByIdRequest, call: Call
) -> pb.RecordActivityTaskHeartbeatByIdResponse:
    asked = r.RecordActivityHeartbeatByIdRequest(
        namespace=request.namespace,
        execution=_named(request),
        activity_id=request.activity_id,
        details=payloads_of(request.details),
        identity=request.identity,
    )
    of_workflow = bool(request.workflow_id)
    answer = await gateway.call(
        o.RECORD_ACTIVITY_HEARTBEAT_BY_ID if of_workflow else o.RECORD_STANDALONE_ACTIVITY_HEARTBEAT, asked
    )
    return pb.RecordActivityTaskHeartbeatByIdResponse(
        cancel_requested=answer.cancel_requested, activity_paused=answer.paused, activity_reset=answer.reset
    )


HANDLERS: Handlers = {
    "PollActivityTaskQueue": poll_activity_task_queue,
    "RespondActivityTaskCompleted": respond_activity_task_completed,
    "RespondActivityTaskFailed": respond_activity_task_failed,
    "RespondActivityTaskCanceled": respond_activity_task_canceled,
    "RespondActivityTaskCompletedById": respond_activity_task_completed_by_id,
    "RespondActivityTaskFailedById": respond_activity_task_failed_by_id,
    "RespondActivityTaskCanceledById": respond_activity_task_canceled_by_id,
    "RecordActivityTaskHeartbeat": record_activity_task_heartbeat,
    "RecordActivityTaskHeartbeatById": record_activity_task_heartbeat_by_id,
}
