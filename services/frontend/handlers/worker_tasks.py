"""What workers ask and report: polls, completions, heartbeats. Reports are made to fit the limits, not refused."""

import asyncio
from collections.abc import Awaitable

import msgspec
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.errors import ErrorBody, error_from

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
    own = engine.namespaces.limits(request.namespace).max_payload_bytes
    if request.activity_outcomes:
        fitted = outcomes.fit_outcomes(request.activity_outcomes, outcomes.limit_of(own))
        if fitted is not request.activity_outcomes:
            request = msgspec.structs.replace(request, activity_outcomes=fitted)
    if own is not None and request.commands:
        commands = outcomes.fit_commands(request.commands, outcomes.limit_of(own))
        request = msgspec.structs.replace(request, commands=commands)
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
    limit = _limit(engine, request.namespace)
    failure = outcomes.fit_failure(request.failure, limit)
    fitted = outcomes.fit_outcomes(request.activity_outcomes, limit)
    if failure is not request.failure or fitted is not request.activity_outcomes:
        request = msgspec.structs.replace(request, failure=failure, activity_outcomes=fitted)
    return await engine.respond_workflow_task_failed(request)


async def respond_query_task_completed(
    engine: Engine, request: r.RespondQueryTaskCompletedRequest
) -> r.RespondQueryTaskCompletedResponse:
    validation.respond_query_task_completed(request)
    failure, limit = request.failure, _limit(engine, request.namespace)
    if failure is not None:
        failure = outcomes.fit_failure(failure, limit)
    size = outcomes.payload_bytes(request.result)
    if size > limit:
        failure = outcomes.too_large("query result", size, limit)
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
    fitted = outcomes.fit_outcomes(request.outcomes, _limit(engine, request.namespace))
    if fitted is not request.outcomes:
        request = msgspec.structs.replace(request, outcomes=fitted)
    return await engine.respond_activity_tasks(request)


async def record_activity_heartbeat(
    engine: Engine, request: r.RecordActivityHeartbeatRequest
) -> r.RecordActivityHeartbeatResponse:
    """Details above the limit of the namespace end the attempt: refused, they would come again, and so would the
    attempt behind its timeout."""
    validation.record_activity_heartbeat(request)
    size, limit = outcomes.payload_bytes(request.details), _limit(engine, request.namespace)
    if size <= limit:
        return await engine.record_activity_heartbeat(request)
    failure = outcomes.too_large("heartbeat", size, limit)
    ended = r.RespondActivityTasksRequest(
        namespace=request.namespace,
        worker=r.WorkerInfo(identity=request.identity),
        outcomes=(r.ActivityFailed(task_token=request.task_token, failure=failure),),
    )
    (reply,) = (await engine.respond_activity_tasks(ended)).replies
    if reply.error_code:
        raise error_from(ErrorBody(code=reply.error_code, message=reply.message))
    return r.RecordActivityHeartbeatResponse(cancel_requested=True)


def _limit(engine: Engine, namespace: str) -> int:
    return outcomes.limit_of(engine.namespaces.limits(namespace).max_payload_bytes)


async def shutdown_worker(engine: Engine, request: r.ShutdownWorkerRequest) -> r.ShutdownWorkerResponse:
    validation.shutdown_worker(request)
    return await engine.shutdown_worker(request)
