"""Our refusals as gRPC statuses, with the details by which Temporal's SDKs know them (``grpc-status-details-bin``)."""

from typing import NamedTuple

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from stepwell.api import errors as e
from temporalio.api.common.v1.grpc_status_pb2 import GrpcStatus
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.errordetails.v1 import message_pb2 as pb
from temporalio.api.failure.v1 import message_pb2 as failure_pb2

UNHANDLED_COMMAND = "UnhandledCommand"
"""The very words by which SDKs know that a close was refused since something had come in."""

DETAILS = "grpc-status-details-bin"


class Refusal(NamedTuple):
    """What a call is answered in place of a response."""

    code: grpc.StatusCode
    message: str
    details: Message | None = None

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        packed = []
        if self.details is not None:
            packed.append(AnyMessage())
            packed[0].Pack(self.details)
        status = GrpcStatus(code=self.code.value[0], message=self.message, details=packed)
        return ((DETAILS, status.SerializeToString()),)


class MultiOperationRefused(e.ApiError):
    """One of several operations was refused, the one at this place; the others have not been made."""

    def __init__(self, why: e.ApiError, *, at: int, of: int = 2) -> None:
        super().__init__(why.message, **why.details)
        self.why, self.at, self.of = why, at, of


def refusal(error: e.ApiError) -> Refusal:
    """An unknown kind is Internal, as its class is."""
    if isinstance(error, MultiOperationRefused):
        return _of_several(error)
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), grpc.StatusCode.INTERNAL)
    return Refusal(code, error.message, _details(error))


def _of_several(error: MultiOperationRefused) -> Refusal:
    refused = refusal(error.why)
    status = pb.MultiOperationExecutionFailure.OperationStatus
    aborted = status(code=grpc.StatusCode.ABORTED.value[0], message="the operation beside it was refused")
    aborted.details.add().Pack(failure_pb2.MultiOperationExecutionAborted())
    why = status(code=refused.code.value[0], message=refused.message)
    if refused.details is not None:
        why.details.add().Pack(refused.details)
    statuses = [why if place == error.at else aborted for place in range(error.of)]
    return Refusal(refused.code, refused.message, pb.MultiOperationExecutionFailure(statuses=statuses))


_CODES: dict[type, grpc.StatusCode] = {
    e.InvalidArgument: grpc.StatusCode.INVALID_ARGUMENT,
    e.Unauthenticated: grpc.StatusCode.UNAUTHENTICATED,
    e.PermissionDenied: grpc.StatusCode.PERMISSION_DENIED,
    e.NotFound: grpc.StatusCode.NOT_FOUND,
    e.WorkflowExecutionAlreadyStarted: grpc.StatusCode.ALREADY_EXISTS,
    e.ActivityAlreadyStarted: grpc.StatusCode.ALREADY_EXISTS,
    e.NamespaceAlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    e.ScheduleAlreadyExists: grpc.StatusCode.ALREADY_EXISTS,
    e.WorkflowExecutionClosing: grpc.StatusCode.RESOURCE_EXHAUSTED,
    e.FailedPrecondition: grpc.StatusCode.FAILED_PRECONDITION,
    e.QueryFailed: grpc.StatusCode.INVALID_ARGUMENT,
    e.QueryRejected: grpc.StatusCode.FAILED_PRECONDITION,
    e.ResourceExhausted: grpc.StatusCode.RESOURCE_EXHAUSTED,
    e.DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    e.Unavailable: grpc.StatusCode.UNAVAILABLE,
    e.Unimplemented: grpc.StatusCode.UNIMPLEMENTED,
}


def _details(error: e.ApiError) -> Message | None:
    match error:
        case e.NamespaceNotFound():
            return pb.NamespaceNotFoundFailure(namespace=error.details.get("namespace", ""))
        case e.NotFound():
            return pb.NotFoundFailure()
        case e.WorkflowExecutionAlreadyStarted() | e.ScheduleAlreadyExists():
            return pb.WorkflowExecutionAlreadyStartedFailure(run_id=error.details.get("run_id", ""))
        case e.ActivityAlreadyStarted():
            return pb.ActivityExecutionAlreadyStartedFailure(run_id=error.details.get("run_id", ""))
        case e.NamespaceAlreadyExists():
            return pb.NamespaceAlreadyExistsFailure()
        case e.WorkflowExecutionClosing():
            return _exhausted("BUSY_WORKFLOW", "NAMESPACE")
        case e.QueryFailed():
            return pb.QueryFailedFailure()
        case e.PermissionDenied():
            return pb.PermissionDeniedFailure(reason=error.message)
        case e.ResourceExhausted():
            return _exhausted(error.details.get("cause", ""), error.details.get("scope", ""))
    return None


def _exhausted(cause: str, scope: str) -> pb.ResourceExhaustedFailure:
    """Causes and scopes that only we have become the nearest of theirs."""
    causes, scopes = dict(ResourceExhaustedCause.items()), dict(ResourceExhaustedScope.items())
    rate = ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT
    return pb.ResourceExhaustedFailure(
        cause=causes.get(f"RESOURCE_EXHAUSTED_CAUSE_{cause}", rate),
        scope=scopes.get(
            f"RESOURCE_EXHAUSTED_SCOPE_{scope}", ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE
        ),
    )
