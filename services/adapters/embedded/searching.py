"""Queries of the filter language as SQL: one statement per phase of an order, with parameters for all that users say.

A statement walks one index in the order that is asked for, so that its time and memory are those of the page and of
what it must pass over: the index of a value that must be there, if the filter has such a term, else that of the order.
``IS NOT TRUE`` makes SQL's third truth value the false that it is in the filter language.
"""

from collections.abc import Callable
from typing import NamedTuple, assert_never

from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.requests import WorkflowExecutionInfo

from ...visibility.attributes import (
    CLOSE_TIME,
    PARENT_ID,
    RUN_ID,
    START_TIME,
    STATUS,
    WORKFLOW_ID,
    WORKFLOW_TYPE,
    Attribute,
    Value,
    ValueType,
    words,
)
from ...visibility.bounds import bounds
from ...visibility.filters import (
    All,
    AnyOf,
    Between,
    Compare,
    Filter,
    In,
    IsNull,
    Not,
    Operator,
    StartsWith,
    conjuncts,
)
from ...visibility.pages import Phase, Position
from .found_by import KINDS, from_column, to_column
from .values import from_run, to_run, to_us

ORDERED_BY = frozenset({START_TIME.name, CLOSE_TIME.name})

COLUMNS = (
    "logs.workflow_id, runs.run, first_run, workflow_type, task_queue, status, runs.start_us, close_us, "
    "history_length, history_size, attributes"
)
_SYSTEM = {
    "WorkflowId": "logs.workflow_id",
    "RunId": "run_text(runs.run)",
    "WorkflowType": "runs.workflow_type",
    "ExecutionStatus": "runs.status",
    "StartTime": "runs.start_us",
    "ExecutionTime": "coalesce(runs.execution_us, runs.start_us)",
    "CloseTime": "runs.close_us",
    "ExecutionDuration": "(runs.close_us - coalesce(runs.execution_us, runs.start_us)) * 1000",
    "TaskQueue": "runs.task_queue",
    "HistoryLength": "runs.history_length",
    "HistorySizeBytes": "runs.history_size",
    "StateTransitionCount": "runs.transitions",
    "ParentWorkflowId": "runs.parent_id",
    "ParentRunId": "run_text(runs.parent_run)",
    "RootWorkflowId": "coalesce(runs.root_id, logs.workflow_id)",
    "RootRunId": "run_text(coalesce(runs.root_run, runs.run))",
}
_RUNS = "runs INDEXED BY {} CROSS JOIN logs ON logs.id = runs.log"
_FOUND = "found_by AS found CROSS JOIN runs ON runs.id = found.number CROSS JOIN logs ON logs.id = runs.log"
_VISIBLE = "status IS NOT NULL AND NOT expired"


class Statement(NamedTuple):
    sql: str
    parameters: tuple[object, ...]


class _Walk(NamedTuple):
    """An index to go along, the conditions that choose it, and its columns in their order."""

    tables: str
    where: str
    parameters: tuple[object, ...]
    order: tuple[str, ...]
    of: Filter | None = None
    """The term of the filter that it decides."""


def page(namespace: str, phase: Phase, limit: int) -> Statement:
    """Rows of ``COLUMNS``, and the attribute that orders behind them."""
    walk = _walk(namespace, phase)
    where, parameters = _where(walk, phase.filter)
    if phase.after is not None:
        columns, behind = _behind(phase, walk, phase.after)
        where += f" AND ({columns}) {'<' if phase.order.descending else '>'} ({', '.join('?' * len(behind))})"
        parameters += behind
    direction = "DESC" if phase.order.descending else "ASC"
    ordered = ", ".join(f"{column} {direction}" for column in walk.order)
    sql = f"SELECT {COLUMNS}, {walk.order[0]} FROM {walk.tables} WHERE {where} ORDER BY {ordered} LIMIT ?"
    return Statement(sql, (*parameters, limit))


def position(info: WorkflowExecutionInfo, phase: Phase, value: object) -> Position:
    """Of a row of a page; ``value`` is what stands behind ``COLUMNS``."""
    own: Value | None = None
    if phase.order.attribute != START_TIME:
        assert isinstance(value, str | int | float)
        own = from_column(phase.order.attribute.type, value)
    return Position(info.start_time, info.execution.run_id, own)


