"""What requests about batch operations must be like (LC-43, LC-44).

What is asked of each workflow is checked as if it was asked of one: by the request that the batch will make.
"""

from datetime import UTC, datetime
from typing import Any

from stepwell.api import requests as r
from stepwell.api.batches import BatchUpdateOptions
from stepwell.api.enums import BatchOperationState
from stepwell.api.errors import InvalidArgument
from stepwell.api.limits import MAX_BATCH_EXECUTIONS, MAX_BATCH_RATE, MAX_LIST_PAGE, MAX_NONCE_BYTES, MIN_BATCH_RATE

from ..batcher.actions import request_of
from ..batcher.records import Job, Target
from ..history.machines import options
from . import fields, validation, validation_activities, validation_standalone

_DEFAULT_PAGE = 100


def start_batch_operation(request: r.StartBatchOperationRequest) -> None:
    job(request.namespace, request.job_id)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)
    _which(request)
    rate = request.max_operations_per_second
    if rate != 0 and not MIN_BATCH_RATE <= rate <= MAX_BATCH_RATE:
        raise InvalidArgument(
            f"max_operations_per_second is {rate:g}; give a number from {MIN_BATCH_RATE} to {MAX_BATCH_RATE}, or leave "
            "it out, which means the highest",
            field="max_operations_per_second",
        )
    _operation(request)


def stop_batch_operation(request: r.StopBatchOperationRequest) -> None:
    job(request.namespace, request.job_id)
    fields.text("reason", request.reason)
    fields.text("identity", request.identity)


def list_batch_operations(request: r.ListBatchOperationsRequest) -> tuple[str, int]:
    """The job id behind which to begin, and how many to list."""
    fields.namespace(request.namespace)
    fields.count("page_size", request.page_size, MAX_LIST_PAGE, way_out="ask for less and read on")
    after = fields.id_token("ListBatchOperations", request.next_page_token)
    return after, min(request.page_size or _DEFAULT_PAGE, MAX_LIST_PAGE)


def job(namespace: str, job_id: str) -> None:
    fields.namespace(namespace)
    fields.identifier("job_id", job_id)


def _which(request: r.StartBatchOperationRequest) -> None:
    if bool(request.executions) == bool(request.query):
        which = "both are" if request.query else "neither is"
        raise InvalidArgument(
            f"a batch is for listed executions or for those that a query finds, and {which} given; give exactly one",
            field="executions",
        )
    fields.count(
        "number of executions",
        len(request.executions),
        MAX_BATCH_EXECUTIONS,
        way_out="use several batches, one after the other, or a query",
    )
    for index, execution in enumerate(request.executions):
        fields.path_identifier(f"executions[{index}].workflow_id", execution.workflow_id)
        # No engine makes longer ones, and a part of the list has to fit into one record.
        fields.optional_identifier(f"executions[{index}].run_id", execution.run_id, MAX_NONCE_BYTES)


def _operation(request: r.StartBatchOperationRequest) -> None:
    now = datetime.min.replace(tzinfo=UTC)
    sample = Job(
        namespace=request.namespace,
        id=request.job_id,
        operation=request.operation,
        rate=1.0,
        started=now,
        next_at=now,
        state=BatchOperationState.RUNNING,
    )
    asked: Any = request_of(sample, Target("workflow", "run"))
    if isinstance(request.operation, BatchUpdateOptions):
        options.change_of(request.operation.workflow_execution_options, request.operation.update_mask, "")
    _CHECKS[type(asked)](asked)


_CHECKS: dict[type, Any] = {
    r.TerminateWorkflowRequest: validation.terminate_workflow,
    r.CancelWorkflowRequest: validation.cancel_workflow,
    r.SignalWorkflowRequest: validation.signal_workflow,
    r.DeleteWorkflowRequest: validation.delete_workflow,
    r.ResetWorkflowRequest: validation.reset_workflow,
    r.UpdateWorkflowOptionsRequest: validation.update_workflow_options,
    r.UnpauseWorkflowRequest: validation.pause_workflow,
    r.UnpauseActivityRequest: validation_activities.unpause_activity,
    r.ResetActivityRequest: validation_activities.reset_activity,
    r.UpdateActivityOptionsRequest: validation_activities.update_activity_options,
    r.TerminateActivityRequest: validation_standalone.terminate_activity,
    r.CancelActivityRequest: validation_standalone.cancel_activity,
    r.DeleteActivityRequest: validation_standalone.delete_activity,
}
"""Complete over what a batch may ask: a test compares them."""
