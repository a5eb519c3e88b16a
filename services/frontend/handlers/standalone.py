"""What clients ask of activities without a workflow (AC-28)."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation_standalone as validation
from . import activities


async def start_activity(engine: Engine, request: r.StartActivityRequest) -> r.StartActivityResponse:
    validation.start_activity(request)
    return await engine.start_activity(request)


async def poll_activity(engine: Engine, request: r.PollActivityRequest) -> r.PollActivityResponse:
    validation.poll_activity(request)
    return await engine.poll_activity(request)


async def describe_activity(engine: Engine, request: r.DescribeActivityRequest) -> r.DescribeActivityResponse:
    validation.named(request)
    return await engine.describe_activity(request)


async def cancel_activity(engine: Engine, request: r.CancelActivityRequest) -> r.CancelActivityResponse:
    validation.cancel_activity(request)
    return await engine.cancel_activity(request)


async def terminate_activity(engine: Engine, request: r.TerminateActivityRequest) -> r.TerminateActivityResponse:
    validation.terminate_activity(request)
    return await engine.terminate_activity(request)


async def delete_activity(engine: Engine, request: r.DeleteActivityRequest) -> r.DeleteActivityResponse:
    validation.delete_activity(request)
    return await engine.delete_activity(request)


async def list_activities(engine: Engine, request: r.ListActivitiesRequest) -> r.ListActivitiesResponse:
    validation.list_activities(request)
    return await engine.list_activities(request)


async def count_activities(engine: Engine, request: r.CountActivitiesRequest) -> r.CountActivitiesResponse:
    validation.count_activities(request)
    return await engine.count_activities(request)


# Of the attempt that is current, as for activities of workflows.


async def complete_standalone_activity(
    engine: Engine, request: r.RespondActivityByIdRequest
) -> r.RespondActivityByIdResponse:
    validation.respond_activity_by_id(request)
    return await engine.respond_activity_by_id(activities.fitting(engine, request))


async def record_standalone_activity_heartbeat(
    engine: Engine, request: r.RecordActivityHeartbeatByIdRequest
) -> r.RecordActivityHeartbeatResponse:
    validation.record_activity_heartbeat_by_id(request)
    return await engine.record_activity_heartbeat_by_id(request)


async def pause_standalone_activity(engine: Engine, request: r.PauseActivityRequest) -> r.ActivitiesChangedResponse:
    validation.pause_activity(request)
    return await engine.pause_activity(request)


async def unpause_standalone_activity(engine: Engine, request: r.UnpauseActivityRequest) -> r.ActivitiesChangedResponse:
    validation.unpause_activity(request)
    return await engine.unpause_activity(request)


async def reset_standalone_activity(engine: Engine, request: r.ResetActivityRequest) -> r.ActivitiesChangedResponse:
    validation.reset_activity(request)
    return await engine.reset_activity(request)


async def update_standalone_activity_options(
    engine: Engine, request: r.UpdateActivityOptionsRequest
) -> r.ActivitiesChangedResponse:
    validation.update_activity_options(request)
    return await engine.update_activity_options(request)
