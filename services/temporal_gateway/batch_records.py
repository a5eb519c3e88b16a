"""Batch operations: what is done to each workflow, and how far it is."""

from collections.abc import Callable, Iterable
from typing import Any

from stepwell.api import batches as b
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import BatchOperationState, BatchOperationType, ResetType
from stepwell.api.errors import InvalidArgument, Unimplemented
from temporalio.api.batch.v1 import message_pb2 as batch_pb2
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import BatchOperationState as PbState
from temporalio.api.enums.v1 import BatchOperationType as PbType
from temporalio.api.enums.v1 import ExecutionType
from temporalio.api.enums.v1 import ResetType as PbResetType
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from .change_records import activity_options_of, excluded_of, mask_of, options_of, post_reset_of
from .names import member, number
from .payloads import map_of, payloads_of
from .records import execution_of
from .times import timedelta_of

_TYPES = {
    BatchOperationType.UPDATE_OPTIONS: PbType.BATCH_OPERATION_TYPE_UPDATE_EXECUTION_OPTIONS,
    BatchOperationType.UNPAUSE_ACTIVITIES: PbType.BATCH_OPERATION_TYPE_UNPAUSE_ACTIVITY,
    BatchOperationType.RESET_ACTIVITIES: PbType.BATCH_OPERATION_TYPE_RESET_ACTIVITY,
    BatchOperationType.TERMINATE_ACTIVITIES: PbType.BATCH_OPERATION_TYPE_TERMINATE_ACTIVITY,
    BatchOperationType.CANCEL_ACTIVITIES: PbType.BATCH_OPERATION_TYPE_CANCEL_ACTIVITY,
    BatchOperationType.DELETE_ACTIVITIES: PbType.BATCH_OPERATION_TYPE_DELETE_ACTIVITY,
}
"""The ones with other names."""


def to_type(kind: BatchOperationType) -> PbType.ValueType:
    """Unspecified for what only we have: the end of a pause of workflows."""
    value: PbType.ValueType = number(kind, "BATCH_OPERATION_TYPE_", PbType)
    return _TYPES.get(kind, value)


def to_state(state: BatchOperationState) -> PbState.ValueType:
    """One that was stopped has failed, in theirs."""
    if state is BatchOperationState.STOPPED:
        return PbState.BATCH_OPERATION_STATE_FAILED
    value: PbState.ValueType = number(state, "BATCH_OPERATION_STATE_", PbState)
    return value


def executions_of(request: pb.StartBatchOperationRequest) -> tuple[WorkflowExecution, ...]:
    """Raises InvalidArgument for those that are not of the kind that the operation is for."""
    listed = [execution_of(execution) for execution in request.executions]
    of_activities = request.WhichOneof("operation") in _OF_ACTIVITIES
    return (*listed, *_targets(request.target_executions, of_activities))


_OF_ACTIVITIES = ("terminate_activities_operation", "cancel_activities_operation", "delete_activities_operation")


def _targets(targets: Iterable[common_pb2.Execution], of_activities: bool) -> Iterable[WorkflowExecution]:
    kind = ExecutionType.EXECUTION_TYPE_ACTIVITY if of_activities else ExecutionType.EXECUTION_TYPE_WORKFLOW
    for target in targets:
        if target.type not in (ExecutionType.EXECUTION_TYPE_UNSPECIFIED, kind):
            wanted = "activities without a workflow" if of_activities else "workflows"
            raise InvalidArgument(
                f"target_executions has one of another kind; the operation is for {wanted}", field="target_executions"
            )
        yield WorkflowExecution(workflow_id=target.business_id, run_id=target.run_id)


def operation_of(request: pb.StartBatchOperationRequest) -> tuple[b.BatchOperation, str]:
    """With who asked for it. Raises InvalidArgument and Unimplemented."""
    kind = request.WhichOneof("operation")
    if kind is None:
        known = ", ".join(_OPERATIONS)
        raise InvalidArgument(f"the batch has no operation; give one of {known}", field="operation")
    if kind not in _OPERATIONS:
        raise Unimplemented(f"{kind} is none of the operations of this server's batches: {', '.join(_OPERATIONS)}")
    said = getattr(request, kind)
    return _OPERATIONS[kind](said), getattr(said, "identity", "")


def _terminate(said: batch_pb2.BatchOperationTermination) -> b.BatchOperation:
    return b.BatchTerminate(details=payloads_of(said.details))


