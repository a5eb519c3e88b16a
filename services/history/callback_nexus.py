"""How the end of a chain of runs is told to a callback in the form of Nexus: headers, and result or failure. Pure.

A result goes as it is, its encoding said by ``Content-Type``; what no content type says goes whole, as the protobuf
message of a payload. A failure is JSON whose ``details`` are the failure of Temporal's protocol, in the JSON of
protobuf, so that a receiver with one of those SDKs has its type, details and causes.
"""

from base64 import b64decode, b64encode
from datetime import UTC, datetime
from typing import Any, NamedTuple, assert_never
from urllib.parse import quote

import msgspec
from stepwell.api import events as ev
from stepwell.api import failures as f
from stepwell.api.enums import TimeoutType
from stepwell.api.payloads import ENCODING, ENCODING_BYTES, ENCODING_JSON, ENCODING_NULL, Payload, Payloads

from .callback_records import Body

_FAILURE = "temporal.api.failure.v1.Failure"
_LINK = "temporal.api.common.v1.Link.WorkflowEvent"
_WHOLE = "application/x-temporal-payload"
_MESSAGE_TYPE = "messageType"
_TYPES = {ENCODING_BYTES: "application/octet-stream", ENCODING_NULL: ""}
_OF_PROTOBUF = {"json/protobuf": "application/json; format=protobuf", "binary/protobuf": "application/x-protobuf"}
_BASE64 = ";base64"
"""Ends the name of metadata that are no text (as the Temporal gateway keeps them)."""

_BENIGN = "BENIGN"
_OF_SERVER = (f.TimeoutFailureInfo, f.TerminatedFailureInfo, f.ServerFailureInfo)
"""Kinds of failure that a server makes, and signs."""

_DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Message(NamedTuple):
    headers: dict[str, str]
    body: bytes


def message(body: Body) -> Message | None:
    """None where it is not known how the chain ended, since that was too large to be kept with its callbacks."""
    close = body.close_event
    if isinstance(close, ev.WorkflowExecutionCompleted):
        state, content = "succeeded", _content(close.result)
    else:
        failure = _failure_of(close)
        if failure is None:
            return None
        state = "canceled" if isinstance(close, ev.WorkflowExecutionCanceled) else "failed"
        content = Message({"Content-Type": "application/json"}, msgspec.json.encode(_nexus_failure(failure)))
    headers = {**content.headers, "Nexus-Operation-State": state, "Nexus-Link": _link(body)}
    if body.start_time is not None:
        headers["Nexus-Operation-Start-Time"] = _http_date(body.start_time)
    if body.close_time is not None:
        headers["Nexus-Operation-Close-Time"] = body.close_time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Message(headers, content.body)


def _failure_of(close: ev.EventAttributes | None) -> f.Failure | None:
    match close:
        case ev.WorkflowExecutionFailed():
            return close.failure
        case ev.WorkflowExecutionCanceled():
            return f.Failure(message="operation canceled", info=f.CanceledFailureInfo(details=close.details))
        case ev.WorkflowExecutionTerminated():
            return f.Failure(message="operation terminated", info=f.TerminatedFailureInfo())
        case ev.WorkflowExecutionTimedOut():
            timeout = f.TimeoutFailureInfo(timeout_type=TimeoutType.START_TO_CLOSE)
            return f.Failure(message="operation exceeded internal timeout", info=timeout)
    return None


def _link(body: Body) -> str:
    parts = "/".join(
        quote(part, safe="") for part in ("namespaces", body.namespace, "workflows", body.workflow_id, body.run_id)
    )
    event = "referenceType=EventReference&eventID=1&eventType=WorkflowExecutionStarted"
    return f'<temporal:///{parts}/history?{event}>; type="{_LINK}"'


def _http_date(time: datetime) -> str:
    utc = time.astimezone(UTC)
    return f"{_DAYS[utc.weekday()]}, {utc:%d} {_MONTHS[utc.month - 1]} {utc:%Y %H:%M:%S} GMT"


def _content(result: Payloads) -> Message:
    """An operation has one result."""
    if not result:
        return Message({}, b"")
    payload = result[0]
    kind = _content_type(payload)
    if kind is None:
        return Message({"Content-Type": _WHOLE}, _protobuf(payload))
    return Message({"Content-Type": kind} if kind else {}, payload.data)


def _content_type(payload: Payload) -> str | None:
    """Empty for a content without one, None where none would say all of the metadata."""
    metadata = payload.metadata
    encoding = metadata.get(ENCODING, "")
    if encoding == ENCODING_JSON:
        return "application/json"
    if encoding in _TYPES and len(metadata) == 1:
        return _TYPES[encoding]
    named = metadata.get(_MESSAGE_TYPE, "")
    if encoding in _OF_PROTOBUF and len(metadata) == 2 and named.isascii() and named.isprintable() and named:
        escaped = named.replace("\\", r"\\").replace('"', r"\"")
        return f'{_OF_PROTOBUF[encoding]}; message-type="{escaped}"'
    return None


