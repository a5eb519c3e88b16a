"""Schedules over every transport: made, described, changed, ordered, listed, deleted; and what is refused, before
anything is written, with field, limit and way out."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api import schedules as s
from stepwell.api.common import RetryPolicy
from stepwell.api.errors import ConflictTokenMismatch, InvalidArgument, NotFound, ScheduleAlreadyExists
from stepwell.api.operations import Operation
from stepwell.api.payloads import Payload

from .client import QUEUE, ApiClient

DAY = datetime(2027, 1, 1, tzinfo=UTC)
ACTION: dict[str, Any] = {"workflow_id": "report", "workflow_type": "report", "task_queue": QUEUE}
DAILY = s.ScheduleSpec(cron_expressions=("0 12 * * *",), time_zone_name="Europe/Rome")
ID = "daily/日本 report"


def schedule(spec: s.ScheduleSpec = DAILY, state: s.ScheduleState | None = None, **policies: Any) -> s.Schedule:
    action = policies.pop("action", {})
    return s.Schedule(
        spec=spec,
        action=s.ScheduleAction(start_workflow=s.NewWorkflowExecutionInfo(**ACTION | action)),
        policies=s.SchedulePolicies(**policies),
        state=state or s.ScheduleState(),
    )


async def test_the_life_of_a_schedule(api: ApiClient) -> None:
    made = await api.call(o.CREATE_SCHEDULE, schedule_id=ID, schedule=schedule(), request_id="1")
    assert await api.call(o.CREATE_SCHEDULE, schedule_id=ID, schedule=schedule(), request_id="1") == made
    with pytest.raises(ScheduleAlreadyExists):
        await api.call(o.CREATE_SCHEDULE, schedule_id=ID, schedule=schedule(), request_id="2")
    described = await api.call(o.DESCRIBE_SCHEDULE, schedule_id=ID)
    assert described.schedule == schedule() and described.conflict_token == made.conflict_token
    assert len(described.info.future_action_times) == 10
    later = schedule(state=s.ScheduleState(paused=True, note="not yet"))
    token = described.conflict_token
    await api.call(o.UPDATE_SCHEDULE, schedule_id=ID, schedule=later, conflict_token=token)
    with pytest.raises(ConflictTokenMismatch):
        await api.call(o.UPDATE_SCHEDULE, schedule_id=ID, schedule=later, conflict_token=token)
    trigger = r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest(scheduled_time=DAY))
    await api.call(o.PATCH_SCHEDULE, schedule_id=ID, patch=trigger, request_id="3")
    await api.call(o.PATCH_SCHEDULE, schedule_id=ID, patch=trigger, request_id="3")
    described = await api.call(o.DESCRIBE_SCHEDULE, schedule_id=ID)
    (run,) = described.info.running_workflows
    assert run.workflow_id == "report-2027-01-01T00:00:00Z"
    assert (await api.history(run.workflow_id))[0].attributes.workflow_type == "report"
    (entry,) = (await api.call(o.LIST_SCHEDULES)).schedules
    assert (await api.call(o.COUNT_SCHEDULES, query="StepwellSchedulePaused = true")).count == 1
    assert (entry.schedule_id, entry.info.paused, entry.info.note) == (ID, True, "not yet")
    preview = await api.call(
        o.LIST_SCHEDULE_MATCHING_TIMES, schedule_id=ID, start_time=DAY, end_time=DAY + timedelta(days=2)
    )
    assert preview.start_times == (DAY + timedelta(hours=11), DAY + timedelta(hours=35))
    await api.call(o.DELETE_SCHEDULE, schedule_id=ID)
    for operation in (o.DESCRIBE_SCHEDULE, o.DELETE_SCHEDULE):
        with pytest.raises(NotFound, match="no such schedule"):
            await api.call(operation, schedule_id=ID)
    with pytest.raises(NotFound):
        await api.call(o.PATCH_SCHEDULE, schedule_id=ID, patch=trigger)
    with pytest.raises(NotFound):
        await api.call(o.UPDATE_SCHEDULE, schedule_id=ID, schedule=later)


CREATE = {"schedule_id": "s"}
PATCH = {"schedule_id": "s"}
RANGE = {"schedule_id": "s", "start_time": DAY, "end_time": DAY}
LONG = "x" * 1_001
NAIVE = datetime(2027, 1, 1)  # noqa: DTZ001
BACK = r.BackfillRequest(start_time=DAY, end_time=DAY - timedelta(days=1))


def cron(text: str, **more: Any) -> s.Schedule:
    return schedule(s.ScheduleSpec(cron_expressions=(text,), **more))


CASES: list[tuple[Operation[Any, Any], dict[str, Any], str]] = [
    (o.CREATE_SCHEDULE, {"schedule_id": "", "schedule": schedule()}, "schedule_id is empty"),
    (o.CREATE_SCHEDULE, {"schedule_id": "a\x01", "schedule": schedule()}, "schedule_id contains the control char"),
    (o.CREATE_SCHEDULE, {"schedule_id": LONG, "schedule": schedule()}, "schedule_id has 1001 bytes.*1000"),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": cron("0 0 * * 8")}, r"schedule\.spec\.cron_expressions\[0\].*8"),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": cron("0 0 30 2 *")}, r"schedule\.spec\."),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": cron("whenever")}, r"schedule\.spec\.cron_expressions\[0\]"),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": cron("0 0 * * *", time_zone_name="Mars/North")}, "Mars/North"),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": s.Schedule(action=s.ScheduleAction())}, "no start_workflow"),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(catchup_window=timedelta(seconds=9))},
        "catchup_window is 9 s, below the limit of 10 s",
    ),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": schedule(concurrency_limit=101)}, "concurrency_limit is 101.*100"),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": schedule(concurrency_limit=-1)}, "concurrency_limit is -1"),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(state=s.ScheduleState(remaining_actions=-1))},
        "remaining_actions is -1",
    ),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": schedule(state=s.ScheduleState(note="n" * 4_001))}, "note has 4001"),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(action={"workflow_id": "x" * 980})},
        "start_workflow: workflow_id has 980 bytes.*limit of 975",
    ),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": schedule(action={"task_queue": ""})}, "start_workflow: task_queue is"),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(action={"retry_policy": RetryPolicy(maximum_attempts=-1)})},
        "start_workflow: retry_policy",
    ),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(action={"input": (Payload(data=b"x" * 200_001),)})},
        "schedule has .* bytes.*limit of 200000.*where the data is",
    ),
    (o.CREATE_SCHEDULE, CREATE | {"schedule": schedule(), "request_id": LONG}, "request_id has 1001"),
    (
        o.CREATE_SCHEDULE,
        CREATE | {"schedule": schedule(), "initial_patch": r.SchedulePatch(backfill=(BACK,))},
        r"initial_patch\.backfill\[0\]\.end_time is before",
    ),
    (o.UPDATE_SCHEDULE, CREATE | {"schedule": cron("0 25 * * *")}, r"schedule\.spec\.cron_expressions"),
    (o.PATCH_SCHEDULE, PATCH | {"patch": r.SchedulePatch()}, "patch is empty; say trigger_immediately"),
    (o.PATCH_SCHEDULE, PATCH | {"patch": r.SchedulePatch(pause="", unpause="")}, "pause and unpause; leave one"),
    (o.PATCH_SCHEDULE, PATCH | {"patch": r.SchedulePatch(pause="n" * 4_001)}, "patch.pause has 4001 bytes"),
    (o.PATCH_SCHEDULE, PATCH | {"patch": r.SchedulePatch(backfill=(BACK,) * 101)}, "patch.backfill is 101.*100"),
    (
        o.PATCH_SCHEDULE,
        PATCH | {"patch": r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest(scheduled_time=NAIVE))},
        "scheduled_time has no time zone",
    ),
    (o.LIST_SCHEDULES, {"page_size": 1_001}, "page_size is 1001"),
    (o.LIST_SCHEDULES, {"next_page_token": b"\xff"}, "next_page_token is none"),
    (o.COUNT_SCHEDULES, {"next_page_token": b"\xff"}, "next_page_token is none of CountSchedules"),
    (o.COUNT_SCHEDULES, {"query": "ScheduleId"}, "query, line 1"),
    (o.LIST_SCHEDULES, {"next_page_token": b"s" * 1_001}, "next_page_token is none"),
    (o.LIST_SCHEDULE_MATCHING_TIMES, RANGE | {"end_time": DAY - timedelta(1)}, "end_time is before start_time"),
    (o.LIST_SCHEDULE_MATCHING_TIMES, RANGE | {"spec": cron("a").spec}, r"spec\.cron_expressions\[0\]"),
]


async def test_refused(api: ApiClient) -> None:
    wrong = [found for case in CASES if (found := await _wrong(api, *case))]
    assert wrong == []
    assert not (await api.call(o.LIST_SCHEDULES)).schedules


async def _wrong(api: ApiClient, operation: Operation[Any, Any], fields: dict[str, Any], message: str) -> str:
    try:
        response = await api.call(operation, **fields)
    except InvalidArgument as error:
        if not error.details.get("field"):
            return f"{operation.name}: {error} names no field"
        return "" if re.search(message, str(error)) else f"{operation.name}: {message!r} is not in {str(error)!r}"
    return f"{operation.name}: {message!r} expected, got {response!r}"


async def test_exactly_the_limits_pass(api: ApiClient) -> None:
    large = msgspec.structs.replace(
        schedule(action={"workflow_id": "x" * 975, "input": (Payload(data=b"x" * 140_000),)}, concurrency_limit=100),
        state=s.ScheduleState(paused=True, note="n" * 4_000),
    )
    await api.call(o.CREATE_SCHEDULE, schedule_id="x" * 1_000, schedule=large)
    patch = r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest())
    await api.call(o.PATCH_SCHEDULE, schedule_id="x" * 1_000, patch=patch)
    assert (await api.call(o.DESCRIBE_SCHEDULE, schedule_id="x" * 1_000)).info.action_count == 1
