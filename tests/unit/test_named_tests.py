"""The check that named tests ran, on a folder of tests that is not this one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = """
from tests.support.named_tests import NamedTestsRan

def pytest_configure(config):
    table = [
        {"row": "AC-01", "test": "checks/test_a.py::test_x"},
        {"row": "AC-02", "test": "checks/test_a.py::test_y other/test_b.py::test_z"},
    ]
    config.pluginmanager.register(NamedTestsRan("checks/", table))
"""
TESTS = """
import pytest

@pytest.mark.parametrize("case", [1, 2])
def test_x(case):
    pass

@pytest.mark.skipif(%s, reason="tried")
def test_y():
    pass
"""
WITHOUT = ["-p", "no:cacheprovider", "-p", "no:asyncio"]


@pytest.mark.parametrize(
    ("skipped", "arguments", "code"),
    [(False, [], 0), (True, [], 1), (True, ["checks"], 0), (True, ["-k", "test_x"], 0), (True, ["--collect-only"], 0)],
    ids=["all ran", "one was skipped", "paths", "a selection", "only collected"],
)
@pytest.mark.parametrize("processes", [0, 2])
def test_a_full_run_needs_them_all(
    tmp_path: Path, skipped: bool, arguments: list[str], code: int, processes: int
) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = checks\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "checks" / "test_a.py").write_text(TESTS % skipped)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", f"-n{processes}", *WITHOUT, *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
        capture_output=True,
        text=True,
    )

    assert run.returncode == code, run.stdout + run.stderr
    assert ("checks/test_a.py::test_y did not run, and AC-02" in run.stdout) == (code == 1)
    assert "test_z" not in run.stdout, "it is of another run"
