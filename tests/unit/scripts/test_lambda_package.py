"""Compiled files of the functions' package: the same bytes wherever they are made, of the functions' own Python."""

import hashlib
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHECK_SOURCE = 0b10


@pytest.fixture
def lambda_package(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script as it is imported by others beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import lambda_package

    return lambda_package


def sources(folder: Path) -> Path:
    """Some that compile in another order with another seed, and say where they are."""
    for name in ("first", "second"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("")
        (folder / name / "where.py").write_text(
            "def here(x):\n    return x in {'a', 'b', 'c', 'd'} and here.__code__.co_filename\n"
        )
    return folder


def digest(folder: Path) -> str:
    made = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            made.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return made.hexdigest()


def test_the_same_sources_give_the_same_bytes_in_any_place_at_any_time(
    lambda_package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = sources(tmp_path / "one"), sources(tmp_path / "elsewhere" / "other")
    for path in other.rglob("*.py"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    lambda_package.compile_all(one, sys.executable)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "kept"))
    lambda_package.compile_all(other, sys.executable)
    assert digest(one) == digest(other)
    compiled = [*one.rglob("*.pyc")]
    assert len(compiled) == 4
    for path in compiled:
        (flags,) = struct.unpack("<I", path.read_bytes()[4:8])
        assert flags & 1 and not flags & CHECK_SOURCE, "by a hash, which nobody compares"


def test_python_takes_them_without_a_look_at_the_sources(lambda_package: ModuleType, tmp_path: Path) -> None:
    """Unpacking gives sources times of its own; tracebacks say where they are in truth."""
    folder = sources(tmp_path / "package")
    lambda_package.compile_all(folder, sys.executable)
    where = folder / "first" / "where.py"
    where.write_text("def here(x):\n    return 'compiled anew'\n")
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, "-c", "import first.where as w; print(w.here('a'))"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(where)


def test_what_cannot_be_compiled_is_named(lambda_package: ModuleType, tmp_path: Path) -> None:
    (sources(tmp_path / "package") / "first" / "bad.py").write_text("def (:\n")
    with pytest.raises(Exception, match=r"cannot be compiled(.|\n)*bad\.py"):
        lambda_package.compile_all(tmp_path / "package", sys.executable)


def test_another_python_compiles_nothing_for_the_functions(
    lambda_package: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lambda_package.compiler("local") == sys.executable
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    monkeypatch.setattr(lambda_package, "PYTHON_OF_FUNCTIONS", here)
    assert lambda_package.compiler("lambda") == sys.executable
    monkeypatch.setattr(lambda_package, "PYTHON_OF_FUNCTIONS", "3.99")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lambda_package.compiler("lambda") is None
    # The name alone proves nothing.
    shutil.copy(sys.executable, tmp_path / "python3.99")
    assert lambda_package.compiler("lambda") is None
    (tmp_path / "python3.99").write_text("#!/bin/sh\necho 3.99 candidate\n")
    assert lambda_package.compiler("lambda") is None
    (tmp_path / "python3.99").write_text("#!/bin/sh\necho 3.99 final\n")
    assert lambda_package.compiler("lambda") == str(tmp_path / "python3.99")


def test_the_stack_runs_the_python_that_the_package_is_made_for(lambda_package: ModuleType) -> None:
    name = f"PYTHON_{lambda_package.PYTHON_OF_FUNCTIONS.replace('.', '_')}"
    assert f"Runtime.{name}" in (ROOT / "infra" / "cdk" / "functions.py").read_text()
