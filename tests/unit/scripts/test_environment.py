"""The set-up script says what is wrong and what to do, and touches nothing that is not its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _run(script: Path, environment: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "STEPWELL_VENV": str(environment)}
    command = [sys.executable, script, *(arguments or ("-c", "pass"))]
    return subprocess.run(command, env=variables, capture_output=True, text=True)


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    done = _run(ROOT / "scripts" / "run.py", tmp_path)

    assert done.returncode == 2
    assert "is no Python environment; move it, or name another by STEPWELL_VENV" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_checkout_without_symbolic_links_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "stepwell_server").write_text("services")
    done = _run(tmp_path / "scripts" / "run.py", tmp_path / "venv")

    assert done.returncode == 2
    assert "git config core.symlinks true" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """With a pip and a pytest that write down what they were called with."""
    made = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    for name in ("pip", "pytest"):
        package = next(made.glob("lib/python*/site-packages")) / name
        package.mkdir()
        (package / "__init__.py").touch()
        asked = str(tmp_path / name)
        (package / "__main__.py").write_text(f"import sys\nprint(*sys.argv[1:], file=open({asked!r}, 'a'))\n")
    return made


def test_what_is_installed_already_is_not_installed_again(environment: Path, tmp_path: Path) -> None:
    asked = tmp_path / "pip"
    assert _run(ROOT / "scripts" / "run.py", environment).returncode == 0
    calls = asked.read_text().splitlines()
    assert [call.split()[-1] for call in calls] == [
        "requirements/runtime.txt",
        "requirements/dev.txt",
        "requirements/build.txt",
        ".",
    ]

    done = _run(ROOT / "scripts" / "run.py", environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert asked.read_text().splitlines() == calls


def test_all_tests_run_in_several_processes_and_named_ones_in_one(environment: Path, tmp_path: Path) -> None:
    for arguments in (["-x", "--durations=5"], ["tests/e2e"], ["-k", "timer"], ["-s"]):
        assert _run(ROOT / "scripts" / "test.py", environment, *arguments).returncode == 0

    assert (tmp_path / "pytest").read_text().splitlines() == [
        "-n auto --dist worksteal -x --durations=5",
        "tests/e2e",
        "-k timer",
        "-s",
    ]
