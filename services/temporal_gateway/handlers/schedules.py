"""Schedules: made, changed, ordered about, read."""

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.limits import MAX_LIST_PAGE
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..attribute_types import give_types
from ..gateway import Call, Gateway, Handlers
from ..payloads import map_of, to_map
from ..schedule_records import patch_of, schedule_of, to_entry, to_info, to_schedule, to_times
from ..search import query_of, to_group_value
from ..times import time_of


async def create_schedule(gateway: Gateway, request: pb.CreateScheduleRequest, call: Call) -> pb.CreateScheduleResponse:
    await _give_types(gateway, request)
    asked = r.CreateScheduleRequest(
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        schedule=schedule_of(request.schedule),
        initial_patch=patch_of(request.initial_patch) if request.HasField("initial_patch") else None,
        memo=map_of(request.memo.fields),
        search_attributes=map_of(request.search_attributes.indexed_fields),
        identity=request.identity,
        request_id=request.request_id,
    )
    answer = await gateway.call(o.CREATE_SCHEDULE, asked)
    return pb.CreateScheduleResponse(conflict_token=answer.conflict_token)


async def describe_schedule(
    gateway: Gateway, request: pb.DescribeScheduleRequest, call: Call
) -> pb.DescribeScheduleResponse:
    asked = r.DescribeScheduleRequest(namespace=request.namespace, schedule_id=request.schedule_id)
    answer = await gateway.call(o.DESCRIBE_SCHEDULE, asked)
    return pb.DescribeScheduleResponse(
        schedule=to_schedule(answer.schedule),
        info=to_info(answer.info),
        memo=common_pb2.Memo(fields=to_map(answer.memo)),
        search_attributes=common_pb2.SearchAttributes(indexed_fields=to_map(answer.search_attributes)),
        conflict_token=answer.conflict_token,
    )


async def update_schedule(gateway: Gateway, request: pb.UpdateScheduleRequest, call: Call) -> pb.UpdateScheduleResponse:
    await _give_types(gateway, request)
    attributes = request.search_attributes if request.HasField("search_attributes") else None
    asked = r.UpdateScheduleRequest(
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        schedule=schedule_of(request.schedule),
        conflict_token=request.conflict_token,
        memo=map_of(request.memo.fields) if request.HasField("memo") else None,
        search_attributes=None if attributes is None else map_of(attributes.indexed_fields),
        identity=request.identity,
        request_id=request.request_id,
    )
    await gateway.call(o.UPDATE_SCHEDULE, asked)
    return pb.UpdateScheduleResponse()


async def _give_types(gateway: Gateway, request: pb.CreateScheduleRequest | pb.UpdateScheduleRequest) -> None:
    of_runs = request.schedule.action.start_workflow.search_attributes.indexed_fields
    await give_types(gateway, request.namespace, request.search_attributes.indexed_fields, of_runs)


async def patch_schedule(gateway: Gateway, request: pb.PatchScheduleRequest, call: Call) -> pb.PatchScheduleResponse:
    asked = r.PatchScheduleRequest(
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        patch=patch_of(request.patch),
        identity=request.identity,
        request_id=request.request_id,
    )
    await gateway.call(o.PATCH_SCHEDULE, asked)
    return pb.PatchScheduleResponse()


async def delete_schedule(gateway: Gateway, request: pb.DeleteScheduleRequest, call: Call) -> pb.DeleteScheduleResponse:
    asked = r.DeleteScheduleRequest(
        namespace=request.namespace, schedule_id=request.schedule_id, identity=request.identity
    )
    await gateway.call(o.DELETE_SCHEDULE, asked)
    return pb.DeleteScheduleResponse()


async def list_schedules(gateway: Gateway, request: pb.ListSchedulesRequest, call: Call) -> pb.ListSchedulesResponse:
    asked = r.ListSchedulesRequest(
        namespace=request.namespace,
        page_size=min(request.maximum_page_size, MAX_LIST_PAGE),
        next_page_token=request.next_page_token,
        query=query_of(request.query),
    )
    answer = await gateway.call(o.LIST_SCHEDULES, asked)
    schedules = [to_entry(entry) for entry in answer.schedules]
    return pb.ListSchedulesResponse(schedules=schedules, next_page_token=answer.next_page_token)


async def count_schedules(gateway: Gateway, request: pb.CountSchedulesRequest, call: Call) -> pb.CountSchedulesResponse:
    """Theirs have no pages: what is counted in parts is added up here."""
    count, groups, token, query = 0, dict[str | None, int](), b"", query_of(request.query)
    while True:
        asked = r.CountSchedulesRequest(namespace=request.namespace, query=query, next_page_token=token)
        answer = await gateway.call(o.COUNT_SCHEDULES, asked)
        count += answer.count
        for group in answer.groups:
            groups[group.value] = groups.get(group.value, 0) + group.count
        token = answer.next_page_token
        if not token:
            break
    return pb.CountSchedulesResponse(
        count=count,
        groups=[
            pb.CountSchedulesResponse.AggregationGroup(group_values=[to_group_value(value)], count=counted)
            for value, counted in groups.items()
        ],
    )


async def list_schedule_matching_times(
    gateway: Gateway, request: pb.ListScheduleMatchingTimesRequest, call: Call
) -> pb.ListScheduleMatchingTimesResponse:
    """The first ones, as many as one answer of ours has: theirs has no pages, and ends at some number too."""
    asked = r.ListScheduleMatchingTimesRequest(
        namespace=request.namespace,
        schedule_id=request.schedule_id,
        start_time=time_of(request.start_time),
        end_time=time_of(request.end_time),
    )
    answer = await gateway.call(o.LIST_SCHEDULE_MATCHING_TIMES, asked)
    return pb.ListScheduleMatchingTimesResponse(start_time=to_times(answer.start_times))


HANDLERS: Handlers = {
    "CreateSchedule": create_schedule,
    "DescribeSchedule": describe_schedule,
    "UpdateSchedule": update_schedule,
    "PatchSchedule": patch_schedule,
    "DeleteSchedule": delete_schedule,
    "ListSchedules": list_schedules,
    "CountSchedules": count_schedules,
    "ListScheduleMatchingTimes": list_schedule_matching_times,
}
