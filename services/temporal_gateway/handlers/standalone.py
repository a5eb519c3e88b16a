"""Activities without a workflow: started, awaited, described, found, cancelled, ended, deleted."""

import time
from datetime import timedelta
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from temporalio.api.activity.v1 import message_pb2 as activity_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from .. import standalone_records as records
from ..attribute_types import give_types
from ..change_records import activity_options_of
from ..gateway import Call, Gateway, Handlers
from ..payloads import map_of, payloads_of, to_payloads
from ..records import priority_of, retry_policy_of, user_metadata_of
from ..search import query_of, to_group_value
from ..times import timedelta_of
from .visibility import page_size, their_groups

_LOOK_AGAIN = timedelta(seconds=1)


async def start_activity_execution(
    gateway: Gateway, request: pb.StartActivityExecutionRequest, call: Call
) -> pb.StartActivityExecutionResponse:
    records.check_start(request)
    await give_types(gateway, request.namespace, request.search_attributes.indexed_fields)
    asked = r.StartActivityRequest(
        namespace=request.namespace,
        activity_id=request.activity_id,
        activity_type=request.activity_type.name,
        task_queue=request.task_queue.name,
        input=payloads_of(request.input),
        headers=map_of(request.header.fields),
        schedule_to_close_timeout=timedelta_of(request.schedule_to_close_timeout),
        schedule_to_start_timeout=timedelta_of(request.schedule_to_start_timeout),
        start_to_close_timeout=timedelta_of(request.start_to_close_timeout),
        heartbeat_timeout=timedelta_of(request.heartbeat_timeout),
        retry_policy=retry_policy_of(request.retry_policy) if request.HasField("retry_policy") else None,
        start_delay=timedelta_of(request.start_delay),
        identity=request.identity,
        request_id=request.request_id,
        id_reuse_policy=records.reuse_policy(request.id_reuse_policy),
        id_conflict_policy=records.conflict_policy(request.id_conflict_policy),
        search_attributes=records.our_attributes(request.search_attributes),
        user_metadata=user_metadata_of(request.user_metadata),
        priority=priority_of(request.priority),
    )
    answer = await gateway.call(o.START_ACTIVITY, asked)
    return pb.StartActivityExecutionResponse(run_id=answer.run_id, started=answer.started)


async def poll_activity_execution(
    gateway: Gateway, request: pb.PollActivityExecutionRequest, call: Call
) -> pb.PollActivityExecutionResponse:
    asked = r.PollActivityRequest(
        namespace=request.namespace, activity_id=request.activity_id, run_id=request.run_id, timeout=call.wait()
    )
    answer = await gateway.call(o.POLL_ACTIVITY, asked)
    return pb.PollActivityExecutionResponse(run_id=answer.run_id, outcome=records.to_outcome(answer.outcome))


async def describe_activity_execution(
    gateway: Gateway, request: pb.DescribeActivityExecutionRequest, call: Call
) -> pb.DescribeActivityExecutionResponse:
    """With a token: once anything has changed since it was given, or the time is over."""
    answer = await _described(gateway, request, request.run_id)
    if request.long_poll_token:
        seen = records.seen_by(request.long_poll_token)
        ends = time.monotonic() + call.wait().total_seconds()
        while seen == records.Seen.of(answer) and answer.outcome is None and time.monotonic() < ends:
            # Only ends wake who waits: starts and heartbeats are no commits.
            waited = r.PollActivityRequest(
                namespace=request.namespace, activity_id=request.activity_id, run_id=seen.run_id, timeout=_LOOK_AGAIN
            )
            await gateway.call(o.POLL_ACTIVITY, waited)
            answer = await _described(gateway, request, seen.run_id)
    info = records.to_info(answer)
    if not request.include_heartbeat_details:
        info.ClearField("heartbeat_details")
    if not request.include_last_failure:
        info.ClearField("last_failure")
    return pb.DescribeActivityExecutionResponse(
        run_id=answer.info.run_id,
        info=info,
        input=to_payloads(answer.input) if request.include_input else None,
        outcome=records.to_outcome(answer.outcome) if request.include_outcome else None,
        long_poll_token=b"" if answer.outcome is not None else records.Seen.of(answer).token(),
    )


async def _described(
    gateway: Gateway, request: pb.DescribeActivityExecutionRequest, run_id: str
) -> r.DescribeActivityResponse:
    asked = r.DescribeActivityRequest(namespace=request.namespace, activity_id=request.activity_id, run_id=run_id)
    return await gateway.call(o.DESCRIBE_ACTIVITY, asked)


async def request_cancel_activity_execution(
    gateway: Gateway, request: pb.RequestCancelActivityExecutionRequest, call: Call
) -> pb.RequestCancelActivityExecutionResponse:
    asked = r.CancelActivityRequest(
        namespace=request.namespace,
        activity_id=request.activity_id,
        run_id=request.run_id,
        reason=request.reason,
        identity=request.identity,
        request_id=request.request_id,
    )
    await gateway.call(o.CANCEL_ACTIVITY, asked)
    return pb.RequestCancelActivityExecutionResponse()


async def terminate_activity_execution(
    gateway: Gateway, request: pb.TerminateActivityExecutionRequest, call: Call
) -> pb.TerminateActivityExecutionResponse:
    asked = r.TerminateActivityRequest(
        namespace=request.namespace,
        activity_id=request.activity_id,
        run_id=request.run_id,
        reason=request.reason,
        identity=request.identity,
    )
    await gateway.call(o.TERMINATE_ACTIVITY, asked)
    return pb.TerminateActivityExecutionResponse()


