"""Runs a suite's files one after the other, each in a process of its own, and tells what came of every test.

A process that makes no progress is ended; the test that it was in has failed, and those behind it are run by another.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .outcomes import Result, from_lines
from .suites import Suite

_PLUGIN = Path(__file__).with_name("plugin")
_PATIENCE = 45.0
"""Seconds beyond a test's own limit, for fixtures and for a start on a busy machine."""
_PROCESSES = 12
"""The most processes that one file gets: a file in which more than so many tests hang is not worth the time."""


def run(
    suite: Suite, checkout: Path, python: Path, address: str, files: Sequence[str]
) -> Iterator[tuple[str, list[Result]]]:
    """Each file with its results, as soon as they are there."""
    for file in files:
        started = time.monotonic()
        one = _pytest_file if suite.pytest else _feature
        results = one(suite, checkout, python, address, file)
        passed = sum(result.outcome == "passed" for result in results)
        print(
            f"{passed:4} of {len(results):4}  {file}  ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True
        )
        yield file, results


def _pytest_file(suite: Suite, checkout: Path, python: Path, address: str, file: str) -> list[Result]:
    options = [option.replace("{address}", address) for option in suite.pytest]
    common = ["-p", "exam_recorder", "-p", "no:cacheprovider", "-q", "--no-header", "--tb=short"]
    common += [f"--timeout={suite.test_limit:.0f}", *options]
    results: list[Result] = []
    tests = [file]
    for _ in range(_PROCESSES):
        with tempfile.NamedTemporaryFile(prefix="stepwell-exam-", suffix=".jsonl") as log:
            command = [str(python), "-m", "pytest", *common, *tests]
            environment = _environment(checkout, STEPWELL_EXAM_LOG=log.name)
            killed, output = _watched(command, checkout, environment, Path(log.name), suite.test_limit + _PATIENCE)
            lines = [json.loads(line) for line in Path(log.name).read_text(encoding="utf-8").splitlines()]
        found, left = from_lines(lines, killed)
        results += found
        if not found:
            return [*results, Result(file, "failed", f"pytest ended without a result: {_last(output)}")]
        if not left:
            return results
        tests = left
    return [*results, *(Result(test, "failed", "not run: too many before it hung") for test in tests)]


def _feature(suite: Suite, checkout: Path, python: Path, address: str, file: str) -> list[Result]:
    name = str(Path(file).parent.relative_to("features"))
    where = f"{name}:exam-{name.replace('/', '-')}-{os.getpid()}"
    module = ["-m", "harness.python.main", "--server", address, "--namespace", "default", "--log-level", "INFO", where]
    with tempfile.NamedTemporaryFile(prefix="stepwell-exam-", suffix=".log") as log:
        command = [str(python), *module]
        killed, output = _watched(command, checkout, _environment(checkout), Path(log.name), suite.test_limit)
    skipped = [line for line in output.splitlines() if "Skipping feature" in line]
    if killed:
        return [Result(file, "failed", killed)]
    if skipped:
        return [Result(file, "skipped", skipped[0].partition(" because ")[2])]
    if "All features passed" in output:
        return [Result(file, "passed")]
    return [Result(file, "failed", _cause(output))]


def _watched(
    command: Sequence[str], folder: Path, environment: dict[str, str], log: Path, patience: float
) -> tuple[str, str]:
    """Why the process was ended, if it was, and what it printed. Progress is that the log grows."""
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
        )
        killed, size, since = "", -1, time.monotonic()
        while process.poll() is None:
            if (grown := log.stat().st_size) != size:
                size, since = grown, time.monotonic()
            elif time.monotonic() - since > patience:
                killed = f"hung: no end after {patience:.0f} s"
                break
            time.sleep(0.1)
        _end(process)
        printed.seek(0)
        return killed, printed.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """With all that it started: suites start processes of their own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _environment(checkout: Path, **more: str) -> dict[str, str]:
    """Python keeps what it compiles: the SDK's sandbox imports the file of a workflow for each run of it."""
    unwanted = ("PYTEST_", "TEMPORAL_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(checkout), str(_PLUGIN)]), **more}


def _last(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return " ".join(lines[-1].split())[:300] if lines else "it printed nothing"


def _cause(output: str) -> str:
    """The innermost error of the first traceback: the harness prints the features' and then one of its own."""
    for line in output.splitlines():
        name, colon, _ = line.partition(":")
        if colon and not line.startswith(" ") and name.rpartition(".")[2].endswith(("Error", "Exception", "Failure")):
            return " ".join(line.split())[:300]
    return _last(output)
