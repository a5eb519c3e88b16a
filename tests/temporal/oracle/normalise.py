"""What of a history two servers must have in common: types, order, and attributes less ids, times and sizes.

It works on events as JSON (``google.protobuf.json_format``), so it needs no library of Temporal's.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Event = dict[str, Any]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_OF_THE_SERVER = frozenset({"eventId", "eventTime", "version", "taskId"})
_DROPPED = frozenset({"requestId", "historySizeBytes", "stackTrace", "namespaceId", "parentWorkflowNamespaceId"}) | {
    # numbers of events in the history of another workflow
    "parentInitiatedEventId",
    "externalInitiatedEventId",
}
_NOTHING: tuple[Any, ...] = ({}, [], "", "0s", None)
"""What a message says by an empty part, or a duration of zero, is what it says without it."""
_EVENT_IDS = re.compile(r"EventId$|^workflowTaskCompletedEventId$")


class Normaliser:
    """For all histories of one program, on one server: a run id is named in the order in which the runs appear."""

    def __init__(self, tag: str) -> None:
        """``tag`` is what the ids of this call have in common."""
        self._tag = tag
        self._runs: dict[str, str] = {}

    def history(self, events: Sequence[Event]) -> list[Event]:
        """Each event as its type and its attributes; event ids in them as type and number, such as
        ``TimerStarted 2``, so that one event more does not change all that follow."""
        names = _names(events)
        return [self._event(event, names) for event in events]

    def message(self, value: Any) -> Any:
        """Another message of the same program."""
        return self._value("", value, {})

    def plain(self, value: Any) -> Any:
        """Data of the program's own: what is empty there stays."""
        match value:
            case dict():
                return {name: self.plain(part) for name, part in value.items()}
            case list():
                return [self.plain(part) for part in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _event(self, event: Event, names: Mapping[str, str]) -> Event:
        normal: Event = {"type": event_type(event)}
        for key, value in event.items():
            if key.endswith("EventAttributes"):
                normal["attributes"] = self._value(key, value, names)
            elif key not in _OF_THE_SERVER and key != "eventType":
                normal[key] = self._value(key, value, names)
        return normal

    def _value(self, key: str, value: Any, names: Mapping[str, str]) -> Any:
        if _EVENT_IDS.search(key) and isinstance(value, str):
            return names.get(value, value)
        match value:
            case {"metadata": {"encoding": str()}}:
                return self._payload(value)
            case {"kind": "TASK_QUEUE_KIND_STICKY"}:
                # where a task waits for its worker is not of the history: the queue is the one that it is sticky for
                return {"name": self._text(value.get("normalName", "")), "kind": "TASK_QUEUE_KIND_NORMAL"}
            case {"coreUsedFlags": list(flags)}:
                rest = {name: part for name, part in value.items() if name != "coreUsedFlags"}
                return {"coreUsedFlags": sorted(flags), **self._value(key, rest, names)}
            case dict():
                parts = {name: self._value(name, part, names) for name, part in value.items() if name not in _DROPPED}
                return {name: part for name, part in parts.items() if part not in _NOTHING}
            case list():
                return [self._value(key, part, names) for part in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _payload(self, payload: Mapping[str, Any]) -> Any:
        metadata = {name: _decoded(value) for name, value in payload["metadata"].items()}
        data = _decoded(payload.get("data", ""))
        if metadata["encoding"].startswith("json/"):
            data = self.plain(json.loads(data))
        elif isinstance(data, str):
            data = self._text(data)
        return {"payload": data, **metadata}

    def _text(self, text: str) -> str:
        text = _UUID.sub(lambda found: self._runs.setdefault(found[0], f"<id {len(self._runs) + 1}>"), text)
        return _TIME.sub("<time>", text).replace(self._tag, "<tag>")


def event_type(event: Event) -> str:
    """As people write it: ``EVENT_TYPE_TIMER_FIRED`` is ``TimerFired``."""
    words = str(event["eventType"]).removeprefix("EVENT_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


def _names(events: Sequence[Event]) -> dict[str, str]:
    counts: dict[str, int] = {}
    names = {}
    for event in events:
        kind = event_type(event)
        counts[kind] = counts.get(kind, 0) + 1
        names[str(event["eventId"])] = f"{kind} {counts[kind]}"
    return names


def _decoded(data: str) -> str:
    """Text, or what was there when it is none."""
    raw = base64.b64decode(data)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return data
