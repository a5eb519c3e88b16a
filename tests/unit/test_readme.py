"""What README and CONTRIBUTING tell people to type is there, and CI runs the very test command of the README."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = re.compile(r"python3 (scripts/\w+\.py)")
LINK = re.compile(r"\]\(([^)#:\s]+)\)")
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("changes/*.md")]
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_scripts_of_a_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [script for script in SCRIPT.findall(text) if not (ROOT / script).is_file()]
    missing += [link for link in LINK.findall(text) if not (page.parent / link).exists()]

    assert missing == []


def test_first_screen_of_the_readme_has_the_two_commands() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:30]
    commands = [line.split("#")[0].strip() for line in first_screen if line.startswith("    python3 ")]

    assert commands == ["python3 scripts/demo.py", "python3 scripts/test.py"]


def test_ci_is_executable_and_runs_the_readmes_test_command_last() -> None:
    script = ROOT / ".ci" / "run"
    commands = SCRIPT.findall(script.read_text(encoding="utf-8"))

    assert os.access(script, os.X_OK)
    assert set(commands) == {"scripts/check.py", "scripts/infra.py", "scripts/temporal.py", "scripts/test.py"}
    assert commands[-1] == "scripts/test.py"


def test_scripts_parse_on_old_pythons_far_enough_to_say_so() -> None:
    """An older Python must reach the message about its version, so no newer syntax in what it loads first."""
    import ast

    for name in ("environment.py", "demo.py", "test.py"):
        ast.parse((ROOT / "scripts" / name).read_text(encoding="utf-8"), feature_version=(3, 7))


def test_make_lists_only_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    scripts = re.findall(r"\$\(PYTHON\) (scripts/\w+\.py)", makefile)

    assert scripts and [script for script in scripts if not (ROOT / script).is_file()] == []


def test_demo_explains_its_options() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "order_fulfilment.demo", "--help"], cwd=ROOT / "examples", capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert "--kill" in done.stdout
