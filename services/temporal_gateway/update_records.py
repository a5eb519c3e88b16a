"""Updates as they travel: requests, outcomes, and the messages by which workers are told of them and answer.

Temporal's workers get updates as messages beside the history, and answer with messages that commands point at.
"""

from collections.abc import Iterable, Mapping

from google.protobuf.any_pb2 import Any as AnyMessage
from stepwell.api import commands as c
from stepwell.api.errors import InvalidArgument
from stepwell.api.failures import Failure
from stepwell.api.updates import DeliveredUpdate, UpdateInput, UpdateMeta, UpdateOutcome, UpdateRequest
from temporalio.api.protocol.v1 import message_pb2 as protocol_pb2
from temporalio.api.update.v1 import message_pb2 as pb

from .failures import failure_of, to_failure
from .payloads import map_of, payloads_of, to_header, to_payloads


def to_request(request: UpdateRequest) -> pb.Request:
    return pb.Request(
        meta=pb.Meta(update_id=request.meta.update_id, identity=request.meta.identity),
        input=pb.Input(
            header=to_header(request.input.headers), name=request.input.name, args=to_payloads(request.input.args)
        ),
    )


def request_of(value: pb.Request) -> UpdateRequest:
    return UpdateRequest(
        meta=UpdateMeta(update_id=value.meta.update_id, identity=value.meta.identity),
        input=UpdateInput(
            name=value.input.name, args=payloads_of(value.input.args), headers=map_of(value.input.header.fields)
        ),
    )


def to_outcome(outcome: UpdateOutcome) -> pb.Outcome:
    if outcome.failure is not None:
        return pb.Outcome(failure=to_failure(outcome.failure))
    value = pb.Outcome(success=to_payloads(outcome.success))
    value.success.SetInParent()
    return value


def outcome_of(value: pb.Outcome) -> UpdateOutcome:
    if value.HasField("failure"):
        return UpdateOutcome(failure=failure_of(value.failure))
    return UpdateOutcome(success=payloads_of(value.success))


def to_messages(updates: Iterable[DeliveredUpdate]) -> list[protocol_pb2.Message]:
    """What a workflow task has to accept or reject, each behind the event that it names."""
    messages = []
    for update in updates:
        body = AnyMessage()
        body.Pack(to_request(update.request))
        update_id = update.request.meta.update_id
        messages.append(
            protocol_pb2.Message(
                id=f"{update_id}/request",
                protocol_instance_id=update_id,
                event_id=update.sequencing_event_id,
                body=body,
            )
        )
    return messages


def command_of(message: protocol_pb2.Message) -> c.AcceptUpdate | c.RejectUpdate | c.CompleteUpdate:
    """What a worker's message decides. Raises InvalidArgument for one of another protocol."""
    body, update_id = message.body, message.protocol_instance_id
    if body.Is(pb.Acceptance.DESCRIPTOR):
        return c.AcceptUpdate(update_id=update_id)
    if body.Is(pb.Rejection.DESCRIPTOR):
        rejection = pb.Rejection()
        body.Unpack(rejection)
        failure = failure_of(rejection.failure) if rejection.HasField("failure") else Failure()
        return c.RejectUpdate(update_id=update_id, failure=failure)
    if body.Is(pb.Response.DESCRIPTOR):
        response = pb.Response()
        body.Unpack(response)
        return c.CompleteUpdate(update_id=update_id, outcome=outcome_of(response.outcome))
    raise InvalidArgument(f"message {message.id!r} is a {body.type_url}, which is not taken", field="messages")


def by_id(messages: Iterable[protocol_pb2.Message]) -> Mapping[str, protocol_pb2.Message]:
    return {message.id: message for message in messages}
