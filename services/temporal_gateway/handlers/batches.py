"""Batch operations: one thing done to many workflows."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.limits import MAX_BATCH_RATE, MAX_LIST_PAGE
from temporalio.api.batch.v1 import message_pb2 as batch_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..batch_records import executions_of, operation_of, to_state, to_type
from ..gateway import Call, Gateway, Handlers
from ..search import query_of
from ..times import timestamp


async def start_batch_operation(
    gateway: Gateway, request: pb.StartBatchOperationRequest, call: Call
) -> pb.StartBatchOperationResponse:
    """A rate above the highest is the highest, as theirs is."""
    operation, identity = operation_of(request)
    asked = r.StartBatchOperationRequest(
        namespace=request.namespace,
        job_id=request.job_id,
        operation=operation,
        executions=executions_of(request),
        query=query_of(request.visibility_query),
        reason=request.reason,
        identity=identity,
        max_operations_per_second=min(request.max_operations_per_second, MAX_BATCH_RATE),
    )
    await gateway.call(o.START_BATCH_OPERATION, asked)
    return pb.StartBatchOperationResponse()


async def describe_batch_operation(
    gateway: Gateway, request: pb.DescribeBatchOperationRequest, call: Call
) -> pb.DescribeBatchOperationResponse:
    asked = r.DescribeBatchOperationRequest(namespace=request.namespace, job_id=request.job_id)
    answer = await gateway.call(o.DESCRIBE_BATCH_OPERATION, asked)
    info = answer.info
    return pb.DescribeBatchOperationResponse(
        operation_type=to_type(info.operation_type),
        job_id=info.job_id,
        state=to_state(info.state),
        start_time=timestamp(info.start_time),
        close_time=None if info.close_time is None else timestamp(info.close_time),
        total_operation_count=info.total_operation_count,
        complete_operation_count=info.complete_operation_count,
        failure_operation_count=info.failure_operation_count,
        identity=answer.identity,
        reason=answer.reason,
        query=answer.query,
    )


async def stop_batch_operation(
    gateway: Gateway, request: pb.StopBatchOperationRequest, call: Call
) -> pb.StopBatchOperationResponse:
    asked = r.StopBatchOperationRequest(
        namespace=request.namespace, job_id=request.job_id, reason=request.reason, identity=request.identity
    )
    await gateway.call(o.STOP_BATCH_OPERATION, asked)
    return pb.StopBatchOperationResponse()


async def list_batch_operations(
    gateway: Gateway, request: pb.ListBatchOperationsRequest, call: Call
) -> pb.ListBatchOperationsResponse:
    asked = r.ListBatchOperationsRequest(
        namespace=request.namespace,
        page_size=min(request.page_size, MAX_LIST_PAGE),
        next_page_token=request.next_page_token,
    )
    answer = await gateway.call(o.LIST_BATCH_OPERATIONS, asked)
    return pb.ListBatchOperationsResponse(
        operation_info=[
            batch_pb2.BatchOperationInfo(
                job_id=info.job_id,
                state=to_state(info.state),
                start_time=timestamp(info.start_time),
                close_time=None if info.close_time is None else timestamp(info.close_time),
                operation_type=to_type(info.operation_type),
            )
            for info in answer.operations
        ],
        next_page_token=answer.next_page_token,
    )


HANDLERS: Handlers = {
    "StartBatchOperation": start_batch_operation,
    "DescribeBatchOperation": describe_batch_operation,
    "StopBatchOperation": stop_batch_operation,
    "ListBatchOperations": list_batch_operations,
}
