"""Activities without a workflow, as their messages say it."""

from typing import NamedTuple

from stepwell.api import requests as r
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import InvalidArgument, Unimplemented
from stepwell.api.payloads import Payload
from temporalio.api.activity.v1 import message_pb2 as pb
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import (
    ActivityExecutionStatus,
    ActivityIdConflictPolicy,
    ActivityIdReusePolicy,
    PendingActivityState,
)
from temporalio.api.workflowservice.v1 import request_response_pb2 as service_pb2

from .failures import to_failure
from .names import member, number
from .payloads import map_of, to_header, to_payloads, to_search_attributes
from .records import to_priority, to_retry_policy, to_user_metadata
from .search import our_name
from .times import duration, optional_duration, optional_timestamp, timestamp


def check_start(request: service_pb2.StartActivityExecutionRequest) -> None:
    """Raises Unimplemented for what would be lost."""
    if request.completion_callbacks:
        raise Unimplemented(
            "completion_callbacks of an activity without a workflow are not supported by this server; start it "
            "without, and poll its result"
        )


def reuse_policy(value: int) -> WorkflowIDReusePolicy:
    return member(
        value,
        WorkflowIDReusePolicy,
        "ACTIVITY_ID_REUSE_POLICY_",
        ActivityIdReusePolicy,
        field="id_reuse_policy",
        unspecified=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    )


def conflict_policy(value: int) -> WorkflowIDConflictPolicy:
    return member(
        value,
        WorkflowIDConflictPolicy,
        "ACTIVITY_ID_CONFLICT_POLICY_",
        ActivityIdConflictPolicy,
        field="id_conflict_policy",
        unspecified=WorkflowIDConflictPolicy.FAIL,
    )


def our_attributes(value: common_pb2.SearchAttributes) -> dict[str, Payload]:
    return {our_name(name): payload for name, payload in map_of(value.indexed_fields).items()}


def to_outcome(outcome: r.ActivityResult | None) -> pb.ActivityExecutionOutcome | None:
    """A result of nothing is a result all the same."""
    if outcome is None:
        return None
    if outcome.failure is not None:
        return pb.ActivityExecutionOutcome(failure=to_failure(outcome.failure))
    return pb.ActivityExecutionOutcome(result=to_payloads(outcome.result) or common_pb2.Payloads())


def to_info(answer: r.DescribeActivityResponse) -> pb.ActivityExecutionInfo:
    info = answer.info
    execution_time = answer.execution_time or info.schedule_time
    delay = execution_time - info.schedule_time
    value = pb.ActivityExecutionInfo(
        activity_id=info.activity_id,
        run_id=info.run_id,
        activity_type=common_pb2.ActivityType(name=info.activity_type),
        status=number(info.status, "ACTIVITY_EXECUTION_STATUS_", ActivityExecutionStatus),
        task_queue=info.task_queue,
        schedule_to_close_timeout=optional_duration(answer.schedule_to_close_timeout),
        schedule_to_start_timeout=optional_duration(answer.schedule_to_start_timeout),
        start_to_close_timeout=optional_duration(answer.start_to_close_timeout),
        heartbeat_timeout=optional_duration(answer.heartbeat_timeout),
        retry_policy=to_retry_policy(answer.retry_policy),
        heartbeat_details=to_payloads(answer.heartbeat_details),
        last_heartbeat_time=optional_timestamp(answer.last_heartbeat_time),
        last_started_time=optional_timestamp(answer.last_started_time),
        attempt=answer.attempt,
        schedule_time=timestamp(info.schedule_time),
        expiration_time=optional_timestamp(answer.expiration_time),
        close_time=optional_timestamp(info.close_time),
        last_failure=to_failure(answer.last_failure),
        last_worker_identity=answer.last_worker_identity,
        next_attempt_schedule_time=optional_timestamp(answer.next_attempt_schedule_time),
        priority=to_priority(answer.priority),
        search_attributes=to_search_attributes(info.search_attributes),
        header=to_header(answer.headers),
        user_metadata=to_user_metadata(answer.user_metadata),
        canceled_reason=answer.cancel_reason,
        start_delay=duration(delay) if delay else None,
        execution_time=timestamp(execution_time),
        state_transition_count=answer.state_transition_count,
    )
    if answer.run_state is not None:
        value.run_state = number(answer.run_state, "PENDING_ACTIVITY_STATE_", PendingActivityState)
    if info.close_time is not None:
        value.execution_duration.CopyFrom(duration(info.close_time - info.schedule_time))
    return value


def to_list_info(info: r.ActivityExecutionInfo) -> pb.ActivityExecutionListInfo:
    value = pb.ActivityExecutionListInfo(
        activity_id=info.activity_id,
        run_id=info.run_id,
        activity_type=common_pb2.ActivityType(name=info.activity_type),
        schedule_time=timestamp(info.schedule_time),
        close_time=optional_timestamp(info.close_time),
        status=number(info.status, "ACTIVITY_EXECUTION_STATUS_", ActivityExecutionStatus),
        search_attributes=to_search_attributes(info.search_attributes),
        task_queue=info.task_queue,
    )
    if info.close_time is not None:
        value.execution_duration.CopyFrom(duration(info.close_time - info.schedule_time))
    return value


class Seen(NamedTuple):
    """What a caller was shown, by which it waits for something else."""

    run_id: str
    transitions: int

    @classmethod
    def of(cls, answer: r.DescribeActivityResponse) -> "Seen":
        return cls(answer.info.run_id, answer.state_transition_count)

    def token(self) -> bytes:
        return f"{self.transitions}:{self.run_id}".encode()


def seen_by(token: bytes) -> Seen:
    """Raises InvalidArgument."""
    try:
        count, _, run_id = token.decode().partition(":")
        return Seen(run_id, int(count))
    except ValueError:
        raise InvalidArgument(
            "long_poll_token is not one that this server gave; describe without it", field="long_poll_token"
        ) from None