def _metadata(payload: Payload) -> tuple[dict[str, bytes], bytes]:
    """As bytes; and fields of the message that were kept as they were encoded."""
    kept: dict[str, bytes] = {}
    encoded = b""
    for name, text in payload.metadata.items():
        if name == "temporal/external-payloads" + _BASE64:
            encoded += b64decode(text)
        elif name.endswith(_BASE64):
            kept[name.removesuffix(_BASE64)] = b64decode(text)
        else:
            kept[name] = text.encode()
    return kept, encoded


def _protobuf(payload: Payload) -> bytes:
    """``temporal.api.common.v1.Payload``: a map of metadata in field 1, the data in field 2."""
    kept, encoded = _metadata(payload)
    entries = [_field(1, _field(1, name.encode()) + _field(2, value)) for name, value in kept.items()]
    return b"".join(entries) + (_field(2, payload.data) if payload.data else b"") + encoded


def _field(number: int, value: bytes) -> bytes:
    length, size = len(value), bytearray()
    while length >= 0x80:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes([number << 3 | 2]) + bytes(size) + value


def _nexus_failure(failure: f.Failure) -> dict[str, Any]:
    details = _failure(msgspec.structs.replace(failure, message="", stack_trace=""))
    made = {"message": failure.message, "stackTrace": failure.stack_trace, "metadata": {"type": _FAILURE}}
    return {**made, "details": details}


def _failure(failure: f.Failure) -> dict[str, Any]:
    """In the JSON of protobuf."""
    source = failure.source or ("Server" if isinstance(failure.info, _OF_SERVER) else "")
    plain: dict[str, Any] = {"message": failure.message, "source": source, "stackTrace": failure.stack_trace}
    if failure.encoded_attributes is not None:
        plain["encodedAttributes"] = _payload(failure.encoded_attributes)
    if failure.cause is not None:
        plain["cause"] = _failure(failure.cause)
    return {**plain, **(_info(failure.info) if failure.info is not None else {})}


def _info(info: f.FailureInfo) -> dict[str, Any]:
    match info:
        case f.ApplicationFailureInfo():
            return {"applicationFailureInfo": _application(info)}
        case f.TimeoutFailureInfo():
            kind = {"timeoutType": f"TIMEOUT_TYPE_{info.timeout_type.value}"}
            return {"timeoutFailureInfo": {**kind, **_some("lastHeartbeatDetails", info.last_heartbeat_details)}}
        case f.CanceledFailureInfo():
            return {"canceledFailureInfo": _some("details", info.details)}
        case f.TerminatedFailureInfo():
            return {"terminatedFailureInfo": {}}
        case f.ServerFailureInfo():
            return {"serverFailureInfo": {"nonRetryable": info.non_retryable}}
        case f.ActivityFailureInfo():
            return {
                "activityFailureInfo": {
                    "scheduledEventId": str(info.scheduled_event_id),
                    "startedEventId": str(info.started_event_id),
                    "identity": info.identity,
                    "activityType": {"name": info.activity_type},
                    "activityId": info.activity_id,
                    "retryState": f"RETRY_STATE_{info.retry_state.value}",
                }
            }
        case f.ChildWorkflowExecutionFailureInfo():
            return {
                "childWorkflowExecutionFailureInfo": {
                    "namespace": info.namespace,
                    "workflowExecution": {"workflowId": info.workflow_id, "runId": info.run_id},
                    "workflowType": {"name": info.workflow_type},
                    "initiatedEventId": str(info.initiated_event_id),
                    "startedEventId": str(info.started_event_id),
                    "retryState": f"RETRY_STATE_{info.retry_state.value}",
                }
            }
        case _:
            assert_never(info)


def _application(info: f.ApplicationFailureInfo) -> dict[str, Any]:
    plain = {"type": info.failure_type, "nonRetryable": info.non_retryable, **_some("details", info.details)}
    if info.next_retry_delay is not None:
        plain["nextRetryDelay"] = f"{info.next_retry_delay.total_seconds():.6f}s"
    if info.category == _BENIGN:  # the only one that protobuf has a name for
        plain["category"] = f"APPLICATION_ERROR_CATEGORY_{_BENIGN}"
    return plain


def _some(name: str, payloads: Payloads) -> dict[str, Any]:
    return {name: {"payloads": [_payload(payload) for payload in payloads]}} if payloads else {}


def _payload(payload: Payload) -> dict[str, Any]:
    kept, _ = _metadata(payload)
    return {
        "metadata": {name: b64encode(value).decode() for name, value in kept.items()},
        "data": b64encode(payload.data).decode(),
    }
