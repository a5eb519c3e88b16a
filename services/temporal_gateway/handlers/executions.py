"""Workflow executions: started, signalled, cancelled, terminated, deleted."""

from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.enums import WorkflowIDConflictPolicy
from stepwell.api.errors import Unimplemented
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from .. import workers
from ..attribute_types import give_types
from ..callbacks import callbacks_of
from ..gateway import Call, Gateway, Handlers
from ..payloads import map_of, payloads_of
from ..policies import conflict_policy, reuse_policy
from ..records import execution_of, priority_of, retry_policy_of, user_metadata_of
from ..times import task_timeout_of, timedelta_of
from .tasks import to_workflow_task

_RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING

Start = pb.StartWorkflowExecutionRequest | pb.SignalWithStartWorkflowExecutionRequest


def start_fields(request: Start, unspecified: WorkflowIDConflictPolicy) -> dict[str, Any]:
    """The fields of our record for any call that may start a workflow. Raises Unimplemented for what would be lost."""
    if request.HasField("versioning_override"):
        raise Unimplemented("versioning_override is not supported by this server; start the workflow without it")
    return {
        "namespace": request.namespace,
        "workflow_id": request.workflow_id,
        "workflow_type": request.workflow_type.name,
        "task_queue": request.task_queue.name,
        "input": payloads_of(request.input),
        "workflow_execution_timeout": timedelta_of(request.workflow_execution_timeout),
        "workflow_run_timeout": timedelta_of(request.workflow_run_timeout),
        "workflow_task_timeout": task_timeout_of(request.workflow_task_timeout),
        "identity": request.identity,
        "request_id": request.request_id,
        "workflow_id_reuse_policy": reuse_policy(request.workflow_id_reuse_policy),
        "workflow_id_conflict_policy": conflict_policy(
            request.workflow_id_conflict_policy, request.workflow_id_reuse_policy, unspecified
        ),
        "memo": map_of(request.memo.fields),
        "search_attributes": map_of(request.search_attributes.indexed_fields),
        "headers": map_of(request.header.fields),
        "retry_policy": retry_policy_of(request.retry_policy) if request.HasField("retry_policy") else None,
        "cron_schedule": request.cron_schedule,
        "workflow_start_delay": timedelta_of(request.workflow_start_delay),
        "user_metadata": user_metadata_of(request.user_metadata),
        "priority": priority_of(request.priority),
    }


def attached_fields(request: pb.StartWorkflowExecutionRequest) -> dict[str, Any]:
    """What of a start alone may be attached to an open run too."""
    conflict = request.on_conflict_options
    attach = r.OnConflictOptions(
        attach_request_id=conflict.attach_request_id,
        attach_completion_callbacks=conflict.attach_completion_callbacks,
    )
    return {
        "on_conflict_options": attach if attach != r.OnConflictOptions() else None,
        "completion_callbacks": callbacks_of(request.completion_callbacks),
    }


def start_request(request: pb.StartWorkflowExecutionRequest) -> r.StartWorkflowRequest:
    eager = request.request_eager_execution
    return r.StartWorkflowRequest(
        **start_fields(request, WorkflowIDConflictPolicy.FAIL),
        eager_worker=workers.worker(request.identity) if eager else None,
        **attached_fields(request),
    )


async def start_workflow_execution(
    gateway: Gateway, request: pb.StartWorkflowExecutionRequest, call: Call
) -> pb.StartWorkflowExecutionResponse:
    await give_types(gateway, request.namespace, request.search_attributes.indexed_fields)
    answer = await gateway.call(o.START_WORKFLOW, start_request(request))
    task = answer.eager_workflow_task
    return pb.StartWorkflowExecutionResponse(
        run_id=answer.run_id,
        first_execution_run_id=answer.first_execution_run_id,
        started=answer.started,
        status=_RUNNING,
        eager_workflow_task=(
            None if task is None else await to_workflow_task(gateway, request.namespace, task, request.identity)
        ),
    )


async def signal_with_start_workflow_execution(
    gateway: Gateway, request: pb.SignalWithStartWorkflowExecutionRequest, call: Call
) -> pb.SignalWithStartWorkflowExecutionResponse:
    await give_types(gateway, request.namespace, request.search_attributes.indexed_fields)
    asked = r.SignalWithStartWorkflowRequest(
        **start_fields(request, WorkflowIDConflictPolicy.USE_EXISTING),
        signal_name=request.signal_name,
        signal_input=payloads_of(request.signal_input),
        signal_headers=map_of(request.header.fields),
    )
    answer = await gateway.call(o.SIGNAL_WITH_START_WORKFLOW, asked)
    return pb.SignalWithStartWorkflowExecutionResponse(
        run_id=answer.run_id, first_execution_run_id=answer.first_execution_run_id, started=answer.started
    )


async def signal_workflow_execution(
    gateway: Gateway, request: pb.SignalWorkflowExecutionRequest, call: Call
) -> pb.SignalWorkflowExecutionResponse:
    await gateway.call(
        o.SIGNAL_WORKFLOW,
        r.SignalWorkflowRequest(
            namespace=request.namespace,
            execution=execution_of(request.workflow_execution),
            signal_name=request.signal_name,
            input=payloads_of(request.input),
            identity=request.identity,
            request_id=request.request_id,
            headers=map_of(request.header.fields),
        ),
    )
    return pb.SignalWorkflowExecutionResponse()


async def request_cancel_workflow_execution(
    gateway: Gateway, request: pb.RequestCancelWorkflowExecutionRequest, call: Call
) -> pb.RequestCancelWorkflowExecutionResponse:
    await gateway.call(
        o.CANCEL_WORKFLOW,
        r.CancelWorkflowRequest(
            namespace=request.namespace,
            execution=execution_of(request.workflow_execution),
            reason=request.reason,
            identity=request.identity,
            request_id=request.request_id,
            first_execution_run_id=request.first_execution_run_id,
        ),
    )
    return pb.RequestCancelWorkflowExecutionResponse()


async def terminate_workflow_execution(
    gateway: Gateway, request: pb.TerminateWorkflowExecutionRequest, call: Call
) -> pb.TerminateWorkflowExecutionResponse:
    await gateway.call(
        o.TERMINATE_WORKFLOW,
        r.TerminateWorkflowRequest(
            namespace=request.namespace,
            execution=execution_of(request.workflow_execution),
            reason=request.reason,
            details=payloads_of(request.details),
            identity=request.identity,
            first_execution_run_id=request.first_execution_run_id,
        ),
    )
    return pb.TerminateWorkflowExecutionResponse()


async def delete_workflow_execution(
    gateway: Gateway, request: pb.DeleteWorkflowExecutionRequest, call: Call
) -> pb.DeleteWorkflowExecutionResponse:
    asked = r.DeleteWorkflowRequest(namespace=request.namespace, execution=execution_of(request.workflow_execution))
    await gateway.call(o.DELETE_WORKFLOW, asked)
    return pb.DeleteWorkflowExecutionResponse()


HANDLERS: Handlers = {
    "StartWorkflowExecution": start_workflow_execution,
    "SignalWithStartWorkflowExecution": signal_with_start_workflow_execution,
    "SignalWorkflowExecution": signal_workflow_execution,
    "RequestCancelWorkflowExecution": request_cancel_workflow_execution,
    "TerminateWorkflowExecution": terminate_workflow_execution,
    "DeleteWorkflowExecution": delete_workflow_execution,
}
