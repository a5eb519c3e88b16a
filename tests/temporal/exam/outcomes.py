"""What an examination found: a record for each test, its JSON, and the lists of what is expected to pass."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

_PATH = re.compile(r"(?<![\w:/])/[\w.-]+(/[\w.@-]+)+")
_ID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}|0x[0-9a-f]{6,}")
Outcome = Literal["passed", "failed", "skipped"]


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of one test. ``reason``: one line, of a failure or of a skip."""

    test: str
    outcome: Outcome
    reason: str = ""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """Of one suite against one server. ``files``: results by file, in the order of the tests."""

    suite: str
    repository: str
    revision: str
    library: str
    server: str
    files: dict[str, list[Result]]

    def count(self, outcome: Outcome, file: str | None = None) -> int:
        chosen = self.files.values() if file is None else [self.files[file]]
        return sum(result.outcome == outcome for results in chosen for result in results)

    def passed(self) -> set[str]:
        return {result.test for results in self.files.values() for result in results if result.outcome == "passed"}


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Of one file, as committed: the tests that passed are in the list of expected passes, so here is their number."""

    passed: int
    failed: list[Result] = []
    skipped: list[Result] = []

    @property
    def total(self) -> int:
        return self.passed + len(self.failed) + len(self.skipped)


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """An examination as it is committed."""

    suite: str
    repository: str
    revision: str
    library: str
    server: str
    files: dict[str, Tally]


def summarise(examination: Examination) -> Summary:
    def tally(results: Sequence[Result]) -> Tally:
        def of(outcome: Outcome) -> list[Result]:
            return [_shareable(result) for result in results if result.outcome == outcome]

        return Tally(passed=len(of("passed")), failed=of("failed"), skipped=of("skipped"))

    return Summary(
        suite=examination.suite,
        repository=examination.repository,
        revision=examination.revision,
        library=examination.library,
        server=examination.server,
        files={file: tally(results) for file, results in sorted(examination.files.items())},
    )


def _shareable(result: Result) -> Result:
    """Without what is of the machine or of the one run, so that a page differs only where the outcome does."""
    reason = _PATH.sub("…", _ID.sub("…", result.reason))
    return msgspec.structs.replace(result, reason=reason)


def merged(older: Examination, newer: Examination) -> Examination:
    """The newer results file by file, and the older ones of files that were not run again.

    Raises ``ValueError`` when they are of different suites, revisions or servers.
    """
    for field in ("suite", "repository", "revision", "library", "server"):
        if getattr(older, field) != getattr(newer, field):
            raise ValueError(f"{field}: {getattr(older, field)!r} and {getattr(newer, field)!r} are not of one run")
    return msgspec.structs.replace(newer, files={**older.files, **newer.files})


def lost(examination: Examination, expected: Iterable[str]) -> dict[str, str]:
    """Tests that are expected to pass and did not, with the reason; those of files that were not run do not count."""
    found = {result.test: result for results in examination.files.values() for result in results}
    missing: dict[str, str] = {}
    for test in expected:
        if test.partition("::")[0] not in examination.files:
            continue
        result = found.get(test)
        if result is None:
            missing[test] = "it is not there any more"
        elif result.outcome != "passed":
            missing[test] = f"{result.outcome}: {result.reason}"
    return missing


def read_expected(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def write_expected(path: Path, examination: Examination) -> None:
    path.parent.mkdir(exist_ok=True)
    heading = (
        f"# Tests of {examination.suite} that pass against Stepwell. Written by python -m tests.temporal.exam accept"
    )
    path.write_text("\n".join([heading, *sorted(examination.passed())]) + "\n", encoding="utf-8")


def read(path: Path) -> Examination:
    return msgspec.json.decode(path.read_bytes(), type=Examination)


def read_summary(path: Path) -> Summary:
    return msgspec.json.decode(path.read_bytes(), type=Summary)


def write(path: Path, record: Examination | Summary) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def from_lines(lines: Iterable[Mapping[str, object]], killed: str = "") -> tuple[list[Result], list[str]]:
    """The results that the recorder's lines tell, and the tests that were collected and not run.

    ``killed``: why the process was ended, if it was; that is then the reason for the test that was running.
    """
    collected: list[str] = []
    ended: dict[str, Result] = {}
    running = ""
    for line in lines:
        match line["kind"]:
            case "collected":
                collected = [str(test) for test in line["tests"]]  # type: ignore[attr-defined]
            case "unreadable":
                test = str(line["test"])
                ended[test] = Result(test, "failed", f"cannot be collected: {line['reason']}")
            case "started":
                running = str(line["test"])
            case "ended":
                test = str(line["test"])
                ended[test] = msgspec.convert(
                    {"test": test, "outcome": line["outcome"], "reason": line["reason"]}, Result
                )
                running = ""
    if running:
        ended[running] = Result(running, "failed", killed or "the process ended while it ran")
    return list(ended.values()), [test for test in collected if test not in ended]
