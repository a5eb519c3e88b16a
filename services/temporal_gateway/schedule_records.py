"""Schedules: what they do and by which rules, orders to them, and what is known of them."""

from collections.abc import Iterable
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from stepwell.api import requests as r
from stepwell.api import schedules as s
from stepwell.api.enums import ScheduleOverlapPolicy, WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument, Unimplemented
from stepwell.api.limits import MIN_CATCHUP_WINDOW
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as PbOverlapPolicy
from temporalio.api.enums.v1 import WorkflowExecutionStatus as PbStatus
from temporalio.api.enums.v1 import WorkflowIdReusePolicy
from temporalio.api.schedule.v1 import message_pb2 as pb
from temporalio.api.workflow.v1 import message_pb2 as workflow_pb2

from .names import member, number
from .payloads import map_of, payloads_of, to_header, to_map, to_memo, to_payloads, to_search_attributes
from .policies import reuse_policy
from .records import (
    optional_execution,
    priority_of,
    retry_policy_of,
    to_execution,
    to_priority,
    to_retry_policy,
    to_task_queue,
    to_user_metadata,
    user_metadata_of,
)
from .schedule_specs import spec_of, to_spec
from .times import optional_duration, time_of, timedelta_of, timestamp

_OVERLAP = "SCHEDULE_OVERLAP_POLICY_"
_ACTION = "schedule.action.start_workflow"


def schedule_of(value: pb.Schedule) -> s.Schedule:
    """Raises InvalidArgument and Unimplemented for what cannot be kept."""
    state = value.state
    return s.Schedule(
        spec=spec_of(value.spec),
        action=_action_of(value.action),
        policies=_policies_of(value.policies),
        state=s.ScheduleState(
            note=state.notes,
            paused=state.paused,
            limited_actions=state.limited_actions,
            remaining_actions=state.remaining_actions,
        ),
    )


def _action_of(value: pb.ScheduleAction) -> s.ScheduleAction:
    if not value.HasField("start_workflow"):
        return s.ScheduleAction()
    start = value.start_workflow
    if start.cron_schedule:
        field = f"{_ACTION}.cron_schedule"
        raise InvalidArgument(f"{field} is set, but it is the schedule that says when; leave it out", field=field)
    if start.HasField("versioning_override"):
        raise Unimplemented(f"{_ACTION}.versioning_override is not supported by this server; leave it out")
    return s.ScheduleAction(
        start_workflow=s.NewWorkflowExecutionInfo(
            workflow_id=start.workflow_id,
            workflow_type=start.workflow_type.name,
            task_queue=start.task_queue.name,
            input=payloads_of(start.input),
            workflow_execution_timeout=timedelta_of(start.workflow_execution_timeout),
            workflow_run_timeout=timedelta_of(start.workflow_run_timeout),
            workflow_task_timeout=timedelta_of(start.workflow_task_timeout),
            workflow_id_reuse_policy=reuse_policy(start.workflow_id_reuse_policy),
            memo=map_of(start.memo.fields),
            search_attributes=map_of(start.search_attributes.indexed_fields),
            headers=map_of(start.header.fields),
            retry_policy=retry_policy_of(start.retry_policy) if start.HasField("retry_policy") else None,
            user_metadata=user_metadata_of(start.user_metadata),
            priority=priority_of(start.priority),
        )
    )


def _policies_of(value: pb.SchedulePolicies) -> s.SchedulePolicies:
    """Theirs make a shorter catch-up window the shortest, without a word. Zero is what SDKs read, and send back, of one
    that was not set."""
    window = timedelta_of(value.catchup_window)
    return s.SchedulePolicies(
        overlap_policy=_overlap_of(value.overlap_policy) or ScheduleOverlapPolicy.SKIP,
        catchup_window=None if window is None else max(window, MIN_CATCHUP_WINDOW),
        pause_on_failure=value.pause_on_failure,
        keep_original_workflow_id=value.keep_original_workflow_id,
    )


def _overlap_of(value: int) -> ScheduleOverlapPolicy | None:
    if not value:
        return None
    skip = ScheduleOverlapPolicy.SKIP
    return member(
        value,
        ScheduleOverlapPolicy,
        _OVERLAP,
        PbOverlapPolicy,
        field="schedule.policies.overlap_policy",
        unspecified=skip,
    )


