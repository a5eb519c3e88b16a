"""Runs the field's own test suites against a server that speaks Temporal's protocol.

    python -m tests.temporal.exam sdk-python --checkout PATH --address HOST:PORT --against stepwell --out FILE
    python -m tests.temporal.exam accept FILE…     takes results as what is expected; writes the page of the docs
    python -m tests.temporal.exam page             writes docs/temporal-compatibility.md anew

Suites: sdk-python, samples-python, features. The checkout is a folder with the repository's files at the revision
that tests/temporal/exam/suites.py names; nothing of it is kept. With --only TEXT… only files whose path has one of the
texts; with --out FILE that is there already their results replace the older ones in it.
"""

import argparse
import sys
from pathlib import Path

from . import environments, outcomes, page, running
from .suites import SUITES, files_of

FOLDER = Path(__file__).resolve().parents[1]
EXPECTED, OUTCOMES = FOLDER / "expected", FOLDER / "outcomes"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tests.temporal.exam", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, suite in SUITES.items():
        command = commands.add_parser(name, help=f"the tests of {suite.repository}")
        command.add_argument("--checkout", type=Path, required=True)
        command.add_argument("--address", required=True, help="HOST:PORT of the server")
        command.add_argument("--against", choices=["stepwell", "temporal"], required=True, help="which server that is")
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--only", nargs="+", default=[])
        command.add_argument("--environment", type=Path, default=Path("/tmp/stepwell-exam-venv"))
        command.add_argument("--check", action="store_true", help="exit code 1 when an expected pass is lost")
    accept = commands.add_parser("accept")
    accept.add_argument("results", type=Path, nargs="+")
    commands.add_parser("page")
    options = parser.parse_args(arguments)
    if options.command in SUITES:
        return examine(options)
    if options.command == "accept":
        for path in options.results:
            accept_results(outcomes.read(path))
    page.write(OUTCOMES)
    return 0


def examine(options: argparse.Namespace) -> int:
    suite = SUITES[options.command]
    checkout = options.checkout.resolve()
    files = files_of(suite, checkout, options.only)
    python = environments.ensure(suite, options.environment)
    found: dict[str, list[outcomes.Result]] = {}
    examination = None
    for file, results in running.run(suite, checkout, python, options.address, files):
        found[file] = results
        examination = outcomes.Examination(
            suite=suite.name,
            repository=suite.repository,
            revision=suite.revision,
            library=suite.library,
            server=options.against,
            files=dict(found),
        )
        if options.out.exists():
            examination = outcomes.merged(outcomes.read(options.out), examination)
        outcomes.write(options.out, examination)
    if examination is None:
        print("no file is chosen by --only", file=sys.stderr)
        return 2
    print(", ".join(f"{examination.count(outcome)} {outcome}" for outcome in ("passed", "failed", "skipped")))
    return _check(examination) if options.check else 0


def _check(examination: outcomes.Examination) -> int:
    missing = outcomes.lost(examination, outcomes.read_expected(EXPECTED / f"{examination.suite}.txt"))
    for test, why in missing.items():
        print(f"LOST {test}: {why}")
    return 1 if missing else 0


def accept_results(examination: outcomes.Examination) -> None:
    outcomes.write(OUTCOMES / f"{examination.suite}.{examination.server}.json", outcomes.summarise(examination))
    if examination.server == "stepwell":
        outcomes.write_expected(EXPECTED / f"{examination.suite}.txt", examination)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
