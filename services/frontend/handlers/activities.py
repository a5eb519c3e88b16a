"""What others than their workers ask of pending activities: ends and heartbeats by id, pauses, resets, options."""

import msgspec
from stepwell.api import requests as r

from ...history.engine import Engine
from .. import outcomes
from .. import validation_activities as validation


async def respond_activity_by_id(
    engine: Engine, request: r.RespondActivityByIdRequest
) -> r.RespondActivityByIdResponse:
    validation.respond_activity_by_id(request)
    return await engine.respond_activity_by_id(fitting(engine, request))


def fitting(engine: Engine, request: r.RespondActivityByIdRequest) -> r.RespondActivityByIdRequest:
    """With an outcome of a size that is taken."""
    limit = outcomes.limit_of(engine.namespaces.limits(request.namespace).max_payload_bytes)
    (outcome,) = outcomes.fit_outcomes((request.outcome,), limit)
    return request if outcome is request.outcome else msgspec.structs.replace(request, outcome=outcome)


async def record_activity_heartbeat_by_id(
    engine: Engine, request: r.RecordActivityHeartbeatByIdRequest
) -> r.RecordActivityHeartbeatResponse:
    validation.record_activity_heartbeat_by_id(request)
    return await engine.record_activity_heartbeat_by_id(request)


async def pause_activity(engine: Engine, request: r.PauseActivityRequest) -> r.ActivitiesChangedResponse:
    validation.pause_activity(request)
    return await engine.pause_activity(request)


async def unpause_activity(engine: Engine, request: r.UnpauseActivityRequest) -> r.ActivitiesChangedResponse:
    validation.unpause_activity(request)
    return await engine.unpause_activity(request)


async def reset_activity(engine: Engine, request: r.ResetActivityRequest) -> r.ActivitiesChangedResponse:
    validation.reset_activity(request)
    return await engine.reset_activity(request)


async def update_activity_options(
    engine: Engine, request: r.UpdateActivityOptionsRequest
) -> r.ActivitiesChangedResponse:
    validation.update_activity_options(request)
    return await engine.update_activity_options(request)
