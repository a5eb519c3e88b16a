"""Attributes by which runs are found: the system's own (VI-05) and custom ones, with their types (VI-07).

A value is text, a number, a truth value, a time, or several texts. A custom one travels as JSON with its type beside
it; without a type, the JSON's own counts.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from stepwell.api.payloads import Payload


class ValueType(StrEnum):
    """How values are compared; the value is the name under which the type travels."""

    BOOL = "Bool"
    DATETIME = "Datetime"
    DOUBLE = "Double"
    INT = "Int"
    KEYWORD = "Keyword"
    KEYWORD_LIST = "KeywordList"
    TEXT = "Text"


class Text(str):
    """A value of type Text, which is compared by its words and never as a whole."""

    __slots__ = ()


Value = str | int | float | bool | datetime | tuple[str, ...]
"""Of one attribute of one run."""

Values = Mapping[str, Value]
"""Of one run, by name; what is not there is NULL."""


class Attribute(NamedTuple):
    name: str
    type: ValueType
    custom: bool = True


STATUS = Attribute("ExecutionStatus", ValueType.KEYWORD, False)
START_TIME = Attribute("StartTime", ValueType.DATETIME, False)
CLOSE_TIME = Attribute("CloseTime", ValueType.DATETIME, False)
DURATION = Attribute("ExecutionDuration", ValueType.INT, False)
"""Nanoseconds from ``ExecutionTime`` to ``CloseTime``; a filter may also say ``'1h30m'``."""

WORKFLOW_ID = Attribute("WorkflowId", ValueType.KEYWORD, False)
WORKFLOW_TYPE = Attribute("WorkflowType", ValueType.KEYWORD, False)
PARENT_ID = Attribute("ParentWorkflowId", ValueType.KEYWORD, False)
TASK_QUEUE = Attribute("TaskQueue", ValueType.KEYWORD, False)
RUN_ID = Attribute("RunId", ValueType.KEYWORD, False)

_MORE = {
    "ExecutionTime": ValueType.DATETIME,
    "HistoryLength": ValueType.INT,
    "HistorySizeBytes": ValueType.INT,
    "StateTransitionCount": ValueType.INT,
    "ParentRunId": ValueType.KEYWORD,
    "RootWorkflowId": ValueType.KEYWORD,
    "RootRunId": ValueType.KEYWORD,
}
SYSTEM: dict[str, Attribute] = {
    attribute.name: attribute
    for attribute in (
        WORKFLOW_ID,
        RUN_ID,
        WORKFLOW_TYPE,
        STATUS,
        START_TIME,
        CLOSE_TIME,
        DURATION,
        TASK_QUEUE,
        PARENT_ID,
        *(Attribute(name, kind, False) for name, kind in _MORE.items()),
    )
}
"""Every run has these; those about a close or a parent may be NULL."""

OF_ACTIVITIES: dict[str, Attribute] = {
    "ActivityId": WORKFLOW_ID,
    "ActivityType": WORKFLOW_TYPE,
    **{each.name: each for each in (RUN_ID, STATUS, START_TIME, CLOSE_TIME, DURATION, TASK_QUEUE)},
}
"""What lists of stand-alone activities are asked by (AC-28): the same, by their own names."""

CHANGE_VERSION = "StepwellChangeVersion"
"""The one of ``MANAGED`` that workers write, when code asks for a version of itself."""

MANAGED = {
    CHANGE_VERSION: ValueType.KEYWORD_LIST,
    "StepwellScheduledById": ValueType.KEYWORD,
    "StepwellScheduledStartTime": ValueType.DATETIME,
    "StepwellScheduledByBackfill": ValueType.BOOL,
    "StepwellFailingActivity": ValueType.KEYWORD_LIST,
    "StepwellFailureCause": ValueType.KEYWORD_LIST,
}
"""What the system itself sets on runs, as users set theirs (VI-06)."""

OWN_PREFIX = "Stepwell"
"""Names that begin so are set by the system alone."""

RESERVED_PREFIXES = (OWN_PREFIX, "Temporal")
"""Names that begin so are not registered."""

MAX_INT = 2**63 - 1
MAX_DOUBLE = 1e308
_TYPE = "type"
_WORD = re.compile(r"\w+")
_RANGED = frozenset({ValueType.DATETIME, ValueType.DOUBLE, ValueType.INT, ValueType.KEYWORD})


def has_order(kind: ValueType) -> bool:
    """Whether values of the type come before and after each other (VI-02)."""
    return kind in _RANGED


def words(text: str) -> tuple[str, ...]:
    """What a text is found by: its words, each once, whatever their case."""
    return tuple(dict.fromkeys(_WORD.findall(text.casefold())))


def custom_values(payloads: Mapping[str, Payload]) -> dict[str, tuple[ValueType, Value]]:
    """Search attributes of a run as they are compared. What is no value of any type cannot be searched for, and is left
    out: the run itself shows it all the same."""
    found: dict[str, tuple[ValueType, Value]] = {}
    for name, payload in payloads.items():
        typed = typed_value(payload)
        if typed is not None and name not in SYSTEM:
            found[name] = typed
    return found


def says_nothing(payload: Payload) -> bool:
    """Takes its attribute away."""
    return payload.data in (b"", b"null", b"[]")


def typed_value(payload: Payload) -> tuple[ValueType, Value] | None:
    """None for what says no value: empty, not JSON, or not of the type that it names."""
    try:
        plain = msgspec.json.decode(payload.data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    said = payload.metadata.get(_TYPE, "")
    if said:
        try:
            kind: ValueType | None = ValueType(said)
        except ValueError:
            return None
    else:
        kind = _type_of_json(plain)
    if kind is None:
        return None
    value = _as(kind, plain)
    return None if value is None else (kind, value)


def _type_of_json(plain: Any) -> ValueType | None:
    if isinstance(plain, bool):
        return ValueType.BOOL
    if isinstance(plain, int):
        return ValueType.INT
    if isinstance(plain, float):
        return ValueType.DOUBLE
    if isinstance(plain, str):
        return ValueType.KEYWORD
    return ValueType.KEYWORD_LIST if isinstance(plain, list) else None


def _as(kind: ValueType, plain: Any) -> Value | None:
    if kind is ValueType.BOOL:
        return plain if isinstance(plain, bool) else None
    if kind is ValueType.INT:
        return plain if type(plain) is int and abs(plain) <= MAX_INT else None
    if kind is ValueType.DOUBLE:
        return float(plain) if type(plain) in (int, float) and abs(plain) < MAX_DOUBLE else None
    if kind is ValueType.DATETIME:
        return parse_time(plain) if isinstance(plain, str) else None
    if kind is ValueType.KEYWORD_LIST:
        several = plain if isinstance(plain, list) else [plain]
        if not several or not all(isinstance(each, str) for each in several):
            return None
        return tuple(dict.fromkeys(several))
    if not isinstance(plain, str):
        return None
    return Text(plain) if kind is ValueType.TEXT else plain


_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def parse_time(text: str) -> datetime | None:
    """RFC 3339 with a zone, to the microsecond; None for anything else."""
    if not _RFC_3339.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
