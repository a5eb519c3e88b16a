"""What a batch operation does to one workflow: a request like anybody's, such that the same one twice counts once.

Where a request has an id, it is made of the job and the run; where it has none, what it finds done is done.
"""

import logging
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Any, Protocol

import msgspec
from stepwell.api import requests as r
from stepwell.api.batches import (
    BatchCancel,
    BatchCancelActivities,
    BatchDelete,
    BatchDeleteActivities,
    BatchFailure,
    BatchOperation,
    BatchReset,
    BatchResetActivities,
    BatchSignal,
    BatchTerminate,
    BatchTerminateActivities,
    BatchUnpause,
    BatchUnpauseActivities,
    BatchUpdateActivityOptions,
    BatchUpdateOptions,
)
from stepwell.api.errors import (
    ApiError,
    FailedPrecondition,
    Internal,
    NotFound,
    PayloadTooLarge,
    WorkflowExecutionClosed,
)
from stepwell.api.namespaces import NamespaceLimits

from ..namespaces.payloads import check_payloads
from .records import Done, Job, Target

log = logging.getLogger(__name__)

OPEN = "ExecutionStatus IN ('Running', 'Paused')"
PAUSED = "ExecutionStatus = 'Paused'"
RUNNING = "ExecutionStatus = 'Running'"

_OF_ACTIVITIES = BatchTerminateActivities | BatchCancelActivities | BatchDeleteActivities
_DELETES = BatchDelete | BatchDeleteActivities

Asked = (
    r.TerminateWorkflowRequest
    | r.CancelWorkflowRequest
    | r.SignalWorkflowRequest
    | r.DeleteWorkflowRequest
    | r.ResetWorkflowRequest
    | r.UpdateWorkflowOptionsRequest
    | r.UnpauseWorkflowRequest
    | r.UnpauseActivityRequest
    | r.ResetActivityRequest
    | r.UpdateActivityOptionsRequest
    | r.TerminateActivityRequest
    | r.CancelActivityRequest
    | r.DeleteActivityRequest
)


class Workflows(Protocol):
    """The engine. Raises ``ApiError``."""

    async def terminate_workflow(self, request: r.TerminateWorkflowRequest) -> object: ...
    async def cancel_workflow(self, request: r.CancelWorkflowRequest) -> object: ...
    async def signal_workflow(self, request: r.SignalWorkflowRequest) -> object: ...
    async def delete_workflow(self, request: r.DeleteWorkflowRequest) -> object: ...
    async def reset_workflow(self, request: r.ResetWorkflowRequest) -> object: ...
    async def update_workflow_options(self, request: r.UpdateWorkflowOptionsRequest) -> object: ...
    async def unpause_workflow(self, request: r.UnpauseWorkflowRequest) -> object: ...
    async def unpause_activity(self, request: r.UnpauseActivityRequest) -> object: ...
    async def reset_activity(self, request: r.ResetActivityRequest) -> object: ...
    async def update_activity_options(self, request: r.UpdateActivityOptionsRequest) -> object: ...
    async def describe_workflow(self, request: r.DescribeWorkflowRequest) -> r.DescribeWorkflowResponse: ...
    async def list_workflows(self, request: r.ListWorkflowsRequest) -> r.ListWorkflowsResponse: ...
    async def terminate_activity(self, request: r.TerminateActivityRequest) -> object: ...
    async def cancel_activity(self, request: r.CancelActivityRequest) -> object: ...
    async def delete_activity(self, request: r.DeleteActivityRequest) -> object: ...
    async def describe_activity(self, request: r.DescribeActivityRequest) -> r.DescribeActivityResponse: ...
    async def list_activities(self, request: r.ListActivitiesRequest) -> r.ListActivitiesResponse: ...


def narrowed(operation: BatchOperation, query: str) -> str:
    """The filter, without the workflows to which the operation means nothing (LC-44)."""
    match operation:
        case BatchDelete() | BatchReset() | BatchDeleteActivities():
            return f"({query})"
        case BatchTerminateActivities() | BatchCancelActivities():
            return f"({query}) AND {RUNNING}"
        case BatchUnpause():
            return f"({query}) AND {PAUSED}"
        case _:
            return f"({query}) AND {OPEN}"


def request_of(job: Job, target: Target) -> Asked:
    """``job.reason`` stands in the history, where the operation leaves one."""
    return _REQUESTS[type(job.operation)](job, target, job.operation)


def _terminate(job: Job, target: Target, operation: BatchTerminate) -> Asked:
    return r.TerminateWorkflowRequest(**_named(job, target), reason=job.reason, details=operation.details)


def _cancel(job: Job, target: Target, operation: BatchCancel) -> Asked:
    return r.CancelWorkflowRequest(**_once(job, target), reason=job.reason)


