"""Queries, from both sides. Each is a task of its own to its worker, as their servers send them to older ones."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.enums import QueryRejectCondition, WorkflowExecutionStatus
from stepwell.api.errors import QueryRejected
from stepwell.api.failures import ApplicationFailureInfo, Failure
from temporalio.api.enums.v1 import QueryRejectCondition as PbCondition
from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.enums.v1 import WorkflowExecutionStatus as PbStatus
from temporalio.api.query.v1 import message_pb2 as query_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..failures import failure_of
from ..gateway import Call, Gateway, Handlers
from ..names import member, number
from ..payloads import map_of, payloads_of, to_payloads
from ..records import execution_of


async def query_workflow(gateway: Gateway, request: pb.QueryWorkflowRequest, call: Call) -> pb.QueryWorkflowResponse:
    asked = r.QueryWorkflowRequest(
        namespace=request.namespace,
        execution=execution_of(request.execution),
        query_type=request.query.query_type,
        query_args=payloads_of(request.query.query_args),
        headers=map_of(request.query.header.fields),
        query_reject_condition=member(
            request.query_reject_condition,
            QueryRejectCondition,
            "QUERY_REJECT_CONDITION_",
            PbCondition,
            field="query_reject_condition",
            unspecified=QueryRejectCondition.NONE,
        ),
        timeout=call.wait(),
        wait_for_worker=True,
    )
    try:
        answer = await gateway.call(o.QUERY_WORKFLOW, asked)
    except QueryRejected as error:
        status: PbStatus.ValueType = number(
            WorkflowExecutionStatus(error.details["status"]), "WORKFLOW_EXECUTION_STATUS_", PbStatus
        )
        return pb.QueryWorkflowResponse(query_rejected=query_pb2.QueryRejected(status=status))
    response = pb.QueryWorkflowResponse(query_result=to_payloads(answer.result))
    response.query_result.SetInParent()
    return response


async def respond_query_task_completed(
    gateway: Gateway, request: pb.RespondQueryTaskCompletedRequest, call: Call
) -> pb.RespondQueryTaskCompletedResponse:
    failure = None
    if request.completed_type == QueryResultType.QUERY_RESULT_TYPE_FAILED:
        failure = failure_of(request.failure) if request.HasField("failure") else None
        if failure is None or not failure.message:
            failure = Failure(message=request.error_message, info=ApplicationFailureInfo())
    asked = r.RespondQueryTaskCompletedRequest(
        namespace=request.namespace,
        task_token=request.task_token,
        result=() if failure is not None else payloads_of(request.query_result),
        failure=failure,
    )
    await gateway.call(o.RESPOND_QUERY_TASK_COMPLETED, asked)
    return pb.RespondQueryTaskCompletedResponse()


HANDLERS: Handlers = {
    "QueryWorkflow": query_workflow,
    "RespondQueryTaskCompleted": respond_query_task_completed,
}
