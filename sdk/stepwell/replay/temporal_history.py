"""Histories as Temporal exports them: the JSON of ``temporal workflow show --output json``, of its UI and its SDKs.

Our events are the field's, so this goes by our own types: names in camelCase, lists of payloads, maps of fields and
names of types lie in messages of their own there, and enums carry the names of their types. What we do not know is
passed over, as it is in our own records.
"""

import re
import types
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Union, get_args, get_origin

import msgspec

from ..api import events as ev
from ..api import failures as f
from ..api.common import SdkMetadata, UserMetadata
from ..api.enums import WorkflowTaskFailedCause
from ..api.payloads import ENCODING, ENCODING_JSON, Payload, Payloads
from .flags import LogicFlag
from .machines.command import CHANGE_VERSIONS
from .machines.marker import PATCH_MARKER

_EVENTS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(ev.EventAttributes)}
_FAILURE_INFOS: dict[str, type[Any]] = {kind.__name__: kind for kind in get_args(f.FailureInfo)}
_PATCH_OF_CORE = "core_patch"
_THEIR_CHANGE_VERSIONS = "TemporalChangeVersion"
_DURATION = re.compile(r"(-?\d+)(?:\.(\d{1,9}))?s")
_FRACTION = re.compile(r"\.(\d+)")

_RENAMED = {
    "headers": "header",
    "failure_type": "type",
}
"""Fields whose name there is not ours in camelCase."""

_FLAGS = (int(LogicFlag.ORDERED_JOBS), int(LogicFlag.CHANGE_VERSIONS))
"""What their workers have always done."""


def is_exported(events: Sequence[Any]) -> bool:
    """Whether these are Temporal's events, and not our own."""
    return bool(events) and isinstance(events[0], Mapping) and "eventType" in events[0]


def read_events(events: Sequence[Mapping[str, Any]]) -> list[ev.HistoryEvent]:
    """Raises ``ValueError`` naming the event that cannot be read."""
    read = []
    for position, event in enumerate(events, 1):
        try:
            read.append(_event(event))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"event {position} ({event.get('eventType')}) cannot be read: {error}") from error
    return read


def _event(event: Mapping[str, Any]) -> ev.HistoryEvent:
    name = _event_name(str(event["eventType"]))
    kind = _EVENTS.get(name)
    if kind is None:
        raise ValueError("events of this type are not known here")
    found: Mapping[str, Any] = next((value for key, value in event.items() if key.endswith("EventAttributes")), {})
    attributes = _record(kind, found)
    if kind is ev.WorkflowExecutionStarted:
        # servers before 1.24 did not write it
        attributes = {"workflow_id": "", **attributes}
    record = {
        "event_id": int(event["eventId"]),
        "event_time": _time(event["eventTime"]),
        "attributes": _adapted(kind, attributes, found),
        "user_metadata": _value(UserMetadata, event["userMetadata"]) if "userMetadata" in event else None,
    }
    return msgspec.convert(record, ev.HistoryEvent, strict=False)


def _event_name(name: str) -> str:
    """``EVENT_TYPE_TIMER_FIRED``, or ``TimerFired`` in exports of old servers."""
    if not name.startswith("EVENT_TYPE_"):
        return name
    return "".join(word.capitalize() for word in name.removeprefix("EVENT_TYPE_").split("_"))


