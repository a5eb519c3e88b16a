"""The functions' code as a folder: this repository's two distributions and the pinned packages they run with.

For AWS the packages are those for Arm and the functions' Python, whatever this machine is; for the emulator those of
this machine. What was made of the same sources and pins is not made again, and then needs no network.

Compiled files are in it, since a function cannot keep those that it makes: without them every cold start compiles all
it imports, which takes two to three times the CPU of the import itself. They are of use to one version of Python alone,
so where this machine has none of the functions' version there are none, and that is said.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import environment

BUILD = environment.ROOT / "build" / "functions"
PINS = environment.ROOT / "requirements" / "aws.txt"
PYTHON_OF_FUNCTIONS = "3.13"
PLATFORMS = ("manylinux_2_34_aarch64", "manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64")
SERVICES = frozenset({"dynamodb", "dynamodbstreams", "s3", "secretsmanager", "sqs", "ssm", "sts"})
PLACE = "/var/task"
"""Where Lambda unpacks it; compiled files say it."""

UNZIPPED_LIMIT = 250 * 1024 * 1024
"""Of Lambda, for the whole package."""


def build(target: str) -> Path:
    """The folder for a target, ``lambda`` or ``local``. Needs the environment to be there, with hatchling."""
    folder = BUILD / target
    stamp = BUILD / f".{target}"
    python = compiler(target)
    digest = _digest(target, compiled=python is not None)
    if folder.is_dir() and stamp.exists() and stamp.read_text() == digest:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    shutil.copytree(_packages(target), folder)
    _add_distributions(folder)
    if python is not None:
        compile_all(folder, python)
    else:
        print(
            f"» The functions' package has no compiled files, so cold starts take three times as long: here is "
            f"no Python {PYTHON_OF_FUNCTIONS}. With python{PYTHON_OF_FUNCTIONS} on the PATH it is made anew",
            flush=True,
        )
    _check_size(folder)
    stamp.write_text(digest)
    return folder


def compiler(target: str) -> str | None:
    """A Python of the version that the functions run with; None where this machine has none."""
    if target == "local":
        return sys.executable
    for python in (sys.executable, shutil.which(f"python{PYTHON_OF_FUNCTIONS}")):
        if python is not None and _version(python) == PYTHON_OF_FUNCTIONS:
            return python
    return None


def _version(python: str) -> str:
    """Of its compiled files; empty for what does not run, or is no release and compiles in a way of its own."""
    code = "import sys; print('%d.%d %s' % (*sys.version_info[:2], sys.version_info.releaselevel))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    version, _, level = done.stdout.strip().partition(" ")
    return version if done.returncode == 0 and level == "final" else ""


def compile_all(folder: Path, python: str) -> None:
    """The same bytes for the same sources, wherever and whenever: no times, no paths of this machine, no random order
    of sets. Python takes them as they are, and does not look at the sources."""
    options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", PLACE]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-m", "compileall", *options, str(folder)],
        env={**kept, "PYTHONHASHSEED": "0", "PYTHONNOUSERSITE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise environment.SetupError(f"a file of the functions' package cannot be compiled:\n{done.stdout[-2000:]}")


def _digest(target: str, *, compiled: bool) -> str:
    digest = hashlib.sha256(
        f"{target} {PYTHON_OF_FUNCTIONS} {PLATFORMS} {sorted(SERVICES)} {sys.version_info[:2]} {compiled}".encode()
    )
    digest.update(PINS.read_bytes())
    for top in (environment.ROOT / "services", environment.ROOT / "sdk" / "stepwell"):
        for path in sorted(top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"\0{path.relative_to(environment.ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _packages(target: str) -> Path:
    """The pinned packages, unpacked once for each set of pins."""
    key = hashlib.sha256(
        PINS.read_bytes() + repr((PLATFORMS, PYTHON_OF_FUNCTIONS, sorted(SERVICES), sys.version_info[:2])).encode()
    )
    folder = BUILD / f".packages-{target}-{key.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    making = folder.with_name(folder.name + ".new")
    shutil.rmtree(making, ignore_errors=True)
    options = ["install", "--quiet", "--no-deps", "--only-binary=:all:", "--no-compile", "--target", str(making)]
    if target == "lambda":
        options += ["--implementation", "cp", "--python-version", PYTHON_OF_FUNCTIONS]
        options += [part for platform in PLATFORMS for part in ("--platform", platform)]
    environment.call([*environment.pip(), *options, "--requirement", str(PINS)])
    _leave_out(making)
    os.replace(making, folder)
    return folder


def _leave_out(folder: Path) -> None:
    """botocore describes 400 services; the functions use a few, and a smaller package starts sooner."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for service in (folder / "botocore" / "data").iterdir():
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)


def _add_distributions(folder: Path) -> None:
    """As wheels, which are what users install: nothing but the packages gets in."""
    wheels = BUILD / ".wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    for distribution in environment.DISTRIBUTIONS:
        options = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
        environment.call([*environment.pip(), *options, f"./{distribution}"])
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def _check_size(folder: Path) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > UNZIPPED_LIMIT:
        raise environment.SetupError(f"the functions' package has {size:,} bytes, Lambda takes {UNZIPPED_LIMIT:,}")
