"""Small records that many messages share: executions, retry policies, priorities, texts for people."""

from functools import lru_cache

from stepwell.api.common import Priority, RetryPolicy, UserMetadata, WorkflowExecution
from temporalio.api.common.v1 import message_pb2 as pb
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.sdk.v1 import user_metadata_pb2
from temporalio.api.taskqueue.v1 import message_pb2 as taskqueue_pb2

from .payloads import payload_of, to_payload
from .times import duration, timedelta_of

_LONGEST_OF_FIRST = 100
_DEFAULT = RetryPolicy()


def execution_of(value: pb.WorkflowExecution) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=value.workflow_id, run_id=value.run_id)


def to_execution(execution: WorkflowExecution) -> pb.WorkflowExecution:
    return pb.WorkflowExecution(workflow_id=execution.workflow_id, run_id=execution.run_id)


def optional_execution(execution: WorkflowExecution | None) -> pb.WorkflowExecution | None:
    return None if execution is None else to_execution(execution)


@lru_cache(maxsize=1_024)
def to_task_queue(name: str) -> taskqueue_pb2.TaskQueue:
    """Shared by all that have it; other messages take a copy."""
    return taskqueue_pb2.TaskQueue(name=name, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL)


def retry_policy_of(value: pb.RetryPolicy) -> RetryPolicy:
    """What is not said is as theirs: 1 s, factor 2."""
    return RetryPolicy(
        initial_interval=timedelta_of(value.initial_interval) or _DEFAULT.initial_interval,
        backoff_coefficient=value.backoff_coefficient or _DEFAULT.backoff_coefficient,
        maximum_interval=timedelta_of(value.maximum_interval),
        maximum_attempts=value.maximum_attempts,
        non_retryable_error_types=tuple(value.non_retryable_error_types),
    )


@lru_cache(maxsize=1_024)
def to_retry_policy(policy: RetryPolicy | None) -> pb.RetryPolicy | None:
    """With the default written out, as theirs are. Shared by all that have it; other messages take a copy."""
    if policy is None:
        return None
    longest = policy.maximum_interval or policy.initial_interval * _LONGEST_OF_FIRST
    return pb.RetryPolicy(
        initial_interval=duration(policy.initial_interval),
        backoff_coefficient=policy.backoff_coefficient,
        maximum_interval=duration(longest),
        maximum_attempts=policy.maximum_attempts,
        non_retryable_error_types=policy.non_retryable_error_types,
    )


def priority_of(value: pb.Priority) -> Priority | None:
    if not (value.priority_key or value.fairness_key or value.fairness_weight):
        return None
    return Priority(
        priority_key=value.priority_key, fairness_key=value.fairness_key, fairness_weight=value.fairness_weight
    )


def to_priority(priority: Priority | None) -> pb.Priority | None:
    if priority is None:
        return None
    return pb.Priority(
        priority_key=priority.priority_key,
        fairness_key=priority.fairness_key,
        fairness_weight=priority.fairness_weight,
    )


def user_metadata_of(value: user_metadata_pb2.UserMetadata) -> UserMetadata | None:
    summary = payload_of(value.summary) if value.HasField("summary") else None
    details = payload_of(value.details) if value.HasField("details") else None
    return UserMetadata(summary=summary, details=details) if summary is not None or details is not None else None


def to_user_metadata(metadata: UserMetadata | None) -> user_metadata_pb2.UserMetadata | None:
    if metadata is None:
        return None
    return user_metadata_pb2.UserMetadata(
        summary=None if metadata.summary is None else to_payload(metadata.summary),
        details=None if metadata.details is None else to_payload(metadata.details),
    )
