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
_DROPPED = frozenset({"requestId", "historySizeBytes", "stackTrace", "scheduleToStartTimeoutRemaining"})
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

    def plain(self, value: Any) -> Any:
        """Something else of the same program that is made of JSON."""
        return self._value("", value, {})

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
                return self._payload(value, names)
            case dict():
                return {name: self._value(name, part, names) for name, part in value.items() if name not in _DROPPED}
            case list():
                return [self._value(key, part, names) for part in value]
            case str():
                return self._text(value)
            case _:
                return value

    def _payload(self, payload: Mapping[str, Any], names: Mapping[str, str]) -> Any:
        metadata = {name: _decoded(value) for name, value in payload["metadata"].items()}
        data = _decoded(payload.get("data", ""))
        if metadata["encoding"].startswith("json/"):
            data = self._value("", json.loads(data), names)
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
