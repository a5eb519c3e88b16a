"""What requests about schedules must be like: as in ``validation``, nothing is read or written before."""

from datetime import datetime

import msgspec
from stepwell.api import limits
from stepwell.api import requests as r
from stepwell.api.codec import encode_json
from stepwell.api.common import Memo
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import NewWorkflowExecutionInfo, Schedule, SchedulePolicies

from ..history.machines import start
from ..scheduler import spec
from ..scheduler.action import start_request
from . import fields, validation

_SUFFIX_BYTES = len("-2026-11-30T12:00:00.000Z")
"""What the ids of runs have behind the action's (LC-37)."""


def schedule_key(namespace: str, schedule_id: str) -> None:
    fields.namespace(namespace)
    fields.path_identifier("schedule_id", schedule_id)


def create_schedule(request: r.CreateScheduleRequest) -> None:
    schedule_key(request.namespace, request.schedule_id)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    _schedule(request.namespace, request.schedule, request.memo, request.search_attributes)
    if request.initial_patch is not None:
        _patch("initial_patch", request.initial_patch)


def update_schedule(request: r.UpdateScheduleRequest) -> None:
    schedule_key(request.namespace, request.schedule_id)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    _schedule(request.namespace, request.schedule, request.memo or {}, request.search_attributes or {})


def patch_schedule(request: r.PatchScheduleRequest) -> None:
    schedule_key(request.namespace, request.schedule_id)
    fields.text("identity", request.identity)
    fields.optional_identifier("request_id", request.request_id)
    if request.patch == r.SchedulePatch():
        raise InvalidArgument(
            "patch is empty; say trigger_immediately, backfill, pause or unpause (an empty note is one)", field="patch"
        )
    _patch("patch", request.patch)


def delete_schedule(request: r.DeleteScheduleRequest) -> None:
    schedule_key(request.namespace, request.schedule_id)
    fields.text("identity", request.identity)


def list_schedules(request: r.ListSchedulesRequest) -> None:
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, limits.MAX_LIST_PAGE, way_out="read on with next_page_token")
    fields.id_token("ListSchedules", request.next_page_token)


def count_schedules(request: r.CountSchedulesRequest) -> None:
    """The query is checked by who reads it."""
    fields.namespace(request.namespace)
    fields.id_token("CountSchedules", request.next_page_token)


def list_schedule_matching_times(request: r.ListScheduleMatchingTimesRequest) -> None:
    schedule_key(request.namespace, request.schedule_id)
    _range("", request.start_time, request.end_time)
    if request.spec is not None:
        spec.check(request.spec, "spec")


def _schedule(namespace: str, schedule: Schedule, memo: Memo, search_attributes: Memo) -> None:
    fields.payload_map("memo", memo, limits.MAX_MEMO_BYTES)
    fields.payload_map("search_attributes", search_attributes, limits.MAX_MEMO_BYTES)
    spec.check(schedule.spec)
    _action(namespace, schedule.action.start_workflow, schedule.policies)
    _policies(schedule.policies)
    state = schedule.state
    fields.text("schedule.state.note", state.note, limits.MAX_NOTE_BYTES)
    fields.count("schedule.state.remaining_actions", state.remaining_actions, 2**53, way_out="do not limit them")
    size = len(encode_json((schedule, memo, search_attributes)))
    if size > limits.MAX_SCHEDULE_BYTES:
        raise InvalidArgument(
            f"schedule has {size} bytes with its memo and search_attributes, above the limit of "
            f"{limits.MAX_SCHEDULE_BYTES}; let the action's input say where the data is",
            field="schedule",
        )


def _action(namespace: str, action: NewWorkflowExecutionInfo | None, policies: SchedulePolicies) -> None:
    """What it starts is checked as any start is."""
    if action is None:
        raise InvalidArgument(
            "schedule.action has no start_workflow, the one action that there is; say which workflow to start",
            field="schedule.action",
        )
    request = start_request(namespace, action, action.workflow_id)
    try:
        fields.duration("workflow_task_timeout", request.workflow_task_timeout)
        # A longer one is kept as it was said, and cut by each start.
        if request.workflow_task_timeout is not None:
            timeout = min(request.workflow_task_timeout, limits.MAX_WORKFLOW_TASK_TIMEOUT)
            request = msgspec.structs.replace(request, workflow_task_timeout=timeout)
        validation.start_workflow(request)
        start.check(request)
        if not policies.keep_original_workflow_id:
            fields.identifier("workflow_id", action.workflow_id, limits.MAX_ID_BYTES - _SUFFIX_BYTES)
    except InvalidArgument as refusal:
        field = refusal.details.get("field", "")
        details = {**refusal.details, "field": f"schedule.action.start_workflow.{field}"}
        raise type(refusal)(f"schedule.action.start_workflow: {refusal.message}", **details) from None


def _policies(policies: SchedulePolicies) -> None:
    fields.count(
        "schedule.policies.concurrency_limit",
        policies.concurrency_limit,
        limits.MAX_SCHEDULE_CONCURRENCY,
        way_out="use a lower one, or ALLOW_ALL without a limit",
    )
    fields.duration("schedule.policies.catchup_window", policies.catchup_window)
    window = policies.catchup_window
    if window is not None and window < limits.MIN_CATCHUP_WINDOW:
        raise InvalidArgument(
            f"schedule.policies.catchup_window is {fields.seconds(window)}, below the limit of "
            f"{fields.seconds(limits.MIN_CATCHUP_WINDOW)}; use a longer one: a restart may take as long",
            field="schedule.policies.catchup_window",
        )


def _patch(field: str, patch: r.SchedulePatch) -> None:
    if patch.pause is not None and patch.unpause is not None:
        raise InvalidArgument(f"{field} has pause and unpause; leave one of them out", field=f"{field}.unpause")
    for name, note in (("pause", patch.pause), ("unpause", patch.unpause)):
        if note is not None:
            fields.text(f"{field}.{name}", note, limits.MAX_NOTE_BYTES)
    trigger = patch.trigger_immediately
    if trigger is not None and trigger.scheduled_time is not None:
        _aware(f"{field}.trigger_immediately.scheduled_time", trigger.scheduled_time)
    fields.count(
        f"{field}.backfill", len(patch.backfill), limits.MAX_BACKFILLS_PER_PATCH, way_out="use several requests"
    )
    for index, backfill in enumerate(patch.backfill):
        _range(f"{field}.backfill[{index}].", backfill.start_time, backfill.end_time)


def _range(where: str, start_time: datetime, end_time: datetime) -> None:
    _aware(f"{where}start_time", start_time)
    _aware(f"{where}end_time", end_time)
    if end_time < start_time:
        raise InvalidArgument(
            f"{where}end_time is before {where}start_time; exchange them, or use a later one", field=f"{where}end_time"
        )


def _aware(field: str, time: datetime) -> None:
    if time.tzinfo is None:
        raise InvalidArgument(
            f"{field} has no time zone; use a time with one, such as 2026-01-31T09:00:00Z", field=field
        )
    if not spec.is_in_calendar(time):
        raise InvalidArgument(f"{field} is not in the years 1 to 9999 of UTC; use another time", field=field)
