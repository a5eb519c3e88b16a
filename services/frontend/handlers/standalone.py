"""What clients ask of activities without a workflow (AC-28)."""

from stepwell.api import requests as r

from ...history.engine import Engine
from .. import validation_standalone as validation


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
