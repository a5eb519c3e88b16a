"""Histories as text: one event a line, with the attributes that matter; read, compared and written.

    WorkflowExecutionStarted workflow_type="pay" input=[42]
    WorkflowTask
    ActivityTaskScheduled activity_type="charge"
    ...
    WorkflowExecutionCompleted result="paid"

``WorkflowTask`` is a workflow task that went well: scheduled, started, completed. ``...`` is any number of events.
Attributes are JSON; those that a line does not name may be anything. Durations are seconds, payloads what they hold,
a failure its chain of causes, from the outside in.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
from stepwell.api import failures as f
from stepwell.api.events import (
    HistoryEvent,
    WorkflowExecutionStarted,
    WorkflowTaskCompleted,
    WorkflowTaskScheduled,
    WorkflowTaskStarted,
)
from stepwell.api.payloads import Payload

ANY = "..."
TASK = "WorkflowTask"
_TASK_TYPES = (WorkflowTaskScheduled, WorkflowTaskStarted, WorkflowTaskCompleted)
_SECTION = re.compile(r"\[([^]]+)]")
_ATTRIBUTE = re.compile(r"\s*(\w+)=")
_DIFFERS_BY_RUN = re.compile(
    r".*(_event_id|run_id|_time|identity|request_id|_queue|workflow_id|checksum|metadata|_size_bytes)|"
    r"type|stack_trace|source|workflow_task_timeout|last_failure|retry_policy|start_to_close_timeout"
)
"""Attributes that are not proposed for a line; a line may name them all the same."""


@dataclass(frozen=True)
class Line:
    """What one event must be."""

    event_type: str
    attributes: dict[str, Any]
    number: int = 0

    def fits(self, event: HistoryEvent) -> bool:
        if event.event_type != self.event_type:
            return False
        actual = attributes_of(event)
        return all(key in actual and actual[key] == value for key, value in self.attributes.items())


def read_sections(path: Path) -> dict[str, list[Line]]:
    """By the name in brackets. Raises ValueError for what is no line, and for a section that is there twice."""
    sections: dict[str, list[Line]] = {}
    lines: list[Line] | None = None
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        stripped = text.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if section := _SECTION.fullmatch(stripped):
            if section[1] in sections:
                raise ValueError(f"{path}:{number}: section {section[1]!r} is there twice")
            lines = sections.setdefault(section[1], [])
        elif lines is None:
            raise ValueError(f"{path}:{number}: an event before the first [section]")
        else:
            lines.extend(_read_line(stripped, f"{path}:{number}", number))
    return sections


def _read_line(text: str, where: str, number: int) -> list[Line]:
    event_type, _, rest = text.partition(" ")
    if event_type == TASK:
        return [Line(part.__name__, {}, number) for part in _TASK_TYPES]
    attributes: dict[str, Any] = {}
    while rest.strip():
        found = _ATTRIBUTE.match(rest)
        if found is None:
            raise ValueError(f"{where}: {rest!r} is not of the form name=<JSON>")
        attributes[found[1]], end = json.JSONDecoder().raw_decode(rest, found.end())
        rest = rest[end:]
    return [Line(event_type, attributes, number)]


def fits(lines: Sequence[Line], events: Sequence[HistoryEvent]) -> bool:
    """Whether the whole history is what the lines say."""
    reachable = {0}
    for line in lines:
        if line.event_type == ANY:
            reachable = set(range(min(reachable, default=len(events) + 1), len(events) + 1))
        else:
            reachable = {at + 1 for at in reachable if at < len(events) and line.fits(events[at])}
    return len(events) in reachable


def first_misfit(lines: Sequence[Line], events: Sequence[HistoryEvent]) -> str:
    """Where the history leaves the lines, for people; empty when it does not."""
    if fits(lines, events):
        return ""
    for count, line in enumerate(lines, 1):
        if not fits([*lines[:count], Line(ANY, {})], events):
            attributes = " ".join(f"{key}={json.dumps(value)}" for key, value in line.attributes.items())
            return f"line {line.number} has no event that fits: {line.event_type} {attributes}".rstrip()
    return "the history goes on behind the last line"


def as_text(events: Sequence[HistoryEvent]) -> str:
    """The history as lines that it fits, for a new expectation: read them before you keep them."""
    lines, at = [], 0
    while at < len(events):
        if _is_plain_task(events[at : at + 3]):
            lines.append(TASK)
            at += 3
            continue
        lines.append(_proposed(events[at]))
        at += 1
    return "\n".join(lines)


def _is_plain_task(events: Sequence[HistoryEvent]) -> bool:
    kinds = tuple(type(event.attributes) for event in events)
    return kinds == _TASK_TYPES and events[0].attributes.attempt == 1  # type: ignore[union-attr]


def _proposed(event: HistoryEvent) -> str:
    defaults = {field.name: field.default for field in msgspec.structs.fields(event.attributes)}
    shown = [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in attributes_of(event).items()
        if key == "result" or (not _DIFFERS_BY_RUN.fullmatch(key) and value not in ([], {}, "", plain(defaults[key])))
    ]
    if isinstance(event.attributes, WorkflowExecutionStarted):
        shown = [text for text in shown if not text.startswith("input=")]  # the script says it, often with ids
    return " ".join([event.event_type, *shown])


def attributes_of(event: HistoryEvent) -> dict[str, Any]:
    """By name, as JSON has them; a result is the value itself and not a list of one."""
    found = {
        field.name: plain(getattr(event.attributes, field.name)) for field in msgspec.structs.fields(event.attributes)
    }
    if "result" in found:
        (found["result"],) = found["result"] or [None]
    if "meta" in found:
        del found["meta"]["identity"]  # differs by run, as other identities do
    return found


def plain(value: Any) -> Any:
    """A field's value as JSON has it."""
    match value:
        case Payload():
            held = value.metadata.get("encoding") in ("json/plain", b"json/plain")
            return json.loads(value.data) if held else None
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case Enum():
            return value.name
        case f.Failure():
            return _chain(value)
        case tuple() | list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case msgspec.Struct():
            return {field.name: plain(getattr(value, field.name)) for field in msgspec.structs.fields(value)}
        case _ if value is msgspec.NODEFAULT:
            return None
        case _:
            return value


def _chain(failure: f.Failure | None) -> str:
    links = []
    while failure is not None:
        links.append(_link(failure))
        failure = failure.cause
    return " <- ".join(links)


def _link(failure: f.Failure) -> str:
    match failure.info:
        case f.ApplicationFailureInfo() as info:
            details = f" {plain(info.details)}" if info.details else ""
            return f"{info.failure_type or 'Application'}: {failure.message}{details}"
        case f.TimeoutFailureInfo() as info:
            return f"timeout {info.timeout_type.name}"
        case f.ActivityFailureInfo() as info:
            return f"activity {info.activity_type} {info.retry_state.name}"
        case f.ChildWorkflowExecutionFailureInfo() as info:
            return f"child {info.workflow_type} {info.retry_state.name}"
        case f.CanceledFailureInfo():
            return "canceled"
        case f.TerminatedFailureInfo():
            return "terminated"
        case _:
            return f"server: {failure.message}"
