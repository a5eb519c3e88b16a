"""What is told of a schedule (LC-36). Pure."""

from datetime import datetime, timedelta

import msgspec
from stepwell.api import limits
from stepwell.api.common import WorkflowExecution
from stepwell.api.requests_schedules import DescribeScheduleResponse
from stepwell.api.schedules import ScheduleInfo, ScheduleListEntry, ScheduleListInfo

from .runs import action_of
from .spec import LOOKS_AT_ONCE, before_latest, next_time
from .state import ScheduleRecord, conflict_token, counted
from .times import Looks

_JUST_BEFORE = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def described(record: ScheduleRecord, size: int, now: datetime) -> DescribeScheduleResponse:
    return DescribeScheduleResponse(
        schedule=record.schedule,
        info=_info(record, size, now),
        memo=record.memo,
        search_attributes=record.search_attributes,
        conflict_token=conflict_token(record),
    )


def _info(record: ScheduleRecord, size: int, now: datetime) -> ScheduleInfo:
    return ScheduleInfo(
        action_count=record.action_count,
        missed_catchup_window=record.missed_catchup_window,
        missed_paused=record.missed_paused,
        overlap_skipped=record.overlap_skipped,
        buffer_dropped=record.buffer_dropped,
        rate_delayed=record.rate_delayed,
        start_refused=record.start_refused,
        last_refusal=record.last_refusal,
        buffer_size=len(record.buffer),
        state_size_bytes=size,
        running_workflows=tuple(
            [
                WorkflowExecution(workflow_id=run.workflow_id, run_id=run.run_id)
                for run in counted(record)
                if run.started
            ]
        ),
        recent_actions=record.recent_actions[-limits.SCHEDULE_RECENT_ACTIONS :],
        future_action_times=future_times(record, now, limits.SCHEDULE_FUTURE_ACTIONS),
        create_time=record.create_time,
        update_time=record.update_time,
    )


def listed(record: ScheduleRecord, now: datetime) -> ScheduleListEntry:
    schedule = record.schedule
    return ScheduleListEntry(
        schedule_id=record.schedule_id,
        memo=record.memo,
        search_attributes=record.search_attributes,
        info=ScheduleListInfo(
            spec=msgspec.structs.replace(schedule.spec, time_zone_data=b""),
            workflow_type=action_of(record).workflow_type,
            note=schedule.state.note,
            paused=schedule.state.paused,
            recent_actions=record.recent_actions[-limits.SCHEDULE_LIST_ACTIONS :],
            future_action_times=future_times(record, now, limits.SCHEDULE_LIST_ACTIONS),
        ),
    )


def future_times(record: ScheduleRecord, now: datetime, most: int) -> tuple[datetime, ...]:
    """Fewer, when they are hard to find."""
    state, spec = record.schedule.state, record.schedule.spec
    if state.limited_actions:
        most = min(most, state.remaining_actions)
    looks = Looks(LOOKS_AT_ONCE)
    cursor = before_latest(spec, max(record.cursor, now - spec.jitter - _JUST_BEFORE), now, looks)
    if record.search is not None:
        cursor = max(cursor, record.search.reached if record.search.found is None else record.search.found - _SECOND)
    times: list[datetime] = []
    while len(times) < most:
        firing = next_time(spec, cursor, record.schedule_id, looks)
        if firing is None:
            break
        cursor = firing.nominal
        if firing.at > max(now, record.not_before):
            times.append(firing.at)
    return tuple(times)
