"""Workflow tasks: polled, completed, failed; and what a worker says when it stops."""

from collections.abc import Sequence
from hashlib import sha256

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.commands import Command
from stepwell.api.common import SdkMetadata
from stepwell.api.enums import CompletionOutcome, WorkflowTaskFailedCause
from stepwell.api.errors import InvalidArgument, NotFound
from stepwell.api.failures import Failure, ServerFailureInfo
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import WorkflowTaskFailedCause as PbCause
from temporalio.api.query.v1 import message_pb2 as query_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from .. import eager, workers
from ..attribute_types import attributes_of, give_types
from ..commands import UnknownCommand, commands_of
from ..errors import UNHANDLED_COMMAND
from ..events import to_history
from ..failures import failure_of
from ..gateway import Call, Gateway, Handlers
from ..payloads import to_header, to_payloads
from ..records import to_execution, to_task_queue
from ..remembered import TaskOf
from ..task_history import drop_shown, first_page
from ..times import timestamp
from ..update_records import to_messages
from .activities import to_activity_task


async def poll_workflow_task_queue(
    gateway: Gateway, request: pb.PollWorkflowTaskQueueRequest, call: Call
) -> pb.PollWorkflowTaskQueueResponse:
    queue = workers.polled(request.task_queue, request.worker_instance_key)
    asked = r.PollWorkflowTaskRequest(
        namespace=request.namespace,
        task_queue=queue.name,
        worker=workers.worker(request.identity, queue.worker_key, request.deployment_options.build_id),
        timeout=call.wait(),
    )
    answer = await gateway.call(o.POLL_WORKFLOW_TASK, asked)
    if not answer.tasks:
        return pb.PollWorkflowTaskQueueResponse()
    try:
        return await to_workflow_task(gateway, request.namespace, answer.tasks[0], request.identity)
    except BaseException:
        await gateway.calls.undelivered(answer)
        raise


async def to_workflow_task(
    gateway: Gateway, namespace: str, task: r.WorkflowTask, identity: str
) -> pb.PollWorkflowTaskQueueResponse:
    page = await first_page(gateway, namespace, task)
    query = None
    if task.query is None:
        gateway.given_out.keep(task.task_token, TaskOf(task.execution, task.workflow_type))
    else:
        query = query_pb2.WorkflowQuery(
            query_type=task.query.query_type,
            query_args=to_payloads(task.query.query_args),
            header=to_header(task.query.headers),
        )
    return pb.PollWorkflowTaskQueueResponse(
        task_token=task.task_token,
        workflow_execution=to_execution(task.execution),
        workflow_type=common_pb2.WorkflowType(name=task.workflow_type),
        previous_started_event_id=task.previous_started_event_id,
        started_event_id=0 if task.query is not None else task.started_event_id,
        attempt=task.attempt,
        history=to_history(page.events, namespace, "" if page.next_page_token else identity),
        next_page_token=page.next_page_token,
        query=query,
        workflow_execution_task_queue=to_task_queue(task.task_queue),
        scheduled_time=timestamp(task.scheduled_time),
        started_time=timestamp(task.started_time),
        messages=to_messages(task.updates),
    )


async def respond_workflow_task_completed(
    gateway: Gateway, request: pb.RespondWorkflowTaskCompletedRequest, call: Call
) -> pb.RespondWorkflowTaskCompletedResponse:
    worker = _completing(request)
    # The same request again is the same completion: its answer was lost.
    nonce = sha256(request.SerializeToString(deterministic=True)).hexdigest()
    commands = await _commands(gateway, request, worker)
    task = gateway.given_out.get(request.task_token)
    drop_shown(gateway, request.namespace, request.task_token)
    answer = await gateway.call(
        o.RESPOND_WORKFLOW_TASK_COMPLETED,
        r.RespondWorkflowTaskCompletedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            nonce=nonce,
            worker=worker,
            commands=commands,
            sdk_metadata=_sdk_metadata(request),
            eager_activities=None if task is None else eager.asked_for(commands),
            force_new_workflow_task=request.force_create_new_workflow_task,
            return_new_workflow_task=request.return_new_workflow_task,
        ),
    )
    match answer.outcome:
        case CompletionOutcome.ACCEPTED:
            gateway.given_out.drop(request.task_token)
            return await _accepted(gateway, request, answer, commands, task)
        case CompletionOutcome.DROPPED:
            return pb.RespondWorkflowTaskCompletedResponse(reset_history_event_id=answer.started_event_id)
        case CompletionOutcome.STALE:
            raise NotFound(answer.message or "workflow task not found: the run has moved on")
        case CompletionOutcome.UNSEEN_EVENTS:
            raise InvalidArgument(UNHANDLED_COMMAND)
        case CompletionOutcome.FAILED:
            raise InvalidArgument(answer.message or UNHANDLED_COMMAND)