def _signal(job: Job, target: Target, operation: BatchSignal) -> Asked:
    return r.SignalWorkflowRequest(
        **_once(job, target),
        signal_name=operation.signal_name,
        input=operation.input,
        headers=operation.headers,
    )


def _delete(job: Job, target: Target, operation: BatchDelete) -> Asked:
    return r.DeleteWorkflowRequest(**_named(job, target))


def _reset(job: Job, target: Target, operation: BatchReset) -> Asked:
    return r.ResetWorkflowRequest(
        **_once(job, target),
        reason=job.reason,
        reset_type=operation.reset_type,
        build_id=operation.build_id,
        current_run_only=operation.current_run_only,
        reset_reapply_exclude_types=operation.reset_reapply_exclude_types,
        post_reset_operations=operation.post_reset_operations,
    )


def _update_options(job: Job, target: Target, operation: BatchUpdateOptions) -> Asked:
    return r.UpdateWorkflowOptionsRequest(
        **_named(job, target),
        workflow_execution_options=operation.workflow_execution_options,
        update_mask=operation.update_mask,
    )


def _unpause(job: Job, target: Target, operation: BatchUnpause) -> Asked:
    return r.UnpauseWorkflowRequest(**_once(job, target), reason=job.reason)


def _unpause_activities(job: Job, target: Target, operation: BatchUnpauseActivities) -> Asked:
    return r.UnpauseActivityRequest(
        **_named(job, target),
        activity_type=operation.activity_type,
        reset_attempts=operation.reset_attempts,
        reset_heartbeat=operation.reset_heartbeat,
        jitter=operation.jitter,
    )


def _reset_activities(job: Job, target: Target, operation: BatchResetActivities) -> Asked:
    return r.ResetActivityRequest(
        **_named(job, target),
        activity_type=operation.activity_type,
        keep_paused=operation.keep_paused,
        reset_heartbeat=operation.reset_heartbeat,
        restore_original_options=operation.restore_original_options,
        jitter=operation.jitter,
    )


def _update_activity_options(job: Job, target: Target, operation: BatchUpdateActivityOptions) -> Asked:
    return r.UpdateActivityOptionsRequest(
        **_named(job, target), activity_type=operation.activity_type, options=operation.options
    )


def _terminate_activity(job: Job, target: Target, operation: BatchTerminateActivities) -> Asked:
    return r.TerminateActivityRequest(**_alone(job, target), reason=job.reason)


def _cancel_activity(job: Job, target: Target, operation: BatchCancelActivities) -> Asked:
    return r.CancelActivityRequest(**_alone(job, target), reason=job.reason, request_id=_request_id(job, target))


def _delete_activity(job: Job, target: Target, operation: BatchDeleteActivities) -> Asked:
    return r.DeleteActivityRequest(**_alone(job, target))


def _alone(job: Job, target: Target) -> dict[str, Any]:
    return {
        "namespace": job.namespace,
        "activity_id": target.workflow_id,
        "run_id": target.run_id,
        "identity": job.identity,
    }


def _named(job: Job, target: Target) -> dict[str, Any]:
    return {"namespace": job.namespace, "execution": target.execution, "identity": job.identity}


def _once(job: Job, target: Target) -> dict[str, Any]:
    return {**_named(job, target), "request_id": _request_id(job, target)}


def _request_id(job: Job, target: Target) -> str:
    text = "\0".join((job.namespace, job.id, job.started.isoformat(), target.workflow_id, target.run_id))
    return f"batch-{blake2b(text.encode(), digest_size=16).hexdigest()}"


_REQUESTS: dict[type, Callable[[Job, Target, Any], Asked]] = {
    BatchTerminate: _terminate,
    BatchCancel: _cancel,
    BatchSignal: _signal,
    BatchDelete: _delete,
    BatchReset: _reset,
    BatchUpdateOptions: _update_options,
    BatchUnpause: _unpause,
    BatchUnpauseActivities: _unpause_activities,
    BatchResetActivities: _reset_activities,
    BatchUpdateActivityOptions: _update_activity_options,
    BatchTerminateActivities: _terminate_activity,
    BatchCancelActivities: _cancel_activity,
    BatchDeleteActivities: _delete_activity,
}
"""Complete over ``BatchOperation``, and the next one over ``Asked``: a test compares them."""

