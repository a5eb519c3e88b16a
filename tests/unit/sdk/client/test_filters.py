"""Filters as arguments become a query that finds what they say, whatever is in their values (VI-13)."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.errors import InvalidArgument
from stepwell.client.filters import query_of
from stepwell.common import SearchAttributeKey, SearchAttributePair

from stepwell_server.visibility.attributes import ValueType
from stepwell_server.visibility.evaluate import matches
from stepwell_server.visibility.query import parse

AT = datetime(2026, 12, 1, 9, tzinfo=UTC)
TYPES = {
    "City": ValueType.KEYWORD,
    "Amount": ValueType.INT,
    "Rate": ValueType.DOUBLE,
    "Paid": ValueType.BOOL,
    "Due": ValueType.DATETIME,
    "Tags": ValueType.KEYWORD_LIST,
    "odd `name` and": ValueType.KEYWORD,
}
HOSTILE = [
    "o'brien",
    "'",
    "''",
    "' OR WorkflowId != '",
    "x') OR (WorkflowId != 'y",
    'say "hi"',
    "back\\slash\\'",
    "`tick`",
    "50% _",
    "a ORDER BY StartTime",
    "line\nbreak\t\x00",
    "日本",
]


def finds(query: str, **values: Any) -> bool:
    return matches(parse(query, TYPES).filter, values)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_finds_itself_and_nothing_else(text: str) -> None:
    city = SearchAttributeKey.for_keyword("City")
    for query, name in (
        (query_of(workflow_id=text), "WorkflowId"),
        (query_of(workflow_type=[text, "other"]), "WorkflowType"),
        (query_of(task_queue=text), "TaskQueue"),
        (query_of(parent_workflow_id=text), "ParentWorkflowId"),
        (query_of(workflow_id_prefix=text), "WorkflowId"),
        (query_of(search_attributes=[city.value_set(text)]), "City"),
    ):
        assert finds(query, **{name: text})
        assert not finds(query, **{name: "y"}) and not finds(query)


PIECES = ["'", '"', "`", "(", ")", " OR ", " AND ", "City = ", "'x'", "NOT ", " ORDER BY StartTime", "\\", "City"]


@given(st.lists(st.sampled_from(PIECES), max_size=9), st.text(alphabet="'\"`()\\ aOR=", min_size=1, max_size=9))
def test_a_query_does_not_widen_what_the_filters_allow(pieces: list[str], value: str) -> None:
    try:
        found = parse(query_of("".join(pieces), workflow_id=value), TYPES).filter
    except (ValueError, InvalidArgument):
        return
    assert not matches(found, {"WorkflowId": value + "b", "City": "x"}) and not matches(found, {})


@pytest.mark.parametrize(
    "query", ["City = 'x", 'City = "x', "`City = 'x'", "City = 'x') OR (City = 'y'", "(City = 'x'", "City = 'x')"]
)
def test_a_query_that_would_reach_over_the_filters_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="query"):
        query_of(query, workflow_id="a")
    assert query_of(query) == query, "without filters the engine says what is wrong"


def test_a_query_beside_filters_keeps_its_order_and_groups() -> None:
    said = "City = 'a (ORDER BY b' OR Amount > 5"
    query = query_of(said + " order  by Amount DESC", workflow_id="w")
    assert parse(query, TYPES).order == parse("ORDER BY Amount DESC", TYPES).order
    assert finds(query, City="a (ORDER BY b", WorkflowId="w") and finds(query, Amount=6, WorkflowId="w")
    assert not finds(query, Amount=6, WorkflowId="v") and not finds(query, Amount=5, WorkflowId="w")
    assert query_of("GROUP BY City", workflow_id="w") == "WorkflowId = 'w' GROUP BY City"
    assert query_of("ORDER BY Amount") == "ORDER BY Amount" and query_of() == query_of(None) == ""


def test_statuses_and_times() -> None:
    statuses = [WorkflowExecutionStatus.FAILED, WorkflowExecutionStatus.CONTINUED_AS_NEW]
    query = query_of(status=statuses)
    assert all(finds(query, ExecutionStatus=each.value) for each in statuses)
    assert not finds(query, ExecutionStatus="RUNNING")
    assert query_of(status=WorkflowExecutionStatus.RUNNING) == "ExecutionStatus = 'RUNNING'"
    elsewhere = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
    until = AT + timedelta(microseconds=1)
    for name, query in (
        ("StartTime", query_of(start_time_from=elsewhere, start_time_before=until)),
        ("CloseTime", query_of(close_time_from=elsewhere, close_time_before=until)),
    ):
        assert finds(query, **{name: AT}) and not finds(query, **{name: until})
        assert not finds(query, **{name: AT - timedelta(microseconds=1)}) and not finds(query)


def test_attributes_of_all_types() -> None:
    values: list[tuple[SearchAttributeKey[Any], Any, Any, Any]] = [
        (SearchAttributeKey.for_int("Amount"), -7, -7, 7),
        (SearchAttributeKey.for_float("Rate"), 1e-20, 1e-20, 0.0),
        (SearchAttributeKey.for_bool("Paid"), False, False, True),
        (SearchAttributeKey.for_datetime("Due"), AT, AT, AT + timedelta(seconds=1)),
        (SearchAttributeKey.for_keyword_list("Tags"), ["a", "b"], ("b", "c", "a"), ("a",)),
        (SearchAttributeKey.for_keyword("odd `name` and"), "x", "x", "y"),
    ]
    for key, value, fits, fits_not in values:
        query = query_of(search_attributes=[SearchAttributePair(key, value)])
        assert finds(query, **{key.name: fits}) and not finds(query, **{key.name: fits_not})
    query = query_of(search_attributes=[SearchAttributeKey.for_keyword("City").value_unset()])
    assert finds(query) and not finds(query, City="Rome")


def test_what_finds_nothing_by_accident_is_refused() -> None:
    with pytest.raises(ValueError, match="workflow_id has no values"):
        query_of(workflow_id=[])
    with pytest.raises(ValueError, match=r"start_time_from.*time zone"):
        query_of(start_time_from=AT.replace(tzinfo=None))
    with pytest.raises(ValueError, match="nan"):
        query_of(search_attributes=[SearchAttributeKey.for_float("Rate").value_set(float("nan"))])
    with pytest.raises(TypeError, match="task_queue takes texts"):
        query_of(task_queue=[7])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="search_attributes"):
        query_of(search_attributes=["City"])  # type: ignore[list-item]
