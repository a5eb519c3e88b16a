"""Queries that are not right are refused with their place, what is wrong, and the way out; right ones become data."""

import subprocess
import sys

import pytest
from stepwell.api.errors import InvalidArgument

from stepwell_server.visibility import checking as limits
from stepwell_server.visibility.attributes import START_TIME, STATUS, SYSTEM, WORKFLOW_ID, Attribute
from stepwell_server.visibility.attributes import ValueType as V
from stepwell_server.visibility.filters import (
    All,
    AnyOf,
    Between,
    Compare,
    In,
    IsNull,
    Not,
    Operator,
    Order,
    Query,
    StartsWith,
)
from stepwell_server.visibility.query import parse

ATTRIBUTES = {
    "Customer": V.KEYWORD,
    "Amount": V.INT,
    "Weight": V.DOUBLE,
    "Rush": V.BOOL,
    "Due": V.DATETIME,
    "Tags": V.KEYWORD_LIST,
    "Note": V.TEXT,
    "a `b`": V.KEYWORD,
    "order": V.KEYWORD,
}
CUSTOMER, AMOUNT = Attribute("Customer", V.KEYWORD), Attribute("Amount", V.INT)
A, B, C = (Compare(CUSTOMER, Operator.EQ, value) for value in "abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Query()),
        (" \n", Query()),
        ("Customer = 'a'", Query(A)),
        ('Customer="a"', Query(A)),
        ("Customer <> 'a'", Query(Not(A))),
        ("customer = 'a'", None),
        ("Customer = 'a' or Customer = 'b' AND Customer = 'c'", Query(AnyOf((A, All((B, C)))))),
        ("(Customer = 'a' or Customer = 'b') AND Customer = 'c'", Query(All((AnyOf((A, B)), C)))),
        ("NOT Customer = 'a' AND Customer = 'b'", Query(All((Not(A), B)))),
        ("Amount NOT BETWEEN -1 AND 5 and Customer='a'", Query(All((Not(Between(AMOUNT, -1, 5)), A)))),
        ("Customer NOT IN ('a', 'b', 'a')", Query(Not(In(CUSTOMER, ("a", "b"))))),
        ("Customer is null", Query(IsNull(CUSTOMER))),
        ("Customer IS NOT NULL", Query(Not(IsNull(CUSTOMER)))),
        ("Customer not starts_with '50%'", Query(Not(StartsWith(CUSTOMER, "50%")))),
        ("Customer = 'o''brien'", Query(Compare(CUSTOMER, Operator.EQ, "o'brien"))),
        ("Customer = '''edge'''", Query(Compare(CUSTOMER, Operator.EQ, "'edge'"))),
        ('Customer = "say ""hi"""', Query(Compare(CUSTOMER, Operator.EQ, 'say "hi"'))),
        (r"Customer = 'back\slash\'", Query(Compare(CUSTOMER, Operator.EQ, "back\\slash\\"))),
        ("`a ``b``` = 'a'", Query(Compare(Attribute("a `b`", V.KEYWORD), Operator.EQ, "a"))),
        ("`order` = 'a'", Query(Compare(Attribute("order", V.KEYWORD), Operator.EQ, "a"))),
        ("ExecutionStatus = 'TimedOut'", Query(Compare(STATUS, Operator.EQ, "TIMED_OUT"))),
        ("ExecutionStatus = 'timed_out'", Query(Compare(STATUS, Operator.EQ, "TIMED_OUT"))),
        ("ExecutionDuration > '1h30m'", Query(Compare(SYSTEM["ExecutionDuration"], Operator.GT, 5_400 * 10**9))),
        ("ExecutionDuration > '00:00:01'", Query(Compare(SYSTEM["ExecutionDuration"], Operator.GT, 10**9))),
        ("ExecutionDuration > 5", Query(Compare(SYSTEM["ExecutionDuration"], Operator.GT, 5))),
        ("order by StartTime", Query(order=Order(START_TIME))),
        ("Customer = 'a' ORDER BY Amount DESC", Query(A, Order(AMOUNT, descending=True))),
    ],
)
def test_what_is_read(text: str, expected: Query | None) -> None:
    if expected is None:
        with pytest.raises(InvalidArgument, match="near it: Customer"):
            parse(text, ATTRIBUTES)
    else:
        assert parse(text, ATTRIBUTES) == expected


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("Customer", 9, "expected"),
        ("Customer = ", 12, "found the end of the query"),
        ("Customer = a", 12, "a text stands in quotes: 'a'"),
        ("Customer = 'a", 12, "no closing '"),
        ('Customer = "a', 12, 'no closing "'),
        ("Customer = 'a' ;", 16, "found ';'"),
        ("(Customer = 'a'", 16, r"expected \)"),
        ("Customer = 'a')", 15, r"found '\)'"),
        ("Customer IN ()", 14, "expected"),
        ("' OR ''='", 1, "the name of an attribute"),
        ("Custmer = 'a'", 1, "no search attribute 'Custmer' .* near it: Customer"),
        ("Zzz = 'a'", 1, "there are .*WorkflowId"),
        ("Status = 'Running'", 1, "near it: ExecutionStatus"),
        ("Customer LIKE 'a%'", 10, "there is no LIKE; STARTS_WITH 'abc' finds what begins so"),
        ("Customer == 'a'", 11, "equal is one ="),
        ("Amount = '5'", 10, "of type Int .* a whole number .* without quotes"),
        ("Amount = 5.5", 10, "a whole number"),
        ("Amount = 9223372036854775808", 10, "at most 64 bits"),
        ("Weight = 1e999", 10, "a number"),
        ("Customer = 5", 12, "a text in quotes"),
        ("Rush = 'true'", 8, "without quotes"),
        ("Due > '2026-01-01'", 7, "with its zone"),
        ("Due > '2026-13-01T00:00:00Z'", 7, "with its zone"),
        ("ExecutionStatus = 'Runing'", 19, "one of 'RUNNING'"),
        ("ExecutionDuration > '1 day'", 21, "such as '1h30m'"),
        (f"ExecutionDuration > '{'9' * 400}h'", 21, "such as '1h30m'"),
        (f"ExecutionDuration > '{'9' * 5_000}:00:00'", 21, "such as '1h30m'"),
        (f"ExecutionDuration > '{'9' * 90}h'", 21, "at most 292 years"),
        ("Tags > 'a'", 1, "KeywordList, which has no >; it has =, !=, IN"),
        ("Note IN ('a')", 1, "Text, which has no IN"),
        ("Rush < true", 1, "Bool, which has no <"),
        ("ExecutionStatus < 'RUNNING'", 1, "which has no <"),
        ("Amount STARTS_WITH 'a'", 1, "which has no STARTS_WITH"),
        ("Tags BETWEEN 'a' AND 'b'", 1, "which has no BETWEEN"),
        ("Customer = 'a' LIMIT 5", 16, "next_page_token"),
        ("ORDER BY WorkflowId", 10, "no index here is in the order of WorkflowId; order by StartTime"),
        ("ORDER BY CloseTime", 10, "no index here"),
        ("ORDER BY Tags", 10, "have no order"),
        ("ORDER BY StartTime, Amount", 21, "takes one attribute"),
        ("GROUP BY Customer", 10, "is for counts"),
    ],
)
def test_what_is_refused(text: str, place: int, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        parse(text, ATTRIBUTES)
    assert f"line 1, column {place}:" in str(refused.value)
    assert refused.value.details["field"] == "query"


def test_a_place_behind_the_first_line() -> None:
    with pytest.raises(InvalidArgument, match="line 3, column 5: Amount is of type Int"):
        parse("Customer = 'a'\nAND Amount >\n    'x'", ATTRIBUTES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("GROUP BY Amount", "by attributes of type Keyword, and Amount is of type Int"),
        ("GROUP BY Customer, WorkflowType", "takes one attribute"),
        ("ORDER BY StartTime", "a count has no order"),
    ],
)
def test_counts_that_are_refused(text: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem):
        parse(text, ATTRIBUTES, counts=True)