def run_text(run: bytes | str | None) -> str | None:
    """An SQL function: run ids as users know them."""
    return None if run is None else from_run(run)


def count(namespace: str, filter_: Filter, group_by: Attribute | None, limit: int) -> Statement:
    """One row with a number; with ``group_by`` a row per value, at most ``limit``."""
    walk = _lookup(namespace, filter_) or _by_start(namespace)
    where, parameters = _where(walk, filter_)
    if group_by is None:
        return Statement(f"SELECT count(*) FROM {walk.tables} WHERE {where}", parameters)
    value, inner = _column(namespace, group_by)
    sql = f"SELECT {value} AS grouped, count(*) FROM {walk.tables} WHERE {where} GROUP BY grouped LIMIT ?"
    return Statement(sql, (*inner, *parameters, limit))


def _where(walk: _Walk, filter_: Filter) -> tuple[str, tuple[object, ...]]:
    rest = [term for term in conjuncts(filter_) if term is not walk.of]
    conditions, parameters = [walk.where, _VISIBLE], walk.parameters
    for term in rest:
        rendered = _Rendering(str(walk.parameters[0]))
        conditions.append(rendered.term(term))
        parameters += tuple(rendered.parameters)
    return " AND ".join(conditions), parameters


def _behind(phase: Phase, walk: _Walk, after: Position) -> tuple[str, tuple[object, ...]]:
    place: tuple[object, ...] = (to_us(after.start_time), to_run(after.run_id))
    if phase.order.attribute != START_TIME and after.value is not None:
        place = (to_column(after.value), *place)
    return ", ".join(walk.order), place


# --- which index ---


def _walk(namespace: str, phase: Phase) -> _Walk:
    attribute = phase.order.attribute
    if attribute == START_TIME:
        return _lookup(namespace, phase.filter) or _by_start(namespace)
    if attribute == CLOSE_TIME:
        order = ("runs.close_us", "runs.start_us", "runs.run")
        return _Walk(_RUNS.format("runs_by_end"), "runs.namespace = ? AND close_us IS NOT NULL", (namespace,), order)
    where = "found.namespace = ? AND found.name = ? AND found.kind = ?"
    parameters: list[object] = [namespace, attribute.name, KINDS[attribute.type]]
    for operator, bound in zip((">=", "<="), bounds(phase.filter, attribute), strict=True):
        if bound is not None:
            where += f" AND found.value {operator} ?"
            parameters.append(to_column(bound))
    return _Walk(_FOUND, where, tuple(parameters), ("found.value", "found.start_us", "found.run"))


def _by_start(namespace: str) -> _Walk:
    return _Walk(_RUNS.format("runs_by_start"), "runs.namespace = ?", (namespace,), ("runs.start_us", "runs.run"))


def _lookup(namespace: str, filter_: Filter) -> _Walk | None:
    """The index of a value that every run found must have; the most telling of the filter's terms."""
    found: dict[int, _Walk] = {}
    for term in conjuncts(filter_):
        if isinstance(term, Compare) and term.operator is Operator.EQ:
            rank, walk = _index_of(namespace, term)
            if walk is not None:
                found.setdefault(rank, walk._replace(of=term))
    return found[min(found)] if found else None


def _index_of(namespace: str, term: Compare) -> tuple[int, _Walk | None]:
    """Lower ranks tell more."""
    attribute, order = term.attribute, ("runs.start_us", "runs.run")
    if attribute == WORKFLOW_ID:
        # Of one id there are few runs: these alone are put in order.
        where = "runs.namespace = ? AND runs.log = (SELECT id FROM logs WHERE namespace = ? AND workflow_id = ?)"
        return 0, _Walk(_RUNS.format("runs_by_log"), where, (namespace, namespace, term.value), order)
    if attribute == PARENT_ID:
        where = "runs.namespace = ? AND runs.parent_id = ?"
        return 1, _Walk(_RUNS.format("runs_by_parent"), where, (namespace, term.value), order)
    if attribute.custom and attribute.type not in (ValueType.TEXT, ValueType.BOOL):
        where = "found.namespace = ? AND found.name = ? AND found.kind = ? AND found.value = ?"
        parameters = (namespace, attribute.name, KINDS[attribute.type], to_column(term.value))
        return 2, _Walk(_FOUND, where, parameters, ("found.start_us", "found.run"))
    if attribute == STATUS and term.value != WorkflowExecutionStatus.COMPLETED:
        where = "runs.namespace = ? AND status = ? AND status <> 'COMPLETED'"  # shows that the small index serves
        return 3, _Walk(_RUNS.format("runs_not_completed"), where, (namespace, term.value), order)
    if attribute == WORKFLOW_TYPE:
        where = "runs.namespace = ? AND workflow_type = ?"
        return 4, _Walk(_RUNS.format("runs_by_type"), where, (namespace, term.value), order)
    return 5, None


