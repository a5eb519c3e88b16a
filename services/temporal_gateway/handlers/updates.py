"""Updates: sent, waited for, and sent with the start of their workflow. The stages and waits are the engine's own."""

from datetime import timedelta
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowUpdateStage
from stepwell.api.errors import ApiError, DeadlineExceeded, InvalidArgument, WorkflowExecutionAlreadyStarted
from stepwell.api.updates import UpdateOutcome
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage as PbStage
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.update.v1 import message_pb2 as update_pb2
from temporalio.api.workflowservice.v1 import request_response_pb2 as pb

from ..attribute_types import give_types
from ..errors import MultiOperationRefused
from ..gateway import Call, Gateway, Handlers
from ..names import member, number
from ..payloads import map_of, payloads_of
from ..records import execution_of
from ..update_records import to_outcome
from .executions import attached_fields, start_fields

_PREFIX = "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_"
_HELD = timedelta(seconds=20)
"""After so long callers hear how far the update is, and ask again for as long as they like; one with less time than
that hears that it is over, or it would go on asking."""


def _stage_of(policy: update_pb2.WaitPolicy) -> WorkflowUpdateStage:
    """Who says nothing hears what there is, as soon as the update is known."""
    return member(
        policy.lifecycle_stage,
        WorkflowUpdateStage,
        _PREFIX,
        PbStage,
        field="wait_policy.lifecycle_stage",
        unspecified=WorkflowUpdateStage.ADMITTED,
    )


def _ref(workflow_id: str, run_id: str, update_id: str) -> update_pb2.UpdateRef:
    execution = common_pb2.WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    return update_pb2.UpdateRef(workflow_execution=execution, update_id=update_id)


def _outcome(outcome: UpdateOutcome | None) -> update_pb2.Outcome | None:
    return None if outcome is None else to_outcome(outcome)


def _to_stage(stage: WorkflowUpdateStage) -> "PbStage.ValueType":
    found: PbStage.ValueType = number(stage, _PREFIX, PbStage)
    return found


_Answer = r.UpdateWorkflowResponse | r.PollWorkflowUpdateResponse | r.UpdateWithStartWorkflowResponse


def _check_reached(held: timedelta, asked: WorkflowUpdateStage, answer: _Answer) -> None:
    """Raises DeadlineExceeded when the caller's time, not ours, was over before the stage was reached."""
    if held < _HELD and _to_stage(answer.stage) < _to_stage(asked):
        raise DeadlineExceeded(
            f"update {answer.update_id!r} is {answer.stage.value}, and was not {asked.value} in time; it goes on, so "
            "ask for it again by its id"
        )


async def update_workflow_execution(
    gateway: Gateway, request: pb.UpdateWorkflowExecutionRequest, call: Call
) -> pb.UpdateWorkflowExecutionResponse:
    meta, said = request.request.meta, request.request.input
    stage, held = _stage_of(request.wait_policy), min(call.wait(), _HELD)
    answer = await gateway.call(
        o.UPDATE_WORKFLOW,
        r.UpdateWorkflowRequest(
            namespace=request.namespace,
            execution=execution_of(request.workflow_execution),
            first_execution_run_id=request.first_execution_run_id,
            update_id=meta.update_id or gateway.ids.nonce(),
            update_name=said.name,
            input=payloads_of(said.args),
            identity=meta.identity,
            headers=map_of(said.header.fields),
            wait_for_stage=stage,
            timeout=held,
        ),
    )
    _check_reached(held, stage, answer)
    return pb.UpdateWorkflowExecutionResponse(
        update_ref=_ref(request.workflow_execution.workflow_id, answer.run_id, answer.update_id),
        outcome=_outcome(answer.outcome),
        stage=_to_stage(answer.stage),
    )


