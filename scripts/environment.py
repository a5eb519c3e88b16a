"""Makes the project's own Python environment in .venv, for the scripts beside this file.

Needs Python 3.11 and pip only: works without the venv or ensurepip package and beside a Python that its distribution
manages, as nothing is installed outside the folder. The second call finds stamps of what was installed and does
nothing. STEPWELL_VENV names another folder.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import List, Optional  # noqa: UP035  (an older Python must get as far as the message about its version)

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = Path(os.environ.get("STEPWELL_VENV") or ROOT / ".venv").absolute()


def _python_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


PYTHON = _python_of(ENVIRONMENT)
MINIMUM = (3, 11)
DISTRIBUTIONS = ("sdk", ".")


class SetupError(Exception):
    """The environment cannot be made; the text says why and what to do."""


def use(folder: Path) -> None:
    """From here on the environment is the one in this folder: some tools cannot share one with the product."""
    global ENVIRONMENT, PYTHON
    ENVIRONMENT = folder.absolute()
    PYTHON = _python_of(ENVIRONMENT)


def ensure_pins(*requirements: str) -> Path:
    """The environment's Python, with requirements/<name>.txt installed and nothing of this clone."""
    if not _works(PYTHON):
        _create()
    for name in requirements:
        _install(_requirements(name))
    return PYTHON


def ensure(*requirements: str) -> Path:
    """The environment's Python, with requirements/<name>.txt and both distributions (editable) installed."""
    _check_checkout()
    ensure_pins(*requirements)
    project = _project()
    if not project.is_installed() and not _has(str(PYTHON), "hatchling"):
        _install(_requirements("build"))
    _install(project)
    return PYTHON


class _Step:
    """One call of pip install; its stamp says for which contents of the files it was made."""

    def __init__(self, name: str, what: str, files: List[str], options: List[str]) -> None:  # noqa: UP006
        self.what, self.options = what, options
        self._stamp = ENVIRONMENT / f".stepwell-{name}"
        digest = hashlib.sha256(repr((str(ROOT), options)).encode())
        for file in files:
            digest.update((ROOT / file).read_bytes())
        self._digest = digest.hexdigest()

    def is_installed(self) -> bool:
        return self._stamp.exists() and self._stamp.read_text() == self._digest

    def mark_installed(self) -> None:
        self._stamp.write_text(self._digest)


def _requirements(name: str) -> _Step:
    file = f"requirements/{name}.txt"
    return _Step(name, file, [file], ["--requirement", file])


def _project() -> _Step:
    options = ["--no-deps", "--no-build-isolation"]
    for folder in DISTRIBUTIONS:
        options += ["--editable", folder]
    files = [f"{folder}/pyproject.toml" for folder in DISTRIBUTIONS]
    return _Step("project", "stepwell and stepwell-server (from this clone)", files, options)


def _install(step: _Step) -> None:
    if step.is_installed():
        return
    _say(f"Installing {step.what} into {_shown(ENVIRONMENT)} (once)")
    call([*pip(), "install", "--quiet", *step.options])
    step.mark_installed()


def run(arguments: List[str], folder: Path = ROOT, python_path: Optional[Path] = None) -> int:  # noqa: UP006, UP045
    """Runs the environment's Python and returns its exit code; Ctrl-C is left to the program that runs."""
    variables = _variables()
    if python_path is not None:
        variables["PYTHONPATH"] = str(python_path)
    process = subprocess.Popen([str(PYTHON), *arguments], cwd=str(folder), env=variables)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def main(requirements: List[str], arguments: List[str], python_path: Optional[Path] = None) -> int:  # noqa: UP006, UP045
    """Sets up, then runs; a set-up that fails is one message and exit code 2."""
    try:
        ensure(*requirements)
    except SetupError as error:
        print(f"Cannot set up: {error}", file=sys.stderr)
        return 2
    return run(arguments, python_path=python_path)


def _check_checkout() -> None:
    if not (ROOT / "stepwell_server" / "__init__.py").is_file():
        raise SetupError(
            "stepwell_server must be a symbolic link to services/ and is not. On Windows switch on symbolic links "
            "(developer mode, then `git config core.symlinks true`) and clone again."
        )


def _works(python: Path) -> bool:
    """Whether there is an environment whose Python starts and is new enough."""
    if not python.exists():
        return False
    check = f"import sys; sys.exit(sys.version_info < {MINIMUM!r})"
    return subprocess.run([str(python), "-c", check], capture_output=True, check=False).returncode == 0


def _create() -> None:
    if ENVIRONMENT.exists() and any(ENVIRONMENT.iterdir()) and not (ENVIRONMENT / "pyvenv.cfg").exists():
        raise SetupError(
            f"{ENVIRONMENT} is there and is no Python environment; move it, or name another by STEPWELL_VENV."
        )
    base = _base_python()
    _say(f"Making a Python environment in {_shown(ENVIRONMENT)} (once)")
    for options in (["--clear"], ["--clear", "--without-pip"]):
        command = [base, "-m", "venv", *options, str(ENVIRONMENT)]
        done = subprocess.run(command, capture_output=True, env=_variables(), check=False)
        if done.returncode == 0 and _works(PYTHON):
            return
    _create_by_virtualenv(base)


def _create_by_virtualenv(base: str) -> None:
    """For a Python that came without its venv module: pip brings virtualenv, into a folder that is removed again."""
    tool = ENVIRONMENT.with_name(ENVIRONMENT.name + "-tool")
    call([base, "-m", "pip", "install", "--quiet", "--target", str(tool), "--upgrade", "virtualenv"])
    try:
        call([base, "-m", "virtualenv", "--clear", "--quiet", str(ENVIRONMENT)], PYTHONPATH=str(tool))
    finally:
        shutil.rmtree(str(tool), ignore_errors=True)


def _base_python() -> str:
    """A Python of at least MINIMUM: the one that runs this (outside of any environment), else one on the path."""
    if sys.version_info >= MINIMUM:
        return getattr(sys, "_base_executable", None) or sys.executable
    for minor in range(19, MINIMUM[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and _works(Path(found)):
            return found
    raise SetupError(
        "Python {}.{} or newer is needed and this is {}. Install it and run the script by its name, such as "
        "`python3.11 scripts/demo.py`.".format(*MINIMUM, sys.version.split()[0])
    )


def pip() -> List[str]:  # noqa: UP006
    """The environment's own pip, else the one outside told to install into the environment."""
    if _has(str(PYTHON), "pip"):
        return [str(PYTHON), "-m", "pip"]
    base = _base_python()
    if _has(base, "pip"):
        return [base, "-m", "pip", "--python", str(PYTHON)]
    raise SetupError(
        f"{base} has no pip. Install it (on Debian and Ubuntu the package python3-pip) and run this again."
    )


def _has(python: str, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def call(command: List[str], **extra: str) -> None:  # noqa: UP006
    done = subprocess.run(command, cwd=str(ROOT), env={**_variables(), **extra}, check=False)
    if done.returncode != 0:
        raise SetupError(f"`{' '.join(command)}` ended with exit code {done.returncode}; its message is above.")


def _variables() -> "dict[str, str]":
    """The caller's variables, less those that would make pip or Python look elsewhere."""
    variables = {
        name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET")
    }
    variables.update(PIP_USER="0", PIP_REQUIRE_VIRTUALENV="0", PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONNOUSERSITE="1")
    return variables


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if ROOT in path.parents else str(path)


def _say(text: str) -> None:
    print(f"» {text}", flush=True)
