"""A pytest plugin that writes one line of JSON for each test as it happens, so that a run that is killed has told all.

It runs in the environment of the suite that is examined, so it imports nothing of this repository. STEPWELL_EXAM_LOG
names the file.
"""

import json
import os
from typing import Any

import pytest

_REASON_LIMIT = 300


class Recorder:
    def __init__(self, path: str) -> None:
        self._path = path
        self._reasons: dict[str, str] = {}
        self._skipped: set[str] = set()

    def _write(self, **line: Any) -> None:
        with open(self._path, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._write(kind="collected", tests=[item.nodeid for item in items])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(kind="unreadable", test=report.nodeid, reason=_last_line(str(report.longrepr)))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write(kind="started", test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reasons.setdefault(report.nodeid, _reason(report))
        elif report.skipped:
            # an expected failure that failed is reported as skipped too: the test did what its authors expect
            if not hasattr(report, "wasxfail"):
                self._skipped.add(report.nodeid)
                self._reasons.setdefault(report.nodeid, _skip_reason(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        skipped = nodeid in self._skipped
        reason = self._reasons.pop(nodeid, "")
        outcome = "skipped" if skipped else "failed" if reason else "passed"
        self._write(kind="ended", test=nodeid, outcome=outcome, reason=reason)


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else _last_line(str(report.longrepr))
    where = "" if report.when == "call" else f"in {report.when}: "
    return where + " ".join(text.split())[:_REASON_LIMIT]


def _skip_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return _last_line(str(report.longrepr))


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:_REASON_LIMIT] if lines else "no reason given"


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("STEPWELL_EXAM_LOG")
    if path:
        config.pluginmanager.register(Recorder(path), "stepwell-exam-recorder")