def test_a_count_may_be_grouped() -> None:
    assert parse("Customer = 'a' GROUP BY WorkflowId", ATTRIBUTES, counts=True) == Query(A, group_by=WORKFLOW_ID)


def test_limits() -> None:
    depth, in_values = limits.MAX_DEPTH - 1, limits.MAX_IN_VALUES
    assert parse("(" * depth + "Customer = 'a'" + ")" * depth, ATTRIBUTES) == Query(A)
    many = " OR ".join(["Customer = 'a'"] * limits.MAX_PREDICATES)
    assert len(parse(many, ATTRIBUTES).filter.terms) == limits.MAX_PREDICATES  # type: ignore[union-attr]
    for text, problem in [
        ("(" * 5_000 + "Customer = 'a'" + ")" * 5_000, "more than 32 within each other"),
        ("NOT " * 40 + "Customer = 'a'", "more than 32 within each other"),
        (many + " OR Customer = 'a'", "more than 200 comparisons"),
        (f"Amount IN ({', '.join(map(str, range(in_values + 1)))})", "IN has 501 values"),
        (f"Customer = '{'x' * 16_384}'", "query has 16397 bytes, the limit is 16384"),
        (f"Customer = '{'x' * 2_049}'", "the text has 2049 bytes"),
    ]:
        with pytest.raises(InvalidArgument, match=problem):
            parse(text, ATTRIBUTES)


def test_what_is_no_text() -> None:
    with pytest.raises(InvalidArgument, match="lone surrogate at position 12, which is not text; remove it"):
        parse("Customer = '\ud800'", ATTRIBUTES)


def test_no_process_pays_for_the_parser_before_its_first_query() -> None:
    code = "import sys, stepwell_server.frontend.routes; sys.exit('lark' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