_CALLS: dict[type, Callable[[Workflows, Any], Awaitable[object]]] = {
    r.TerminateWorkflowRequest: lambda workflows, request: workflows.terminate_workflow(request),
    r.CancelWorkflowRequest: lambda workflows, request: workflows.cancel_workflow(request),
    r.SignalWorkflowRequest: lambda workflows, request: workflows.signal_workflow(request),
    r.DeleteWorkflowRequest: lambda workflows, request: workflows.delete_workflow(request),
    r.ResetWorkflowRequest: lambda workflows, request: workflows.reset_workflow(request),
    r.UpdateWorkflowOptionsRequest: lambda workflows, request: workflows.update_workflow_options(request),
    r.UnpauseWorkflowRequest: lambda workflows, request: workflows.unpause_workflow(request),
    r.UnpauseActivityRequest: lambda workflows, request: workflows.unpause_activity(request),
    r.ResetActivityRequest: lambda workflows, request: workflows.reset_activity(request),
    r.UpdateActivityOptionsRequest: lambda workflows, request: workflows.update_activity_options(request),
    r.TerminateActivityRequest: lambda workflows, request: workflows.terminate_activity(request),
    r.CancelActivityRequest: lambda workflows, request: workflows.cancel_activity(request),
    r.DeleteActivityRequest: lambda workflows, request: workflows.delete_activity(request),
}


def refusal(job: Job, limits: NamespaceLimits) -> str:
    """Why it may be done to no workflow: its namespace takes less by now than when it began. Empty: it may."""
    if limits.max_payload_bytes is not None:
        try:
            check_payloads(job, limits.max_payload_bytes, job.namespace)
        except PayloadTooLarge as error:
            return error.message
    return ""


async def act(workflows: Workflows, job: Job, target: Target) -> Done:
    """Does it to one workflow. A run that another one took over, or an end, may have come in between."""
    try:
        request = request_of(job, target)
        await _CALLS[type(request)](workflows, request)
    except WorkflowExecutionClosed as closed:
        if isinstance(job.operation, BatchTerminate):
            return Done(target=target)
        return _failed(target, closed)
    except FailedPrecondition as ended:
        if isinstance(job.operation, BatchTerminateActivities):
            return Done(target=target)
        return _failed(target, ended)
    except NotFound as missing:
        repeated = target.tries > 0 or (job.burst is not None and job.burst.repeated)
        if repeated and isinstance(job.operation, _DELETES):
            return Done(target=target)  # by whoever died, or by the try whose answer was lost
        return _failed(target, missing)
    except ApiError as error:
        return _failed(target, error)
    except Exception as error:
        return _faulty(job.namespace, target, error)
    return Done(target=target)


async def found_next(workflows: Workflows, job: Job, size: int) -> tuple[list[Target], bytes]:
    """What the filter finds next, and where to go on; at the end nowhere. Raises ApiError."""
    more: dict[str, Any] = {
        "namespace": job.namespace,
        "query": job.query,
        "page_size": size,
        "next_page_token": job.page_token,
    }
    if isinstance(job.operation, _OF_ACTIVITIES):
        alone = await workflows.list_activities(r.ListActivitiesRequest(**more))
        return [Target(info.activity_id, info.run_id) for info in alone.executions], alone.next_page_token
    found = await workflows.list_workflows(r.ListWorkflowsRequest(**more))
    listed = [Target(info.execution.workflow_id, info.execution.run_id) for info in found.executions]
    return listed, found.next_page_token


async def named(workflows: Workflows, job: Job, target: Target) -> Target | Done:
    """The target by its run: behind a crash it must not be another one that was started meanwhile."""
    if target.run_id:
        return target
    try:
        return Target(target.workflow_id, await _run_of(workflows, job, target), target.tries)
    except ApiError as error:
        return _failed(target, error)
    except Exception as error:
        return _faulty(job.namespace, target, error)


async def _run_of(workflows: Workflows, job: Job, target: Target) -> str:
    """The newest."""
    if isinstance(job.operation, _OF_ACTIVITIES):
        asked = r.DescribeActivityRequest(namespace=job.namespace, activity_id=target.workflow_id)
        return (await workflows.describe_activity(asked)).info.run_id
    request = r.DescribeWorkflowRequest(namespace=job.namespace, execution=target.execution)
    return (await workflows.describe_workflow(request)).info.execution.run_id


def _faulty(namespace: str, target: Target, error: Exception) -> Done:
    """One workflow that cannot be read, say, holds up no other; it is tried again, as what is unavailable is."""
    log.error("A batch fails at workflow %r of namespace %r", target.workflow_id, namespace, exc_info=error)
    fault = Internal(f"the engine failed inside ({type(error).__name__}); its log has the details")
    return msgspec.structs.replace(_failed(target, fault), later=True)


def _failed(target: Target, error: ApiError) -> Done:
    failure = BatchFailure(execution=target.execution, code=error.code, message=error.message)
    return Done(target=target, failure=failure, later=error.retryable)