async def poll_workflow_execution_update(
    gateway: Gateway, request: pb.PollWorkflowExecutionUpdateRequest, call: Call
) -> pb.PollWorkflowExecutionUpdateResponse:
    stage, held = _stage_of(request.wait_policy), min(call.wait(), _HELD)
    asked = r.PollWorkflowUpdateRequest(
        namespace=request.namespace,
        execution=execution_of(request.update_ref.workflow_execution),
        update_id=request.update_ref.update_id,
        wait_for_stage=stage,
        timeout=held,
    )
    answer = await gateway.call(o.POLL_WORKFLOW_UPDATE, asked)
    _check_reached(held, stage, answer)
    workflow_id = request.update_ref.workflow_execution.workflow_id
    return pb.PollWorkflowExecutionUpdateResponse(
        outcome=_outcome(answer.outcome),
        stage=_to_stage(answer.stage),
        update_ref=_ref(workflow_id, answer.run_id, answer.update_id),
    )


async def execute_multi_operation(
    gateway: Gateway, request: pb.ExecuteMultiOperationRequest, call: Call
) -> pb.ExecuteMultiOperationResponse:
    """A start and an update, in this order; there is nothing else that goes together."""
    kinds = [operation.WhichOneof("operation") for operation in request.operations]
    if kinds != ["start_workflow", "update_workflow"]:
        raise InvalidArgument(
            "operations must be a start_workflow and an update_workflow behind it; send others by themselves",
            field="operations",
        )
    start, update = request.operations[0].start_workflow, request.operations[1].update_workflow
    await give_types(gateway, request.namespace, start.search_attributes.indexed_fields)
    held = min(call.wait(), _HELD)
    asked = _with_start(gateway, request.namespace, start, update, held)
    try:
        answer = await gateway.call(o.UPDATE_WITH_START_WORKFLOW, asked)
    except ApiError as error:
        raise MultiOperationRefused(error, at=0 if isinstance(error, WorkflowExecutionAlreadyStarted) else 1) from error
    _check_reached(held, asked.wait_for_stage, answer)
    return pb.ExecuteMultiOperationResponse(responses=_responses(start.workflow_id, answer))


def _with_start(
    gateway: Gateway,
    namespace: str,
    start: pb.StartWorkflowExecutionRequest,
    update: pb.UpdateWorkflowExecutionRequest,
    held: timedelta,
) -> r.UpdateWithStartWorkflowRequest:
    if update.workflow_execution.workflow_id not in ("", start.workflow_id):
        raise InvalidArgument(
            "the update is for another workflow than the one that is started; name the same in both",
            field="operations",
        )
    meta, said = update.request.meta, update.request.input
    fields: dict[str, Any] = start_fields(start, WorkflowIDConflictPolicy.FAIL) | {"namespace": namespace}
    fields |= attached_fields(start)
    return r.UpdateWithStartWorkflowRequest(
        **fields,
        update_id=meta.update_id or gateway.ids.nonce(),
        update_name=said.name,
        update_input=payloads_of(said.args),
        update_headers=map_of(said.header.fields),
        wait_for_stage=_stage_of(update.wait_policy),
        timeout=held,
    )


def _responses(
    workflow_id: str, answer: r.UpdateWithStartWorkflowResponse
) -> list[pb.ExecuteMultiOperationResponse.Response]:
    started = pb.StartWorkflowExecutionResponse(
        run_id=answer.run_id,
        first_execution_run_id=answer.first_execution_run_id,
        started=answer.started,
        status=WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING,
    )
    updated = pb.UpdateWorkflowExecutionResponse(
        update_ref=_ref(workflow_id, answer.run_id, answer.update_id),
        outcome=_outcome(answer.outcome),
        stage=_to_stage(answer.stage),
    )
    return [
        pb.ExecuteMultiOperationResponse.Response(start_workflow=started),
        pb.ExecuteMultiOperationResponse.Response(update_workflow=updated),
    ]


HANDLERS: Handlers = {
    "UpdateWorkflowExecution": update_workflow_execution,
    "PollWorkflowExecutionUpdate": poll_workflow_execution_update,
    "ExecuteMultiOperation": execute_multi_operation,
}
