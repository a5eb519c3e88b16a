"""What is asked of pending activities by others than their workers: ends and heartbeats by id."""

import msgspec
from stepwell.api import requests as r

from ...history.engine import Engine
from .. import outcomes, validation


async def respond_activity_by_id(
    engine: Engine, request: r.RespondActivityByIdRequest
) -> r.RespondActivityByIdResponse:
    validation.respond_activity_by_id(request)
    (outcome,) = outcomes.fit_outcomes((request.outcome,))
    if outcome is not request.outcome:
        request = msgspec.structs.replace(request, outcome=outcome)
    return await engine.respond_activity_by_id(request)


async def record_activity_heartbeat_by_id(
    engine: Engine, request: r.RecordActivityHeartbeatByIdRequest
) -> r.RecordActivityHeartbeatResponse:
    validation.record_activity_heartbeat_by_id(request)
    return await engine.record_activity_heartbeat_by_id(request)
