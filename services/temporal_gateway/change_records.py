"""What is changed of runs that are there: what a reset applies again, options of workflows and of activities."""

from collections.abc import Callable, Iterable
from typing import Any

from stepwell.api import requests as r
from stepwell.api.enums import ResetReapplyExcludeType
from stepwell.api.errors import InvalidArgument, Unimplemented
from temporalio.api.activity.v1 import message_pb2 as activity_pb2
from temporalio.api.enums.v1 import ResetReapplyExcludeType as PbExclude
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.workflow.v1 import message_pb2 as workflow_pb2

from .payloads import map_of, payloads_of
from .records import priority_of, to_retry_policy, to_task_queue
from .times import optional_duration, timedelta_of

_PREFIX = "RESET_REAPPLY_EXCLUDE_TYPE_"
_OURS = {kind.value: kind for kind in ResetReapplyExcludeType}


def excluded_of(kinds: Iterable[PbExclude.ValueType], reapply: int) -> tuple[ResetReapplyExcludeType, ...]:
    """The older field says what comes in again, the newer what does not; of what only they have there is nothing."""
    names = {PbExclude.Name(kind).removeprefix(_PREFIX) for kind in kinds}
    if reapply == ResetReapplyType.RESET_REAPPLY_TYPE_NONE:
        names |= {"SIGNAL", "UPDATE"}
    if reapply == ResetReapplyType.RESET_REAPPLY_TYPE_SIGNAL:
        names.add("UPDATE")
    return tuple([kind for name, kind in _OURS.items() if name in names])


def post_reset_of(operation: workflow_pb2.PostResetOperation) -> r.PostResetOperation:
    if operation.WhichOneof("variant") == "signal_workflow":
        signal = operation.signal_workflow
        return r.PostResetOperation(
            signal_workflow=r.PostResetSignal(
                signal_name=signal.signal_name, input=payloads_of(signal.input), headers=map_of(signal.header.fields)
            )
        )
    options = operation.update_workflow_options
    return r.PostResetOperation(
        update_workflow_options=r.PostResetOptions(
            workflow_execution_options=options_of(options.workflow_execution_options),
            update_mask=mask_of(options.update_mask.paths),
        )
    )


def options_of(value: workflow_pb2.WorkflowExecutionOptions) -> r.WorkflowExecutionOptions:
    return r.WorkflowExecutionOptions(priority=priority_of(value.priority))


def mask_of(paths: Iterable[str]) -> str:
    """Raises Unimplemented for options that we do not have."""
    paths = tuple(paths)
    for path in paths:
        if path.split(".")[0] != "priority":
            raise Unimplemented(f"option {path!r} of a workflow cannot be changed on this server; leave it out")
    return ",".join(paths)


_Options = activity_pb2.ActivityOptions
_ACTIVITY_OPTIONS: dict[str, tuple[str, Callable[[_Options], Any]]] = {
    "task_queue": ("task_queue", lambda it: it.task_queue.name),
    "task_queue.name": ("task_queue", lambda it: it.task_queue.name),
    "schedule_to_close_timeout": ("schedule_to_close_timeout", lambda it: timedelta_of(it.schedule_to_close_timeout)),
    "schedule_to_start_timeout": ("schedule_to_start_timeout", lambda it: timedelta_of(it.schedule_to_start_timeout)),
    "start_to_close_timeout": ("start_to_close_timeout", lambda it: timedelta_of(it.start_to_close_timeout)),
    "heartbeat_timeout": ("heartbeat_timeout", lambda it: timedelta_of(it.heartbeat_timeout)),
    "retry_policy.initial_interval": (
        "retry_initial_interval",
        lambda it: timedelta_of(it.retry_policy.initial_interval),
    ),
    "retry_policy.backoff_coefficient": (
        "retry_backoff_coefficient",
        lambda it: it.retry_policy.backoff_coefficient or None,
    ),
    "retry_policy.maximum_interval": (
        "retry_maximum_interval",
        lambda it: timedelta_of(it.retry_policy.maximum_interval),
    ),
    "retry_policy.maximum_attempts": ("retry_maximum_attempts", lambda it: it.retry_policy.maximum_attempts),
}
"""What of an update mask we have: the field of our record, and what it becomes."""


def activity_options_of(value: _Options, paths: Iterable[str], *, restore_original: bool) -> r.ActivityOptionsChange:
    """Raises Unimplemented for options that we do not have, InvalidArgument for one that is named and not given."""
    given: dict[str, Any] = {}
    for path in paths:
        if path not in _ACTIVITY_OPTIONS:
            known = ", ".join(_ACTIVITY_OPTIONS)
            raise Unimplemented(f"option {path!r} of an activity cannot be changed on this server; use {known}")
        field, read = _ACTIVITY_OPTIONS[path]
        said = read(value)
        if said is None or said == "":
            raise InvalidArgument(
                f"update_mask names {path}, but it is not given; give it, or leave it out of the mask",
                field="update_mask",
            )
        given[field] = said
    return r.ActivityOptionsChange(**given, restore_original=restore_original)


def to_activity_options(pending: r.PendingActivityInfo) -> activity_pb2.ActivityOptions:
    """The options that hold now."""
    return activity_pb2.ActivityOptions(
        task_queue=to_task_queue(pending.task_queue),
        schedule_to_close_timeout=optional_duration(pending.schedule_to_close_timeout),
        schedule_to_start_timeout=optional_duration(pending.schedule_to_start_timeout),
        start_to_close_timeout=optional_duration(pending.start_to_close_timeout),
        heartbeat_timeout=optional_duration(pending.heartbeat_timeout),
        retry_policy=to_retry_policy(pending.retry_policy),
    )
