"""Filters as arguments: typed values, turned into the filter language with every text quoted (VI-13)."""

import math
import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any, TypedDict

from ..api.enums import WorkflowExecutionStatus
from ..search_attributes import (
    SearchAttributeIndexedValueType,
    SearchAttributePair,
    SearchAttributes,
    SearchAttributeUpdate,
)

_PARTS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)+`|(?P<stray>['"`])|(?P<bracket>[()])|(?P<tail>\b(?:ORDER|GROUP)\s+BY\b)""",
    re.IGNORECASE,
)


class WorkflowFilters(TypedDict, total=False):
    """What lists and counts take besides a query; all that are given must hold. Of several values one must."""

    status: WorkflowExecutionStatus | Collection[WorkflowExecutionStatus] | None
    workflow_type: str | Collection[str]
    workflow_id: str | Collection[str] | None
    workflow_id_prefix: str
    task_queue: str | Collection[str] | None
    parent_workflow_id: str | Collection[str] | None
    start_time_from: datetime | None
    start_time_before: datetime | None
    close_time_from: datetime | None
    close_time_before: datetime | None
    search_attributes: SearchAttributes
    """Equal to these; of a KeywordList all of its texts must be there, and with ``value_unset()`` there is no value."""


def query_of(
    query: str | None = None,
    *,
    status: WorkflowExecutionStatus | Collection[WorkflowExecutionStatus] | None = None,
    workflow_type: str | Collection[str] = "",
    workflow_id: str | Collection[str] | None = None,
    workflow_id_prefix: str = "",
    task_queue: str | Collection[str] | None = None,
    parent_workflow_id: str | Collection[str] | None = None,
    start_time_from: datetime | None = None,
    start_time_before: datetime | None = None,
    close_time_from: datetime | None = None,
    close_time_before: datetime | None = None,
    search_attributes: SearchAttributes = (),
) -> str:
    """``query`` and all filters, in the filter language; ORDER BY and GROUP BY of the query stay. Raises
    ``ValueError`` for a value that finds nothing on purpose or by accident, ``TypeError`` for one of another type."""
    if status is not None:
        status = [_status(each) for each in ([status] if isinstance(status, str) else status)]
    conditions = [
        *_equal("status", "ExecutionStatus", status),
        *_equal("workflow_type", "WorkflowType", None if workflow_type == "" else workflow_type),
        *_equal("workflow_id", "WorkflowId", workflow_id),
        *_equal("task_queue", "TaskQueue", task_queue),
        *_equal("parent_workflow_id", "ParentWorkflowId", parent_workflow_id),
        *_bound("start_time_from", "StartTime >=", start_time_from),
        *_bound("start_time_before", "StartTime <", start_time_before),
        *_bound("close_time_from", "CloseTime >=", close_time_from),
        *_bound("close_time_before", "CloseTime <", close_time_before),
        *_attributes(search_attributes),
    ]
    if workflow_id_prefix != "":
        conditions.append(f"WorkflowId STARTS_WITH {_quoted('workflow_id_prefix', workflow_id_prefix)}")
    if not conditions:
        return query or ""
    condition, tail = _split(query or "")
    if condition.strip():
        conditions.insert(0, f"({condition})")  # first, so that positions in messages are nearly the query's own
    return " AND ".join(conditions) + (f" {tail}" if tail else "")


def _status(value: str) -> WorkflowExecutionStatus:
    try:
        return WorkflowExecutionStatus(value)
    except ValueError:
        known = ", ".join(WorkflowExecutionStatus)
        raise ValueError(f"status is {value!r}, which is none; use one of {known}") from None


def _equal(argument: str, name: str, values: str | Iterable[str] | None) -> list[str]:
    if values is None:
        return []
    texts = [_quoted(argument, each) for each in ([values] if isinstance(values, str) else values)]
    if not texts:
        raise ValueError(f"{argument} has no values, which no workflow fits; leave it out to have all")
    return [f"{name} = {texts[0]}" if len(texts) == 1 else f"{name} IN ({', '.join(texts)})"]


def _bound(argument: str, compared: str, value: datetime | None) -> list[str]:
    return [] if value is None else [f"{compared} {_time(argument, value)}"]


def _attributes(attributes: SearchAttributes) -> list[str]:
    conditions: list[str] = []
    for each in attributes:
        if isinstance(each, SearchAttributePair):
            each = each.key.value_set(each.value)
        elif not isinstance(each, SearchAttributeUpdate):
            raise TypeError(f"search_attributes takes [key.value_set(value), …], not {each!r} among them")
        name = f"`{each.key.name.replace('`', '``')}`"
        several = each.key.indexed_value_type is SearchAttributeIndexedValueType.KEYWORD_LIST
        values = list(each.value or ()) if several else [] if each.value is None else [each.value]
        conditions += [f"{name} = {_literal(each.key.name, value)}" for value in values] or [f"{name} IS NULL"]
    return conditions


def _literal(argument: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return _time(argument, value)
    if isinstance(value, str):
        return _quoted(argument, value)
    if not math.isfinite(value):
        raise ValueError(f"{argument} is {value}; nothing is compared with that")
    return repr(value)


def _time(argument: str, value: datetime) -> str:
    if value.utcoffset() is None:
        raise ValueError(f"{argument}: {value.isoformat()} has no time zone; add one")
    return f"'{value.astimezone(UTC).isoformat()}'"


def _quoted(argument: str, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{argument} takes texts, not {text!r}")
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _split(query: str) -> tuple[str, str]:
    """The condition, and ORDER BY or GROUP BY with what follows. Raises ``ValueError`` where quotes or brackets would
    reach over what is added: a query from elsewhere must not widen what the filters allow."""
    depth = 0
    for part in _PARTS.finditer(query):
        if part["stray"]:
            raise ValueError(
                f"query, character {part.start() + 1}: what begins here has no closing {part['stray']}; one that is a "
                "part of it is written twice"
            )
        if part["tail"] and depth == 0:
            return query[: part.start()], query[part.start() :]
        if part["bracket"]:
            depth += 1 if part["bracket"] == "(" else -1
            if depth < 0:
                raise ValueError(f"query, character {part.start() + 1}: ) closes nothing")
    if depth:
        raise ValueError("query: a ( is not closed")
    return query, ""
