"""What a callback in the form of Nexus is told: read back as who receives it does, with Temporal's own messages."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from google.protobuf import json_format
from stepwell.api import events as ev
from stepwell.api import failures as f
from stepwell.api.enums import RetryState, TimeoutType
from stepwell.api.payloads import JSON_METADATA, Payload
from temporalio.api.common.v1 import message_pb2 as common_pb2
from temporalio.api.failure.v1 import message_pb2 as failure_pb2

from stepwell_server.history.callback_nexus import Message, message
from stepwell_server.history.callback_records import Body
from stepwell_server.temporal_gateway.failures import to_failure
from stepwell_server.temporal_gateway.payloads import payload_of

WHEN = datetime(2026, 12, 1, 5, 6, 7, 890_000, tzinfo=UTC)
WORD = Payload(metadata=JSON_METADATA, data=b'"word"')
WORDS = (WORD, WORD)


def told(close: ev.EventAttributes) -> Message:
    body = Body(
        namespace="shop",
        workflow_id="a/b",
        run_id="run",
        first_execution_run_id="run",
        workflow_type="order",
        status="",
        close_time=WHEN,
        close_event=close,
        start_time=WHEN,
    )
    made = message(body)
    assert made is not None and message(msgspec.structs.replace(body, close_event=None)) is None
    return made


def completed(*result: Payload) -> Message:
    return told(ev.WorkflowExecutionCompleted(result=result, workflow_task_completed_event_id=4))


def test_when_and_what_is_in_headers() -> None:
    assert completed(WORD).headers == {
        "Content-Type": "application/json",
        "Nexus-Operation-State": "succeeded",
        "Nexus-Operation-Start-Time": "Tue, 01 Dec 2026 05:06:07 GMT",
        "Nexus-Operation-Close-Time": "2026-12-01T05:06:07.890000Z",
        "Nexus-Link": "<temporal:///namespaces/shop/workflows/a%2Fb/run/history?referenceType=EventReference&eventID=1"
        '&eventType=WorkflowExecutionStarted>; type="temporal.api.common.v1.Link.WorkflowEvent"',
    }


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"encoding": "json/plain"}, "application/json"),
        ({"encoding": "binary/plain"}, "application/octet-stream"),
        ({"encoding": "binary/null"}, None),
        ({"encoding": "json/protobuf", "messageType": "a.B"}, 'application/json; format=protobuf; message-type="a.B"'),
        ({"encoding": "binary/protobuf", "messageType": "a.B"}, 'application/x-protobuf; message-type="a.B"'),
    ],
)
def test_a_content_type_says_the_encoding(metadata: dict[str, str], kind: str | None) -> None:
    made = completed(Payload(metadata=metadata, data=b"data"))
    assert (made.headers.get("Content-Type"), made.body) == (kind, b"data")


def test_no_result_is_no_content() -> None:
    made = completed()
    assert "Content-Type" not in made.headers and made.body == b""


@pytest.mark.parametrize(
    "payload",
    [
        common_pb2.Payload(),
        common_pb2.Payload(metadata={"encoding": b"binary/encrypted", "key": b"\xff\xfe"}, data=b"x" * 300),
        common_pb2.Payload(metadata={"encoding": b"binary/plain", "more": "\u00e9".encode()}, data=b"x"),
        common_pb2.Payload(
            metadata={"encoding": b"x"}, external_payloads=[common_pb2.Payload.ExternalPayloadDetails(size_bytes=7)]
        ),
    ],
)
def test_what_no_content_type_says_goes_whole(payload: common_pb2.Payload) -> None:
    made = completed(payload_of(payload))
    assert made.headers["Content-Type"] == "application/x-temporal-payload"
    assert common_pb2.Payload.FromString(made.body) == payload


def read(made: Message) -> failure_pb2.Failure:
    assert made.headers["Content-Type"] == "application/json"
    plain = msgspec.json.decode(made.body)
    assert plain["metadata"] == {"type": "temporal.api.failure.v1.Failure"}
    failure = failure_pb2.Failure()
    json_format.ParseDict(plain["details"], failure)
    failure.message, failure.stack_trace = plain["message"], plain["stackTrace"]
    return failure


KINDS: list[f.FailureInfo] = [
    f.ApplicationFailureInfo(
        failure_type="Declined", non_retryable=True, details=WORDS, next_retry_delay=timedelta(seconds=1.5)
    ),
    f.ApplicationFailureInfo(failure_type="Declined", category="BENIGN"),
    f.TimeoutFailureInfo(timeout_type=TimeoutType.HEARTBEAT, last_heartbeat_details=WORDS),
    f.CanceledFailureInfo(details=WORDS),
    f.TerminatedFailureInfo(),
    f.ServerFailureInfo(non_retryable=True),
    f.ActivityFailureInfo(scheduled_event_id=5, started_event_id=6, identity="i", activity_type="pay", activity_id="1"),
    f.ChildWorkflowExecutionFailureInfo(
        namespace="n",
        workflow_id="w",
        run_id="r",
        workflow_type="t",
        initiated_event_id=5,
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    ),
]


@pytest.mark.parametrize("info", KINDS)
def test_a_failure_is_that_of_their_protocol(info: f.FailureInfo) -> None:
    cause = f.Failure(message="cause", stack_trace="there", source="PythonSDK", info=info)
    failure = f.Failure(message="no", stack_trace="here", source="GoSDK", cause=cause, info=info)
    encoded = f.Failure(message="Encoded failure", encoded_attributes=WORD, cause=failure)
    made = told(ev.WorkflowExecutionFailed(failure=encoded, workflow_task_completed_event_id=4))
    assert read(made) == to_failure(encoded)
    assert made.headers["Nexus-Operation-State"] == "failed"


def test_other_ends_are_failures_too() -> None:
    canceled = told(ev.WorkflowExecutionCanceled(workflow_task_completed_event_id=4, details=WORDS))
    assert canceled.headers["Nexus-Operation-State"] == "canceled" and read(canceled).canceled_failure_info.details
    terminated = told(ev.WorkflowExecutionTerminated(reason="enough"))
    assert terminated.headers["Nexus-Operation-State"] == "failed" and read(terminated).source == "Server"
    timed_out = read(told(ev.WorkflowExecutionTimedOut()))
    assert (timed_out.message, timed_out.timeout_failure_info.timeout_type) == (
        "operation exceeded internal timeout",
        1,
    )