async def delete_activity_execution(
    gateway: Gateway, request: pb.DeleteActivityExecutionRequest, call: Call
) -> pb.DeleteActivityExecutionResponse:
    asked = r.DeleteActivityRequest(namespace=request.namespace, activity_id=request.activity_id, run_id=request.run_id)
    await gateway.call(o.DELETE_ACTIVITY, asked)
    return pb.DeleteActivityExecutionResponse()


_Operated = (
    pb.PauseActivityExecutionRequest
    | pb.UnpauseActivityExecutionRequest
    | pb.ResetActivityExecutionRequest
    | pb.UpdateActivityExecutionOptionsRequest
)


def _operated(request: _Operated) -> dict[str, Any]:
    """One with a workflow id is an activity of that workflow."""
    return {
        "namespace": request.namespace,
        "execution": WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id),
        "activity_id": request.activity_id,
        "identity": request.identity,
    }


async def pause_activity_execution(
    gateway: Gateway, request: pb.PauseActivityExecutionRequest, call: Call
) -> pb.PauseActivityExecutionResponse:
    operation = o.PAUSE_ACTIVITY if request.workflow_id else o.PAUSE_STANDALONE_ACTIVITY
    await gateway.call(operation, r.PauseActivityRequest(**_operated(request), reason=request.reason))
    return pb.PauseActivityExecutionResponse()


async def unpause_activity_execution(
    gateway: Gateway, request: pb.UnpauseActivityExecutionRequest, call: Call
) -> pb.UnpauseActivityExecutionResponse:
    asked = r.UnpauseActivityRequest(**_operated(request), jitter=timedelta_of(request.jitter))
    await gateway.call(o.UNPAUSE_ACTIVITY if request.workflow_id else o.UNPAUSE_STANDALONE_ACTIVITY, asked)
    return pb.UnpauseActivityExecutionResponse()


async def reset_activity_execution(
    gateway: Gateway, request: pb.ResetActivityExecutionRequest, call: Call
) -> pb.ResetActivityExecutionResponse:
    asked = r.ResetActivityRequest(
        **_operated(request),
        keep_paused=request.keep_paused,
        reset_heartbeat=request.reset_heartbeat,
        restore_original_options=request.restore_original_options,
        jitter=timedelta_of(request.jitter),
    )
    await gateway.call(o.RESET_ACTIVITY if request.workflow_id else o.RESET_STANDALONE_ACTIVITY, asked)
    return pb.ResetActivityExecutionResponse()


async def update_activity_execution_options(
    gateway: Gateway, request: pb.UpdateActivityExecutionOptionsRequest, call: Call
) -> pb.UpdateActivityExecutionOptionsResponse:
    """The answer has what was given: of the rest a description tells."""
    options = activity_options_of(
        request.activity_options, request.update_mask.paths, restore_original=request.restore_original
    )
    asked = r.UpdateActivityOptionsRequest(**_operated(request), options=options)
    operation = o.UPDATE_ACTIVITY_OPTIONS if request.workflow_id else o.UPDATE_STANDALONE_ACTIVITY_OPTIONS
    await gateway.call(operation, asked)
    return pb.UpdateActivityExecutionOptionsResponse(activity_options=request.activity_options)


async def list_activity_executions(
    gateway: Gateway, request: pb.ListActivityExecutionsRequest, call: Call
) -> pb.ListActivityExecutionsResponse:
    asked = r.ListActivitiesRequest(
        namespace=request.namespace,
        page_size=page_size(request.page_size),
        next_page_token=request.next_page_token,
        query=query_of(request.query),
    )
    answer = await gateway.call(o.LIST_ACTIVITIES, asked)
    executions: list[activity_pb2.ActivityExecutionListInfo] = [
        records.to_list_info(info) for info in answer.executions
    ]
    return pb.ListActivityExecutionsResponse(executions=executions, next_page_token=answer.next_page_token)


async def count_activity_executions(
    gateway: Gateway, request: pb.CountActivityExecutionsRequest, call: Call
) -> pb.CountActivityExecutionsResponse:
    """In one answer, as of workflows."""
    count, groups, token = 0, dict[str | None, int](), b""
    while True:
        asked = r.CountActivitiesRequest(
            namespace=request.namespace, query=query_of(request.query), next_page_token=token
        )
        answer = await gateway.call(o.COUNT_ACTIVITIES, asked)
        count += answer.count
        for group in answer.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        token = answer.next_page_token
        if not token:
            break
    group_type = pb.CountActivityExecutionsResponse.AggregationGroup
    return pb.CountActivityExecutionsResponse(
        count=count,
        groups=[
            group_type(group_values=[to_group_value(value)], count=counted)
            for value, counted in their_groups(request.query, groups).items()
        ],
    )


HANDLERS: Handlers = {
    "StartActivityExecution": start_activity_execution,
    "PollActivityExecution": poll_activity_execution,
    "DescribeActivityExecution": describe_activity_execution,
    "RequestCancelActivityExecution": request_cancel_activity_execution,
    "TerminateActivityExecution": terminate_activity_execution,
    "DeleteActivityExecution": delete_activity_execution,
    "PauseActivityExecution": pause_activity_execution,
    "UnpauseActivityExecution": unpause_activity_execution,
    "ResetActivityExecution": reset_activity_execution,
    "UpdateActivityExecutionOptions": update_activity_execution_options,
    "ListActivityExecutions": list_activity_executions,
    "CountActivityExecutions": count_activity_executions,
}
