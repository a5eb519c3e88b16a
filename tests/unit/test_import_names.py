"""The server's one import name is ``stepwell_server``: two names for one file would be two classes for one record."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WRONG = re.compile(r"^\s*(?:from|import)\s+services\b", re.MULTILINE)
IMPORT_ALL = """
import importlib, pkgutil, sys
import stepwell, stepwell_server
for package in (stepwell, stepwell_server):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "services"))
"""


def test_every_module_can_be_imported_and_none_loads_services() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", IMPORT_ALL], capture_output=True, text=True, cwd=ROOT)

    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_no_source_names_services() -> None:
    folders = ("services", "sdk", "tests", "examples", "benchmarks", "scripts")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]

    assert [str(path) for path in sources if WRONG.search(path.read_text(encoding="utf-8"))] == []


def test_folders_that_must_not_be_packages_are_none() -> None:
    folders = ("tests", "infra", "localstack")
    assert [str(p) for folder in folders for p in (ROOT / folder).rglob("__init__.py")] == []
