"""The coverage table speaks of tests that exist: each row says what is shown where, or why it is not."""

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.support.named_tests import INFRASTRUCTURE, PRODUCT, ROOT, missing, rows

ROW = re.compile(r"[A-Z]{2}-\d\d")
WITH_TESTS = ("done", "partial")
FINDING_AND_SCHEDULING = (
    *(f"LC-{number:02}" for number in (6, *range(9, 13), *range(24, 49))),
    *(f"VI-{number:02}" for number in range(1, 22)),
    *(f"MT-{number:02}" for number in (*range(1, 7), *range(9, 12))),
    *(f"DX-{number:02}" for number in range(1, 8)),
)
"""What issue 5 names: each has a row, also where it is not built."""


@cache
def _tests_of(name: str) -> frozenset[str]:
    """Names of the tests in a file, in the form in which pytest says them; read, not run."""
    path = ROOT / name
    if not path.is_file():
        return frozenset()
    return frozenset(_tests_in(ast.parse(path.read_text(encoding="utf-8")).body))


def _tests_in(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test_"):
            yield statement.name
        elif isinstance(statement, ast.ClassDef) and statement.name.startswith("Test"):
            yield from (f"{statement.name}::{name}" for name in _tests_in(statement.body))


def _problem(row: dict[str, str]) -> str:
    """What is wrong with a row; empty when nothing is."""
    tests = row["test"].split()
    if not ROW.fullmatch(row["row"]) or not row["feature"]:
        return "needs the code of a row and a name for people"
    if row["status"] not in (*WITH_TESTS, "open"):
        return f"has status {row['status']!r}; use done, partial or open"
    if row["status"] in WITH_TESTS and not tests:
        return f"is {row['status']} and names no test"
    if row["status"] == "open" and tests:
        return "is open and names a test; is it partial?"
    if row["status"] != "done" and not row["reason"]:
        return f"is {row['status']} and says no reason"
    return "; ".join(f"names {test}, which does not exist" for test in tests if not _exists(test))


def _exists(test: str) -> bool:
    name, _, function = test.partition("::")
    return name.startswith((PRODUCT, INFRASTRUCTURE)) and function in _tests_of(name)


def test_every_row_says_where_it_is_shown_or_why_not() -> None:
    table = rows()
    problems = {row["row"]: problem for row in table if (problem := _problem(row))}

    assert len(table) > 200
    assert problems == {}


def test_every_row_is_there_once() -> None:
    codes = [row["row"] for row in rows()]

    assert sorted(set(codes)) == sorted(codes)
    assert {f"WC-{number:02}" for number in range(1, 38)} <= set(codes)
    assert set(FINDING_AND_SCHEDULING) <= set(codes)


def test_the_check_bites() -> None:
    row = {"row": "AC-01", "feature": "Activities", "status": "done", "test": "", "reason": ""}
    here = "tests/unit/test_coverage_table.py::"

    assert _problem(row | {"test": f"{here}test_the_check_bites"}) == ""
    assert "names no test" in _problem(row)
    assert "does not exist" in _problem(row | {"test": f"{here}test_of_nothing"})
    assert "does not exist" in _problem(row | {"test": "tests/unit/test_nowhere.py::test_x"})
    assert "does not exist" in _problem(row | {"test": "infra/cdk/tests/test_stack.py::test_x"})
    assert _problem(row | {"test": "infra/cdk/tests/test_stack.py::test_alarms"}) == ""
    assert "does not exist" in _problem(row | {"test": "scripts/test.py::options"})
    assert "no reason" in _problem(row | {"status": "open"})
    assert "use done, partial or open" in _problem(row | {"status": "finished"})


def test_the_check_of_a_full_run_bites() -> None:
    table = [
        {"row": "AC-01", "test": "tests/a.py::test_x tests/a.py::Test::test_y"},
        {"row": "AC-02", "test": "tests/a.py::test_x"},
    ]
    other = "tests/a.py::Test::test_y[a-b]"

    elsewhere = [{"row": "AC-03", "test": "infra/cdk/tests/c.py::test_z"}]
    assert missing([], elsewhere, PRODUCT) == []
    assert len(missing([], elsewhere, INFRASTRUCTURE)) == 1
    assert missing(["tests/a.py::test_x[in-process]", other], table) == []
    assert missing([other, "tests/b.py::test_x"], table) == [
        "tests/a.py::test_x did not run, and AC-01, AC-02 in docs/coverage.csv rests on it"
    ]