# --- conditions ---


class _Rendering:
    """Of one term; gathers its parameters in the order of their marks."""

    def __init__(self, namespace: str) -> None:
        self.parameters: list[object] = []
        self._namespace = namespace

    def term(self, filter_: Filter) -> str:
        match filter_:
            case All(terms):
                return self._joined(" AND ", terms, "1")
            case AnyOf(terms):
                return self._joined(" OR ", terms, "0")
            case Not(term):
                return f"({self.term(term)}) IS NOT TRUE"
            case IsNull(attribute):
                if attribute.custom:
                    return f"NOT {self._having(attribute, lambda value: '1')}"
                return f"{_SYSTEM[attribute.name]} IS NULL"
            case Compare(attribute, operator, value):
                return self._compared(attribute, operator, value)
            case In(attribute, values):
                return self._with(attribute, lambda column: self._one_of(column, attribute, values))
            case Between(attribute, low, high):
                return self._with(
                    attribute, lambda column: f"{column} BETWEEN {self._mark(low)} AND {self._mark(high)}"
                )
            case StartsWith(attribute, prefix):
                return self._with(attribute, lambda column: self._begins(column, prefix))
            case _:
                assert_never(filter_)

    def _joined(self, word: str, terms: tuple[Filter, ...], empty: str) -> str:
        return f"({word.join(self.term(term) for term in terms)})" if terms else empty

    def _compared(self, attribute: Attribute, operator: Operator, value: Value) -> str:
        if attribute == RUN_ID and operator is Operator.EQ:
            self.parameters.append(to_run(str(value)))
            return "runs.run = ?"
        if attribute.type is ValueType.TEXT:
            own = words(str(value))
            return self._with(attribute, lambda column: self._one_of(column, attribute, own))
        return self._with(attribute, lambda column: f"{column} {operator} {self._mark(value)}")

    def _one_of(self, column: str, attribute: Attribute, values: tuple[Value, ...]) -> str:
        return f"{column} IN ({', '.join(self._mark(value) for value in values)})"

    def _begins(self, column: str, prefix: str) -> str:
        """A range, since LIKE and GLOB know characters that mean others."""
        behind = _behind_all_with(prefix)
        low = f"{column} >= {self._mark(prefix)}"
        return low if behind is None else f"{low} AND {column} < {self._mark(behind)}"

    def _with(self, attribute: Attribute, condition: Callable[[str], str]) -> str:
        if attribute.custom:
            return self._having(attribute, condition)
        return f"({condition(_SYSTEM[attribute.name])})"

    def _having(self, attribute: Attribute, condition: Callable[[str], str]) -> str:
        self.parameters += [self._namespace, attribute.name, KINDS[attribute.type]]
        return (
            "EXISTS (SELECT 1 FROM found_by INDEXED BY found_by_run WHERE number = runs.id AND namespace = ? "
            f"AND name = ? AND kind = ? AND {condition('value')})"
        )

    def _mark(self, value: Value) -> str:
        self.parameters.append(to_column(value))
        return "?"


def _column(namespace: str, attribute: Attribute) -> tuple[str, tuple[object, ...]]:
    """An attribute with one value as an expression."""
    if not attribute.custom:
        return _SYSTEM[attribute.name], ()
    return (
        "(SELECT value FROM found_by INDEXED BY found_by_run WHERE number = runs.id AND namespace = ? AND name = ? "
        "AND kind = ?)",
        (namespace, attribute.name, KINDS[attribute.type]),
    )


def _behind_all_with(prefix: str) -> str | None:
    """The first text behind all that begin with it; None when there is none."""
    for end in range(len(prefix), 0, -1):
        last = ord(prefix[end - 1])
        if last < 0x10FFFF:
            following = 0xE000 if last == 0xD7FF else last + 1
            return prefix[: end - 1] + chr(following)
    return None
