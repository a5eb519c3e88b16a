"""What is asked of schedules: make, change, order, delete, read."""

from stepwell.api import requests as r

from ...history.engine import Engine
from ...scheduler.schedules import Schedules
from .. import validation_schedules as validation


async def create_schedule(engine: Engine, request: r.CreateScheduleRequest) -> r.CreateScheduleResponse:
    validation.create_schedule(request)
    return await engine.attached(Schedules).create(request)


async def describe_schedule(engine: Engine, request: r.DescribeScheduleRequest) -> r.DescribeScheduleResponse:
    validation.schedule_key(request.namespace, request.schedule_id)
    return await engine.attached(Schedules).describe(request)


async def update_schedule(engine: Engine, request: r.UpdateScheduleRequest) -> r.UpdateScheduleResponse:
    validation.update_schedule(request)
    return await engine.attached(Schedules).update(request)


async def patch_schedule(engine: Engine, request: r.PatchScheduleRequest) -> r.PatchScheduleResponse:
    validation.patch_schedule(request)
    return await engine.attached(Schedules).patch(request)


async def delete_schedule(engine: Engine, request: r.DeleteScheduleRequest) -> r.DeleteScheduleResponse:
    validation.delete_schedule(request)
    return await engine.attached(Schedules).delete(request)


async def list_schedules(engine: Engine, request: r.ListSchedulesRequest) -> r.ListSchedulesResponse:
    validation.list_schedules(request)
    return await engine.attached(Schedules).list(request)


async def count_schedules(engine: Engine, request: r.CountSchedulesRequest) -> r.CountSchedulesResponse:
    validation.count_schedules(request)
    return await engine.attached(Schedules).count(request)


async def list_schedule_matching_times(
    engine: Engine, request: r.ListScheduleMatchingTimesRequest
) -> r.ListScheduleMatchingTimesResponse:
    validation.list_schedule_matching_times(request)
    return await engine.attached(Schedules).matching_times(request)