def _adapted(kind: type[Any], attributes: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """What is not the same by our types alone."""
    if kind is ev.WorkflowTaskCompleted:
        metadata = attributes.get("sdk_metadata") or {}
        return {**attributes, "sdk_metadata": {**metadata, "flags": _FLAGS}}
    if kind is ev.WorkflowTaskFailed and attributes.get("cause") not in list(WorkflowTaskFailedCause):
        return {**attributes, "cause": WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE}
    if kind is ev.WorkflowPropertiesModified:
        return {**attributes, "upserted_memo": _fields(found.get("upsertedMemo", {}))}
    if kind is ev.UpsertWorkflowSearchAttributes and _THEIR_CHANGE_VERSIONS in attributes.get("search_attributes", {}):
        return {**attributes, "search_attributes": _renamed(attributes["search_attributes"])}
    if kind is ev.MarkerRecorded:
        return _marker(attributes, found)
    return attributes


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    return {CHANGE_VERSIONS if name == _THEIR_CHANGE_VERSIONS else name: value for name, value in values.items()}


def _marker(attributes: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    details = {name: _payloads(part) for name, part in found.get("details", {}).items()}
    if attributes["marker_name"] == _PATCH_OF_CORE:
        data = msgspec.json.decode(details["patch-data"][0]["data"])
        json_metadata = {ENCODING: ENCODING_JSON}
        patch = {
            "patch_id": {"metadata": json_metadata, "data": msgspec.json.encode(data["id"])},
            "deprecated": {"metadata": json_metadata, "data": msgspec.json.encode(data.get("deprecated", False))},
        }
        return {**attributes, "marker_name": PATCH_MARKER, "details": patch}
    single = {name: payloads[0] for name, payloads in details.items() if len(payloads) == 1}
    several = {name: payloads for name, payloads in details.items() if len(payloads) != 1}
    return {**attributes, "details": single, "several": several}


def _record(kind: type[Any], found: Mapping[str, Any]) -> dict[str, Any]:
    record: dict[str, Any] = {"type": kind.__name__} if kind.__struct_config__.tag else {}
    for field in msgspec.structs.fields(kind):
        if field.name in ("info", "details") and kind in (f.Failure, ev.MarkerRecorded):
            continue
        value = found.get(_RENAMED.get(field.name) or _camel(field.name))
        if value is not None:
            record[field.encode_name] = _value(field.type, value)
    if kind is f.Failure:
        record.update(_failure_info(found))
    return record


def _failure_info(found: Mapping[str, Any]) -> dict[str, Any]:
    for key, value in found.items():
        kind = _FAILURE_INFOS.get(key[0].upper() + key[1:])
        if kind is f.ChildWorkflowExecutionFailureInfo:
            value = {**value, **value.get("workflowExecution", {})}
        if kind is not None:
            return {"info": _record(kind, value)}
    return {}


def _value(kind: Any, value: Any) -> Any:
    """``value`` as it has to be for a field of this type."""
    optional = get_origin(kind) in (Union, types.UnionType)
    if optional:
        kind = next(one for one in get_args(kind) if one is not type(None))
    if kind in _READERS:
        read = _READERS[kind](value)
        return None if optional and read == timedelta() else read
    if get_origin(kind) is dict:
        return _fields(value)
    if get_origin(kind) is tuple:
        return [_value(get_args(kind)[0], one) for one in value]
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _member(kind, value)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _record(kind, value)
    if isinstance(value, Mapping):  # the name of a type, or a task queue
        return value.get("normalName") or value.get("name", "")
    return value


def _payloads(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [_payload(one) for one in value.get("payloads", [])]


def _sdk(value: Mapping[str, Any]) -> dict[str, str]:
    """Their flags are of their logic."""
    return {"sdk_name": value.get("sdkName", ""), "sdk_version": value.get("sdkVersion", "")}


def _fields(value: Mapping[str, Any]) -> dict[str, Any]:
    fields = value.get("fields", value.get("indexedFields", {}))
    return {name: _payload(one) for name, one in fields.items()}


def _payload(value: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {name: b64decode(part).decode(errors="replace") for name, part in value.get("metadata", {}).items()}
    return {"metadata": metadata, "data": b64decode(value.get("data", ""))}


def _duration(value: str) -> timedelta:
    """Zero is how an absent limit is written there."""
    match = _DURATION.fullmatch(value)
    if match is None:
        raise ValueError(f"{value!r} is not a duration")
    micros = int((match[2] or "0").ljust(9, "0")) // 1000
    return timedelta(seconds=int(match[1]), microseconds=micros)


def _time(value: str) -> datetime:
    """Their nanoseconds are cut to our microseconds."""
    return datetime.fromisoformat(_FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), value))


def _member(kind: type[StrEnum], value: str) -> str:
    """``RETRY_STATE_TIMEOUT``, or ``Timeout`` in exports of old servers, is TIMEOUT."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value).upper()
    endings = [member for member in kind if text == member or text.endswith(f"_{member}")]
    return max(endings, key=len) if endings else text


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_READERS: Mapping[Any, Callable[[Any], Any]] = {
    Payloads: _payloads,
    Payload: _payload,
    timedelta: _duration,
    datetime: _time,
    SdkMetadata: _sdk,
}
"""By type of our field; what is not here goes by its kind."""
