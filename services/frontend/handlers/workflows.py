"""What clients ask of workflows: start, signal, query, cancel, terminate, reset, describe, history."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation, validation_import


async def start_workflow(engine: Engine, request: r.StartWorkflowRequest) -> r.StartWorkflowResponse:
    validation.start_workflow(request)
    return await engine.start_workflow(request)


async def signal_with_start_workflow(
    engine: Engine, request: r.SignalWithStartWorkflowRequest
) -> r.SignalWithStartWorkflowResponse:
    validation.signal_with_start_workflow(request)
    return await engine.signal_with_start_workflow(request)


async def update_with_start_workflow(
    engine: Engine, request: r.UpdateWithStartWorkflowRequest
) -> r.UpdateWithStartWorkflowResponse:
    validation.update_with_start_workflow(request)
    return await engine.update_with_start_workflow(request)


async def signal_workflow(engine: Engine, request: r.SignalWorkflowRequest) -> r.SignalWorkflowResponse:
    validation.signal_workflow(request)
    return await engine.signal_workflow(request)


async def query_workflow(engine: Engine, request: r.QueryWorkflowRequest) -> r.QueryWorkflowResponse:
    validation.query_workflow(request)
    return await engine.query_workflow(request)


async def update_workflow(engine: Engine, request: r.UpdateWorkflowRequest) -> r.UpdateWorkflowResponse:
    validation.update_workflow(request)
    return await engine.update_workflow(request)


async def poll_workflow_update(engine: Engine, request: r.PollWorkflowUpdateRequest) -> r.PollWorkflowUpdateResponse:
    validation.poll_workflow_update(request)
    return await engine.poll_workflow_update(request)


async def cancel_workflow(engine: Engine, request: r.CancelWorkflowRequest) -> r.CancelWorkflowResponse:
    validation.cancel_workflow(request)
    return await engine.cancel_workflow(request)


async def terminate_workflow(engine: Engine, request: r.TerminateWorkflowRequest) -> r.TerminateWorkflowResponse:
    validation.terminate_workflow(request)
    return await engine.terminate_workflow(request)


async def delete_workflow(engine: Engine, request: r.DeleteWorkflowRequest) -> r.DeleteWorkflowResponse:
    validation.delete_workflow(request)
    return await engine.delete_workflow(request)


async def pause_workflow(engine: Engine, request: r.PauseWorkflowRequest) -> r.PauseWorkflowResponse:
    validation.pause_workflow(request)
    return await engine.pause_workflow(request)


async def unpause_workflow(engine: Engine, request: r.UnpauseWorkflowRequest) -> r.UnpauseWorkflowResponse:
    validation.pause_workflow(request)
    return await engine.unpause_workflow(request)


async def reset_worker_affinity(engine: Engine, request: r.ResetWorkerAffinityRequest) -> r.ResetWorkerAffinityResponse:
    validation.execution(request.namespace, request.execution)
    return await engine.reset_worker_affinity(request)


async def update_workflow_options(
    engine: Engine, request: r.UpdateWorkflowOptionsRequest
) -> r.UpdateWorkflowOptionsResponse:
    validation.update_workflow_options(request)
    return await engine.update_workflow_options(request)


async def reset_workflow(engine: Engine, request: r.ResetWorkflowRequest) -> r.ResetWorkflowResponse:
    validation.reset_workflow(request)
    return await engine.reset_workflow(request)


async def import_workflow(engine: Engine, request: r.ImportWorkflowRequest) -> r.ImportWorkflowResponse:
    validation_import.import_workflow(request)
    return await engine.import_workflow(request)


async def describe_workflow(engine: Engine, request: r.DescribeWorkflowRequest) -> r.DescribeWorkflowResponse:
    validation.describe_workflow(request)
    return await engine.describe_workflow(request)


async def get_history(engine: Engine, request: r.GetHistoryRequest) -> r.GetHistoryResponse:
    validation.get_history(request)
    return await engine.get_history(request)