def _cancel(said: batch_pb2.BatchOperationCancellation) -> b.BatchOperation:
    return b.BatchCancel()


def _signal(said: batch_pb2.BatchOperationSignal) -> b.BatchOperation:
    return b.BatchSignal(signal_name=said.signal, input=payloads_of(said.input), headers=map_of(said.header.fields))


def _delete(said: batch_pb2.BatchOperationDeletion) -> b.BatchOperation:
    return b.BatchDelete()


def _reset(said: batch_pb2.BatchOperationReset) -> b.BatchOperation:
    """``options`` are newer than the two fields that they replace."""
    operations = tuple([post_reset_of(operation) for operation in said.post_reset_operations])
    if not said.HasField("options"):
        if not said.reset_type:
            raise InvalidArgument("reset_operation does not say where to go back to; give options", field="options")
        goal = member(
            said.reset_type,
            ResetType,
            "RESET_TYPE_",
            PbResetType,
            field="reset_type",
            unspecified=ResetType.LAST_WORKFLOW_TASK,
        )
        excluded = excluded_of((), said.reset_reapply_type)
        return b.BatchReset(reset_type=goal, reset_reapply_exclude_types=excluded, post_reset_operations=operations)
    options = said.options
    return b.BatchReset(
        reset_type=_goal(options),
        build_id=options.build_id,
        current_run_only=options.current_run_only,
        reset_reapply_exclude_types=excluded_of(options.reset_reapply_exclude_types, options.reset_reapply_type),
        post_reset_operations=operations,
    )


def _goal(options: common_pb2.ResetOptions) -> ResetType:
    match options.WhichOneof("target"):
        case "first_workflow_task":
            return ResetType.FIRST_WORKFLOW_TASK
        case "last_workflow_task":
            return ResetType.LAST_WORKFLOW_TASK
        case "build_id":
            return ResetType.BUILD_ID
    raise InvalidArgument(
        "a batch goes back to first_workflow_task, last_workflow_task or build_id in each workflow; give one of them",
        field="options",
    )


def _update_options(said: batch_pb2.BatchOperationUpdateWorkflowExecutionOptions) -> b.BatchOperation:
    return b.BatchUpdateOptions(
        workflow_execution_options=options_of(said.workflow_execution_options),
        update_mask=mask_of(said.update_mask.paths),
    )


_Activities = (
    batch_pb2.BatchOperationUnpauseActivities
    | batch_pb2.BatchOperationResetActivities
    | batch_pb2.BatchOperationUpdateActivityOptions
)


def _activity_type(said: _Activities) -> str:
    if said.WhichOneof("activity") != "type":
        raise Unimplemented("a batch on activities is for those of one type on this server; give their type")
    return said.type


def _unpause_activities(said: batch_pb2.BatchOperationUnpauseActivities) -> b.BatchOperation:
    return b.BatchUnpauseActivities(
        activity_type=_activity_type(said),
        reset_attempts=said.reset_attempts,
        reset_heartbeat=said.reset_heartbeat,
        jitter=timedelta_of(said.jitter),
    )


def _reset_activities(said: batch_pb2.BatchOperationResetActivities) -> b.BatchOperation:
    return b.BatchResetActivities(
        activity_type=_activity_type(said),
        keep_paused=said.keep_paused,
        reset_heartbeat=said.reset_heartbeat,
        restore_original_options=said.restore_original_options,
        jitter=timedelta_of(said.jitter),
    )


def _update_activity_options(said: batch_pb2.BatchOperationUpdateActivityOptions) -> b.BatchOperation:
    options = activity_options_of(said.activity_options, said.update_mask.paths, restore_original=said.restore_original)
    return b.BatchUpdateActivityOptions(activity_type=_activity_type(said), options=options)


_OPERATIONS: dict[str, Callable[[Any], b.BatchOperation]] = {
    "termination_operation": _terminate,
    "cancellation_operation": _cancel,
    "signal_operation": _signal,
    "deletion_operation": _delete,
    "reset_operation": _reset,
    "update_workflow_options_operation": _update_options,
    "unpause_activities_operation": _unpause_activities,
    "reset_activities_operation": _reset_activities,
    "update_activity_options_operation": _update_activity_options,
    "terminate_activities_operation": lambda said: b.BatchTerminateActivities(),
    "cancel_activities_operation": lambda said: b.BatchCancelActivities(),
    "delete_activities_operation": lambda said: b.BatchDeleteActivities(),
}
