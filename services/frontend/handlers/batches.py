"""Batch operations: started, looked at, stopped."""

from stepwell.api import requests as r

from ...batcher.batches import Batches
from ...history.engine import Engine
from .. import validation_batches as validation


async def start_batch_operation(engine: Engine, request: r.StartBatchOperationRequest) -> r.StartBatchOperationResponse:
    validation.start_batch_operation(request)
    return await engine.attached(Batches).start(request)


async def describe_batch_operation(
    engine: Engine, request: r.DescribeBatchOperationRequest
) -> r.DescribeBatchOperationResponse:
    validation.job(request.namespace, request.job_id)
    return await engine.attached(Batches).describe(request)


async def stop_batch_operation(engine: Engine, request: r.StopBatchOperationRequest) -> r.StopBatchOperationResponse:
    validation.stop_batch_operation(request)
    return await engine.attached(Batches).stop(request)


async def list_batch_operations(engine: Engine, request: r.ListBatchOperationsRequest) -> r.ListBatchOperationsResponse:
    after, limit = validation.list_batch_operations(request)
    found = await engine.attached(Batches).page(request.namespace, after, limit + 1)
    more = found[limit - 1].job_id.encode() if len(found) > limit else b""
    return r.ListBatchOperationsResponse(operations=tuple(found[:limit]), next_page_token=more)
