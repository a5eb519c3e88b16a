"""The tests that docs/coverage.csv names: where they are, and whether they ran.

In a full run, of all folders and without a selection, a named test that did not pass fails the run: a row may not rest
on a test that is skipped, or that pytest never finds. Tests of ``infra/`` have a run and an environment of their own,
which asks the same for those that are named of it; each named test is of one of the two runs. With several processes
(pytest-xdist) the one that hands the tests out also hears of every result, and checks; the others only tell it whether
they left tests out.
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "coverage.csv"
PRODUCT, INFRASTRUCTURE = "tests/", "infra/cdk/tests/"
"""Where the tests of each run are."""

_DESELECTED = "deselected"
_RAN_TO_THE_END = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
COLUMNS = ["row", "feature", "status", "test", "reason"]


def rows() -> list[dict[str, str]]:
    """Raises ValueError for a line with too few or too many columns."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file, strict=True)
    if header != COLUMNS:
        raise ValueError(f"{TABLE.name}: columns are {header}")
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines]


def named(table: Iterable[dict[str, str]]) -> dict[str, list[str]]:
    """The rows that rest on a test, by its name."""
    found: dict[str, list[str]] = {}
    for row in table:
        for test in row["test"].split():
            found.setdefault(test, []).append(row["row"])
    return found


def without_parameters(node_id: str) -> str:
    return node_id.partition("[")[0]


def missing(passed: Iterable[str], table: Iterable[dict[str, str]], of: str = "") -> list[str]:
    """What to say about each named test, below the folder ``of``, of which no case passed. ``passed``: node ids."""
    ran = {without_parameters(node_id) for node_id in passed}
    return [
        f"{test} did not run, and {', '.join(codes)} in docs/coverage.csv rests on it"
        for test, codes in sorted(named(table).items())
        if test.startswith(of) and test not in ran
    ]


class NamedTestsRan:
    """A pytest plugin; the conftest.py of each run registers it, for the folder of its tests."""

    def __init__(self, of: str, table: Iterable[dict[str, str]] | None = None) -> None:
        self._of = of
        self._table = table
        self._passed: set[str] = set()
        self._problems: list[str] = []
        self._deselected = False

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._deselected = self._deselected or bool(items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist has ended; one that crashed has sent nothing."""
        self._deselected = self._deselected or getattr(node, "workeroutput", {}).get(_DESELECTED, False)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        handed_back = getattr(session.config, "workeroutput", None)
        if handed_back is not None:
            handed_back[_DESELECTED] = self._deselected
            return
        cut_short = session.shouldstop or session.shouldfail or session.exitstatus not in _RAN_TO_THE_END
        if self._deselected or cut_short or not _is_full(session.config):
            return
        self._problems = missing(self._passed, rows() if self._table is None else self._table, self._of)
        if self._problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._problems:
            terminalreporter.section("tests named in docs/coverage.csv that did not run")
            for problem in self._problems:
                terminalreporter.write_line(problem)


def _is_full(config: pytest.Config) -> bool:
    """Whether all of the tests were asked for: by no path, and with no option that leaves some out."""
    by_default = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    return by_default and not config.option.collectonly