async def _accepted(
    gateway: Gateway,
    request: pb.RespondWorkflowTaskCompletedRequest,
    answer: r.RespondWorkflowTaskCompletedResponse,
    commands: Sequence[Command],
    task: TaskOf | None,
) -> pb.RespondWorkflowTaskCompletedResponse:
    following = None
    if answer.workflow_task is not None:
        following = await to_workflow_task(gateway, request.namespace, answer.workflow_task, request.identity)
    activities = []
    if task is not None and answer.commit_time is not None:
        activities = eager.tasks(answer.leases, commands, task, answer.commit_time)
    return pb.RespondWorkflowTaskCompletedResponse(
        workflow_task=following,
        activity_tasks=[to_activity_task(request.namespace, activity) for activity in activities],
    )


def _completing(request: pb.RespondWorkflowTaskCompletedRequest) -> r.WorkerInfo:
    key = workers.completing_key(request.sticky_attributes, request.worker_instance_key)
    build = request.deployment_options.build_id or request.worker_version_stamp.build_id or request.binary_checksum
    return workers.worker(request.identity, key, build)


async def _commands(
    gateway: Gateway, request: pb.RespondWorkflowTaskCompletedRequest, worker: r.WorkerInfo
) -> tuple[Command, ...]:
    """Commands that are none of ours fail the workflow task, as every command does that cannot be carried out."""
    await give_types(gateway, request.namespace, *attributes_of(request.commands))
    try:
        return commands_of(request.commands, request.messages)
    except (UnknownCommand, InvalidArgument) as error:
        await gateway.call(
            o.RESPOND_WORKFLOW_TASK_FAILED,
            r.RespondWorkflowTaskFailedRequest(
                namespace=request.namespace,
                task_token=request.task_token,
                worker=worker,
                cause=WorkflowTaskFailedCause.FEATURE_DISABLED,
                failure=Failure(message=str(error), info=ServerFailureInfo(non_retryable=True)),
            ),
        )
        raise InvalidArgument(str(error)) from error


def _sdk_metadata(request: pb.RespondWorkflowTaskCompletedRequest) -> SdkMetadata | None:
    if not request.HasField("sdk_metadata"):
        return None
    said = request.sdk_metadata
    return SdkMetadata(
        flags=tuple(said.lang_used_flags),
        sdk_name=said.sdk_name,
        sdk_version=said.sdk_version,
        core_flags=tuple(said.core_used_flags),
    )


async def respond_workflow_task_failed(
    gateway: Gateway, request: pb.RespondWorkflowTaskFailedRequest, call: Call
) -> pb.RespondWorkflowTaskFailedResponse:
    drop_shown(gateway, request.namespace, request.task_token)
    await gateway.call(
        o.RESPOND_WORKFLOW_TASK_FAILED,
        r.RespondWorkflowTaskFailedRequest(
            namespace=request.namespace,
            task_token=request.task_token,
            worker=workers.worker(request.identity, build_id=request.deployment_options.build_id),
            cause=_cause(request.cause),
            failure=failure_of(request.failure),
        ),
    )
    return pb.RespondWorkflowTaskFailedResponse()


_PREFIX = "WORKFLOW_TASK_FAILED_CAUSE_"
_OURS = {cause.value: cause for cause in WorkflowTaskFailedCause}
_OURS["GRPC_MESSAGE_TOO_LARGE"] = WorkflowTaskFailedCause.REQUEST_TOO_LARGE


def _cause(value: "PbCause.ValueType") -> WorkflowTaskFailedCause:
    """What only they tell apart is a failure of the worker."""
    name = PbCause.Name(value) if value in PbCause.values() else ""
    return _OURS.get(name.removeprefix(_PREFIX), WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE)


async def shutdown_worker(gateway: Gateway, request: pb.ShutdownWorkerRequest, call: Call) -> pb.ShutdownWorkerResponse:
    """Older SDKs do not say which queue they served; then its polls end by themselves."""
    key = request.worker_instance_key or request.sticky_task_queue
    if request.task_queue and key:
        asked = r.ShutdownWorkerRequest(
            namespace=request.namespace, task_queue=request.task_queue, worker=workers.worker(request.identity, key)
        )
        await gateway.call(o.SHUTDOWN_WORKER, asked)
    return pb.ShutdownWorkerResponse()


HANDLERS: Handlers = {
    "PollWorkflowTaskQueue": poll_workflow_task_queue,
    "RespondWorkflowTaskCompleted": respond_workflow_task_completed,
    "RespondWorkflowTaskFailed": respond_workflow_task_failed,
    "ShutdownWorker": shutdown_worker,
}
