"""How SQLite goes about queries: by an index, in the order that is asked for, with nothing to be sorted."""

import sqlite3

import pytest

from stepwell_server.adapters.embedded import searching
from stepwell_server.adapters.embedded.connection import MEMORY, open_writable
from stepwell_server.adapters.embedded.reads import Reader
from stepwell_server.visibility.pages import Phase, phases
from stepwell_server.visibility.query import parse
from tests.support.queries import TYPES


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = open_writable(MEMORY)
    Reader(connection)  # brings the functions that statements use
    return connection


def plans(connection: sqlite3.Connection, text: str) -> list[str]:
    """One text for each phase of the query's order."""
    query = parse(text, TYPES, ordered_by=searching.ORDERED_BY)
    return [_plan(connection, phase) for phase in phases(query, None)]


def _plan(connection: sqlite3.Connection, phase: Phase) -> str:
    sql, parameters = searching.page("default", phase, 10)
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    return "\n".join(row[-1] for row in rows)


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("", "runs USING INDEX runs_by_start (namespace=?)"),
        ("StartTime > '2026-01-01T00:00:00Z'", "runs USING INDEX runs_by_start (namespace=? AND start_us>?)"),
        ("ORDER BY StartTime", "runs USING INDEX runs_by_start (namespace=?)"),
        ("ExecutionStatus = 'Completed'", "runs USING INDEX runs_by_start (namespace=?)"),
        ("ExecutionStatus = 'Failed'", "runs USING INDEX runs_not_completed (namespace=? AND status=?)"),
        ("WorkflowType = 'a'", "runs USING INDEX runs_by_type (namespace=? AND workflow_type=?)"),
        ("WorkflowType = 'a' AND ExecutionStatus = 'Failed'", "runs_not_completed"),
        ("ParentWorkflowId = 'a'", "runs USING INDEX runs_by_parent (namespace=? AND parent_id=?)"),
        ("TaskQueue = 'a'", "runs USING INDEX runs_by_start (namespace=?)"),
        ("HistoryLength > 5 OR WorkflowType STARTS_WITH 'a'", "runs USING INDEX runs_by_start (namespace=?)"),
        ("Customer = 'a'", "found USING PRIMARY KEY (namespace=? AND name=? AND kind=? AND value=?)"),
        (
            "Customer = 'a' AND WorkflowType = 'b'",
            "found USING PRIMARY KEY (namespace=? AND name=? AND kind=? AND value=?)",
        ),
        ("Tags = 'a' ORDER BY StartTime DESC", "found USING PRIMARY KEY"),
        ("Amount > 5", "runs USING INDEX runs_by_start (namespace=?)"),
    ],
)
def test_the_index_that_leads(connection: sqlite3.Connection, text: str, index: str) -> None:
    (plan,) = plans(connection, text)
    assert index in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN" not in plan


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("ORDER BY CloseTime DESC", "runs USING INDEX runs_by_end (namespace=? AND close_us>?)"),
        ("ORDER BY Amount", "found USING PRIMARY KEY (namespace=? AND name=? AND kind=?)"),
    ],
)
def test_an_order_has_two_phases(connection: sqlite3.Connection, text: str, index: str) -> None:
    having, lacking = plans(connection, text)
    assert index in having
    assert "runs USING INDEX runs_by_start (namespace=?)" in lacking
    assert "TEMP B-TREE" not in having + lacking


def test_one_workflow_id_is_put_in_order(connection: sqlite3.Connection) -> None:
    """Its runs are few."""
    (plan,) = plans(connection, "WorkflowId = 'a'")
    assert "runs USING INDEX runs_by_log (log=?)" in plan