def patch_of(value: pb.SchedulePatch) -> r.SchedulePatch:
    trigger = None
    if value.HasField("trigger_immediately"):
        asked = value.trigger_immediately
        trigger = r.TriggerImmediatelyRequest(
            overlap_policy=_overlap_of(asked.overlap_policy),
            scheduled_time=time_of(asked.scheduled_time) if asked.HasField("scheduled_time") else None,
        )
    backfill = [
        r.BackfillRequest(
            start_time=time_of(asked.start_time),
            end_time=time_of(asked.end_time),
            overlap_policy=_overlap_of(asked.overlap_policy),
        )
        for asked in value.backfill_request
    ]
    return r.SchedulePatch(
        trigger_immediately=trigger,
        backfill=tuple(backfill),
        pause=value.pause or None,
        unpause=value.unpause or None,
    )


def to_schedule(schedule: s.Schedule) -> pb.Schedule:
    policies, state = schedule.policies, schedule.state
    return pb.Schedule(
        spec=to_spec(schedule.spec),
        action=_to_action(schedule.action),
        policies=pb.SchedulePolicies(
            overlap_policy=number(policies.overlap_policy, _OVERLAP, PbOverlapPolicy),
            catchup_window=optional_duration(policies.catchup_window),
            pause_on_failure=policies.pause_on_failure,
            keep_original_workflow_id=policies.keep_original_workflow_id,
        ),
        state=pb.ScheduleState(
            notes=state.note,
            paused=state.paused,
            limited_actions=state.limited_actions,
            remaining_actions=state.remaining_actions,
        ),
    )


def _to_action(action: s.ScheduleAction) -> pb.ScheduleAction:
    start = action.start_workflow
    if start is None:
        return pb.ScheduleAction()
    return pb.ScheduleAction(
        start_workflow=workflow_pb2.NewWorkflowExecutionInfo(
            workflow_id=start.workflow_id,
            workflow_type=common_pb2.WorkflowType(name=start.workflow_type),
            task_queue=to_task_queue(start.task_queue),
            input=to_payloads(start.input),
            workflow_execution_timeout=optional_duration(start.workflow_execution_timeout),
            workflow_run_timeout=optional_duration(start.workflow_run_timeout),
            workflow_task_timeout=optional_duration(start.workflow_task_timeout),
            workflow_id_reuse_policy=number(
                start.workflow_id_reuse_policy, "WORKFLOW_ID_REUSE_POLICY_", WorkflowIdReusePolicy
            ),
            retry_policy=to_retry_policy(start.retry_policy),
            memo=to_memo(start.memo),
            search_attributes=to_search_attributes(start.search_attributes),
            header=to_header(start.headers),
            user_metadata=to_user_metadata(start.user_metadata),
            priority=to_priority(start.priority),
        )
    )


def to_info(info: s.ScheduleInfo) -> pb.ScheduleInfo:
    return pb.ScheduleInfo(
        action_count=info.action_count,
        missed_catchup_window=info.missed_catchup_window,
        overlap_skipped=info.overlap_skipped,
        buffer_dropped=info.buffer_dropped,
        buffer_size=info.buffer_size,
        running_workflows=[to_execution(execution) for execution in info.running_workflows],
        recent_actions=_to_results(info.recent_actions),
        future_action_times=to_times(info.future_action_times),
        create_time=timestamp(info.create_time),
        update_time=None if info.update_time is None else timestamp(info.update_time),
        state_size_bytes=info.state_size_bytes,
    )


def to_entry(entry: s.ScheduleListEntry) -> pb.ScheduleListEntry:
    info = entry.info
    return pb.ScheduleListEntry(
        schedule_id=entry.schedule_id,
        memo=common_pb2.Memo(fields=to_map(entry.memo)),
        search_attributes=common_pb2.SearchAttributes(indexed_fields=to_map(entry.search_attributes)),
        info=pb.ScheduleListInfo(
            spec=to_spec(info.spec),
            workflow_type=common_pb2.WorkflowType(name=info.workflow_type),
            notes=info.note,
            paused=info.paused,
            recent_actions=_to_results(info.recent_actions),
            future_action_times=to_times(info.future_action_times),
        ),
    )


def _to_results(results: Iterable[s.ScheduleActionResult]) -> list[pb.ScheduleActionResult]:
    return [
        pb.ScheduleActionResult(
            schedule_time=timestamp(result.schedule_time),
            actual_time=timestamp(result.actual_time),
            start_workflow_result=optional_execution(result.start_workflow_result),
            start_workflow_status=_to_status(result.start_workflow_status),
        )
        for result in results
    ]


def _to_status(status: WorkflowExecutionStatus | None) -> PbStatus.ValueType:
    if status is None:
        return PbStatus.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED
    value: PbStatus.ValueType = number(status, "WORKFLOW_EXECUTION_STATUS_", PbStatus)
    return value


def to_times(times: Iterable[datetime]) -> list[Timestamp]:
    return [timestamp(time) for time in times]
