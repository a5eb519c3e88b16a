"""The set-up script says what is wrong and what to do, and touches nothing that is not its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def _run(script: Path, environment: Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "STEPWELL_VENV": str(environment)}
    return subprocess.run([sys.executable, script, "-c", "pass"], env=variables, capture_output=True, text=True)


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


def test_what_is_installed_already_is_not_installed_again(tmp_path: Path) -> None:
    environment, asked = tmp_path / "venv", tmp_path / "asked"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    pip = next(environment.glob("lib/python*/site-packages")) / "pip"
    pip.mkdir()
    (pip / "__init__.py").touch()
    (pip / "__main__.py").write_text(f"import sys\nprint(*sys.argv[1:], file=open({str(asked)!r}, 'a'))\n")

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
