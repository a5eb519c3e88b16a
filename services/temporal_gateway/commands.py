"""What a Temporal worker decided, as our commands: one function for each kind, in the table ``COMMANDS``.

A command of a kind that is not here fails its workflow task, as their server does: ``FEATURE_DISABLED``.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from stepwell.api import commands as c
from stepwell.api.enums import ParentClosePolicy
from stepwell.api.errors import InvalidArgument
from stepwell.api.failures import Failure
from temporalio.api.command.v1 import message_pb2 as pb
from temporalio.api.enums.v1 import CommandType
from temporalio.api.enums.v1 import ParentClosePolicy as PbParentClosePolicy
from temporalio.api.protocol.v1 import message_pb2 as protocol_pb2

from .failures import failure_of
from .names import member
from .payloads import map_of, payload_of, payloads_of
from .policies import conflict_policy, reuse_policy
from .records import execution_of, priority_of, retry_policy_of, user_metadata_of
from .search import our_name
from .times import task_timeout_of, timedelta_of
from .update_records import by_id, command_of

_ZERO = timedelta(0)
_PROTOCOL_MESSAGE = CommandType.COMMAND_TYPE_PROTOCOL_MESSAGE


class UnknownCommand(Exception):
    """A command that this server does not carry out; the text says which."""


def commands_of(commands: Iterable[pb.Command], messages: Iterable[protocol_pb2.Message]) -> tuple[c.Command, ...]:
    """In order. A message that no command points at is a rejected update, which makes no event: those come first, as
    a command that closes the run is the last. Raises UnknownCommand, and InvalidArgument."""
    waiting = dict(by_id(messages))
    ordered: list[c.Command] = []
    for command in commands:
        if command.command_type == _PROTOCOL_MESSAGE:
            message_id = command.protocol_message_command_attributes.message_id
            message = waiting.pop(message_id, None)
            if message is None:
                raise InvalidArgument(f"a command names message {message_id!r}, which is not sent", field="messages")
            ordered.append(command_of(message))
            continue
        make = COMMANDS.get(command.command_type)
        if make is None:
            raise UnknownCommand(f"{_name(command)} is not supported by this server")
        ordered.append(make(command))
    return (*[command_of(message) for message in waiting.values()], *ordered)


def _name(command: pb.Command) -> str:
    try:
        return CommandType.Name(command.command_type)
    except ValueError:
        return f"command type {command.command_type}"


def _schedule_activity(command: pb.Command) -> c.ScheduleActivityTask:
    it = command.schedule_activity_task_command_attributes
    return c.ScheduleActivityTask(
        activity_id=it.activity_id,
        activity_type=it.activity_type.name,
        task_queue=it.task_queue.name,
        headers=map_of(it.header.fields),
        input=payloads_of(it.input),
        schedule_to_close_timeout=timedelta_of(it.schedule_to_close_timeout),
        schedule_to_start_timeout=timedelta_of(it.schedule_to_start_timeout),
        start_to_close_timeout=timedelta_of(it.start_to_close_timeout),
        heartbeat_timeout=timedelta_of(it.heartbeat_timeout),
        retry_policy=retry_policy_of(it.retry_policy) if it.HasField("retry_policy") else None,
        request_eager_execution=it.request_eager_execution,
        user_metadata=user_metadata_of(command.user_metadata),
        priority=priority_of(it.priority),
    )


def _cancel_activity(command: pb.Command) -> c.RequestCancelActivityTask:
    it = command.request_cancel_activity_task_command_attributes
    return c.RequestCancelActivityTask(scheduled_event_id=it.scheduled_event_id)


def _start_timer(command: pb.Command) -> c.StartTimer:
    it = command.start_timer_command_attributes
    return c.StartTimer(
        timer_id=it.timer_id,
        start_to_fire_timeout=timedelta_of(it.start_to_fire_timeout) or _ZERO,
        user_metadata=user_metadata_of(command.user_metadata),
    )


def _cancel_timer(command: pb.Command) -> c.CancelTimer:
    return c.CancelTimer(timer_id=command.cancel_timer_command_attributes.timer_id)


def _complete(command: pb.Command) -> c.CompleteWorkflowExecution:
    it = command.complete_workflow_execution_command_attributes
    return c.CompleteWorkflowExecution(result=payloads_of(it.result))


def _fail(command: pb.Command) -> c.FailWorkflowExecution:
    it = command.fail_workflow_execution_command_attributes
    return c.FailWorkflowExecution(failure=failure_of(it.failure))


def _cancel(command: pb.Command) -> c.CancelWorkflowExecution:
    it = command.cancel_workflow_execution_command_attributes
    return c.CancelWorkflowExecution(details=payloads_of(it.details))


def _record_marker(command: pb.Command) -> c.RecordMarker:
    it = command.record_marker_command_attributes
    failure: Failure | None = failure_of(it.failure) if it.HasField("failure") else None
    return c.RecordMarker(
        marker_name=it.marker_name,
        details={name: payload_of(of.payloads[0]) for name, of in it.details.items() if len(of.payloads) == 1},
        failure=failure,
        user_metadata=user_metadata_of(command.user_metadata),
        several={name: payloads_of(of) for name, of in it.details.items() if len(of.payloads) != 1},
        headers=map_of(it.header.fields),
    )


def _continue_as_new(command: pb.Command) -> c.ContinueAsNewWorkflowExecution:
    it = command.continue_as_new_workflow_execution_command_attributes
    return c.ContinueAsNewWorkflowExecution(
        workflow_type=it.workflow_type.name,
        task_queue=it.task_queue.name,
        input=payloads_of(it.input),
        workflow_run_timeout=timedelta_of(it.workflow_run_timeout),
        workflow_task_timeout=task_timeout_of(it.workflow_task_timeout),
        backoff_start_interval=timedelta_of(it.backoff_start_interval),
        retry_policy=retry_policy_of(it.retry_policy) if it.HasField("retry_policy") else None,
        headers=map_of(it.header.fields),
        memo=map_of(it.memo.fields) or None,
        search_attributes=map_of(it.search_attributes.indexed_fields) or None,
    )


def _start_child(command: pb.Command) -> c.StartChildWorkflowExecution:
    it = command.start_child_workflow_execution_command_attributes
    return c.StartChildWorkflowExecution(
        namespace=it.namespace,
        workflow_id=it.workflow_id,
        workflow_type=it.workflow_type.name,
        task_queue=it.task_queue.name,
        input=payloads_of(it.input),
        workflow_execution_timeout=timedelta_of(it.workflow_execution_timeout),
        workflow_run_timeout=timedelta_of(it.workflow_run_timeout),
        workflow_task_timeout=task_timeout_of(it.workflow_task_timeout),
        parent_close_policy=member(
            it.parent_close_policy,
            ParentClosePolicy,
            "PARENT_CLOSE_POLICY_",
            PbParentClosePolicy,
            field="parent_close_policy",
            unspecified=ParentClosePolicy.TERMINATE,
        ),
        workflow_id_reuse_policy=reuse_policy(it.workflow_id_reuse_policy),
        workflow_id_conflict_policy=conflict_policy(0, it.workflow_id_reuse_policy),
        retry_policy=retry_policy_of(it.retry_policy) if it.HasField("retry_policy") else None,
        cron_schedule=it.cron_schedule,
        headers=map_of(it.header.fields),
        memo=map_of(it.memo.fields),
        search_attributes=map_of(it.search_attributes.indexed_fields),
        user_metadata=user_metadata_of(command.user_metadata),
        priority=priority_of(it.priority),
    )


def _signal_external(command: pb.Command) -> c.SignalExternalWorkflowExecution:
    it = command.signal_external_workflow_execution_command_attributes
    return c.SignalExternalWorkflowExecution(
        namespace=it.namespace,
        execution=execution_of(it.execution),
        signal_name=it.signal_name,
        input=payloads_of(it.input),
        child_workflow_only=it.child_workflow_only,
        headers=map_of(it.header.fields),
    )


def _cancel_external(command: pb.Command) -> c.RequestCancelExternalWorkflowExecution:
    it = command.request_cancel_external_workflow_execution_command_attributes
    return c.RequestCancelExternalWorkflowExecution(
        namespace=it.namespace,
        workflow_id=it.workflow_id,
        run_id=it.run_id,
        child_workflow_only=it.child_workflow_only,
        reason=it.reason,
    )


def _upsert_search_attributes(command: pb.Command) -> c.UpsertWorkflowSearchAttributes:
    """One of them is set by their core for the system: the versions of changed code."""
    it = command.upsert_workflow_search_attributes_command_attributes
    said = map_of(it.search_attributes.indexed_fields)
    return c.UpsertWorkflowSearchAttributes(search_attributes={our_name(name): value for name, value in said.items()})


def _modify_properties(command: pb.Command) -> c.ModifyWorkflowProperties:
    it = command.modify_workflow_properties_command_attributes
    return c.ModifyWorkflowProperties(upserted_memo=map_of(it.upserted_memo.fields))


COMMANDS: dict[Any, Callable[[pb.Command], c.Command]] = {
    CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK: _schedule_activity,
    CommandType.COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK: _cancel_activity,
    CommandType.COMMAND_TYPE_START_TIMER: _start_timer,
    CommandType.COMMAND_TYPE_CANCEL_TIMER: _cancel_timer,
    CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION: _complete,
    CommandType.COMMAND_TYPE_FAIL_WORKFLOW_EXECUTION: _fail,
    CommandType.COMMAND_TYPE_CANCEL_WORKFLOW_EXECUTION: _cancel,
    CommandType.COMMAND_TYPE_RECORD_MARKER: _record_marker,
    CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION: _continue_as_new,
    CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION: _start_child,
    CommandType.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION: _signal_external,
    CommandType.COMMAND_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION: _cancel_external,
    CommandType.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES: _upsert_search_attributes,
    CommandType.COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES: _modify_properties,
}
