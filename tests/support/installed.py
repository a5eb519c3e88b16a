"""Builds both wheels and installs them into an environment of their own, with nothing else but what they declare.

No index is asked: the third-party packages are those of the environment that runs the tests, linked one by one along
the declared requirements, so a requirement that is not declared is missing there as it would be for a user.
"""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
OURS = ("stepwell", "stepwell-server")


def build_wheels(folder: Path) -> list[Path]:
    """Wheels of both distributions, built by hatchling without isolation."""
    for project in (ROOT / "sdk", ROOT):
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return sorted(folder.glob("*.whl"))


def make_environment(folder: Path, wheels: list[Path]) -> Path:
    """The Python of a new environment that holds the wheels and their declared requirements."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    options = ["install", "--quiet", "--no-deps", "--no-index", *map(str, wheels)]
    subprocess.run([*_pip(), "--python", str(python), *options], check=True)
    for name in _requirements(site):
        _link(importlib.metadata.distribution(name), site)
    return python


def _pip() -> list[str]:
    """A pip to install with: the one of this environment, or of the Python it was made from."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if subprocess.run([python, "-c", "import pip"], capture_output=True, check=False).returncode == 0:
            return [python, "-m", "pip"]
    raise AssertionError(
        "neither this environment nor the Python behind it has pip, which scripts/test.py needs as well"
    )


def _requirements(site: Path) -> set[str]:
    """Names of everything that our wheels need, and what that needs in turn, for this Python and platform."""
    waiting = [line for found in importlib.metadata.distributions(path=[str(site)]) for line in found.requires or ()]
    seen: set[str] = set()
    environment = {**default_environment(), "extra": ""}
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker is not None and not requirement.marker.evaluate(environment):
            continue
        if requirement.name in seen or requirement.name in OURS:
            continue
        seen.add(requirement.name)
        waiting += importlib.metadata.requires(requirement.name) or ()
    return seen


def _link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """The distribution's top-level folders and files, as links to where they are."""
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        target = site / top
        if not target.exists():
            target.symlink_to(Path(str(distribution.locate_file(top))))
