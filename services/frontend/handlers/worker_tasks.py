"""What workers ask and report: polls, completions, heartbeats. Reports are made to fit the limits, not refused."""

import asyncio
from collections.abc import Awaitable

import msgspec
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.limits import MAX_PAYLOAD_BYTES

from ...history.engine import Engine
from .. import outcomes, validation
from ..refusals import api_error


async def poll_workflow_task(engine: Engine, request: r.PollWorkflowTaskRequest) -> r.PollWorkflowTaskResponse:
    validation.poll_workflow_task(request)
    return await engine.poll_workflow_task(request)


async def start_workflow_task(engine: Engine, request: r.StartWorkflowTaskRequest) -> r.StartWorkflowTaskResponse:
    validation.start_task(request)
    return await engine.start_workflow_task(request)


def respond_workflow_task_completed(
    engine: Engine, request: r.RespondWorkflowTaskCompletedRequest
) -> Awaitable[r.RespondWorkflowTaskCompletedResponse]:
    """Refuses at once, and not when it is awaited."""
    validation.respond_workflow_task_completed(request)
    if request.activity_outcomes:
        fitted = outcomes.fit_outcomes(request.activity_outcomes)
        if fitted is not request.activity_outcomes:
            request = msgspec.structs.replace(request, activity_outcomes=fitted)
    return engine.respond_workflow_task_completed(request)


async def respond_workflow_tasks_completed(
    engine: Engine, request: r.RespondWorkflowTasksCompletedRequest
) -> r.RespondWorkflowTasksCompletedResponse:
    """Side by side, so that they share the store's group commit."""
    validation.respond_workflow_tasks_completed(request)
    answers = await asyncio.gather(*[_completion(engine, completion) for completion in request.completions])
    return r.RespondWorkflowTasksCompletedResponse(answers=tuple(answers))


async def _completion(engine: Engine, request: r.RespondWorkflowTaskCompletedRequest) -> r.CompletionAnswer:
    try:
        response = await respond_workflow_task_completed(engine, request)
    except Exception as error:
        return r.CompletionAnswer(error=api_error(error, o.RESPOND_WORKFLOW_TASK_COMPLETED.name).body())
    return r.CompletionAnswer(response=response)


async def respond_workflow_task_failed(
    engine: Engine, request: r.RespondWorkflowTaskFailedRequest
) -> r.RespondWorkflowTaskFailedResponse:
    validation.respond_workflow_task_failed(request)
    failure = outcomes.fit_failure(request.failure)
    fitted = outcomes.fit_outcomes(request.activity_outcomes)
    if failure is not request.failure or fitted is not request.activity_outcomes:
        request = msgspec.structs.replace(request, failure=failure, activity_outcomes=fitted)
    return await engine.respond_workflow_task_failed(request)


async def respond_query_task_completed(
    engine: Engine, request: r.RespondQueryTaskCompletedRequest
) -> r.RespondQueryTaskCompletedResponse:
    validation.respond_query_task_completed(request)
    failure = request.failure
    if failure is not None:
        failure = outcomes.fit_failure(failure)
    size = outcomes.payload_bytes(request.result)
    if size > MAX_PAYLOAD_BYTES:
        failure = outcomes.too_large("query result", size)
    if failure is not request.failure:
        request = msgspec.structs.replace(request, result=(), failure=failure)
    return await engine.respond_query_task_completed(request)


async def poll_activity_task(engine: Engine, request: r.PollActivityTaskRequest) -> r.PollActivityTaskResponse:
    validation.poll_activity_task(request)
    return await engine.poll_activity_task(request)


async def start_activity_task(engine: Engine, request: r.StartActivityTaskRequest) -> r.StartActivityTaskResponse:
    validation.start_task(request)
    return await engine.start_activity_task(request)


async def respond_activity_tasks(
    engine: Engine, request: r.RespondActivityTasksRequest
) -> r.RespondActivityTasksResponse:
    validation.respond_activity_tasks(request)
    fitted = outcomes.fit_outcomes(request.outcomes)
    if fitted is not request.outcomes:
        request = msgspec.structs.replace(request, outcomes=fitted)
    return await engine.respond_activity_tasks(request)


async def record_activity_heartbeat(
    engine: Engine, request: r.RecordActivityHeartbeatRequest
) -> r.RecordActivityHeartbeatResponse:
    validation.record_activity_heartbeat(request)
    return await engine.record_activity_heartbeat(request)


async def shutdown_worker(engine: Engine, request: r.ShutdownWorkerRequest) -> r.ShutdownWorkerResponse:
    validation.shutdown_worker(request)
    return await engine.shutdown_worker(request)
