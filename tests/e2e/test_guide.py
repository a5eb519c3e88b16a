"""The guide as people follow it: its files are written, type-checked and run, its commands typed, its snippets used."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import SOURCES, free_port, running

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
NAMED = {name.group(1): block for block in BLOCKS if (name := re.match(r"# (\w+\.py)\n", block))}
COMMANDS = re.findall(r"^    (stepwell .+)$", GUIDE, re.MULTILINE)
WITH_ADDRESS = [command for command in COMMANDS if "onboarding.db" in command]
OF_SERVER = [command for command in COMMANDS if "signup-bob" in command]
BACKGROUND = """\
import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from stepwell import activity, workflow
from stepwell.client import (
    BatchCancel,
    Client,
    NamespaceInfo,
    NamespaceLimits,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleHandle,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from stepwell.common import Priority, ResetReapplyExcludeType, ResetType, RetryPolicy
from stepwell.exceptions import ActivityError, ApplicationError, ChildWorkflowError
from stepwell.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)


@activity.defn
def import_forever() -> str:
    for row in range(100):
        activity.heartbeat(row)
        time.sleep(0.05)
    return "never"


@activity.defn
async def charge(order: int) -> str:
    return f"order {order} is paid"


MAILBOX: list[bytes] = []


async def send_to_manager(question: str, token: bytes) -> None:
    MAILBOX.append(token)
"""
"""What the guide's snippets take for granted."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with all code of the guide; the waits for people to watch are shortened."""
    made = tmp_path_factory.mktemp("guide")
    for name, block in NAMED.items():
        (made / name).write_text(block.replace("asyncio.sleep(5)", "asyncio.sleep(2)"), encoding="utf-8")
    snippets = [block for block in BLOCKS if block not in NAMED.values()]
    (made / "snippets.py").write_text("\n\n".join([BACKGROUND, *snippets]), encoding="utf-8")
    (made / "histories").mkdir()
    return made


def run(command: list[str | Path] | str, folder: Path, **variables: str) -> str:
    """What the command printed; it must succeed. A line of the guide goes to the shell as it stands there."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    sources = os.pathsep.join([str(folder), SOURCES])
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env={**os.environ, "PATH": path, "PYTHONPATH": sources, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_guide_has_what_is_tested_here() -> None:
    files = {"onboarding.py", "run.py", "worker.py", "function.py", "test_onboarding.py", "test_replay.py"}
    assert set(NAMED) == files
    assert len(BLOCKS) > 15 and "asyncio.sleep(5)" in NAMED["run.py"]
    assert len(WITH_ADDRESS) == 3 and len(OF_SERVER) == 5


def test_its_code_passes_mypy(folder: Path) -> None:
    run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "cache", folder], folder)


def test_the_first_ten_minutes_and_its_tests(folder: Path) -> None:
    said = run([sys.executable, "run.py"], folder)
    assert "mail 'welcome' to the account of ann@example.com" in said
    assert said.endswith("status: waiting\nresult: account of ann@example.com, confirmed by ann\n")
    listed, shown, _ = [run(command, folder) for command in WITH_ADDRESS]
    assert "signup-ann" in listed and "WorkflowExecutionCompleted" in shown
    recorded = json.loads((folder / "histories" / "signup-ann.json").read_text())
    assert recorded[-1]["attributes"]["type"] == "WorkflowExecutionCompleted"
    assert "5 passed" in run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"], folder)


def test_the_same_as_three_processes(folder: Path, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    for name in ("onboarding.py", "worker.py"):
        text = (folder / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:7400", address), encoding="utf-8")
    stepwell = shutil.which("stepwell", path=str(Path(sys.executable).parent))
    assert stepwell is not None
    serve = [stepwell, "dev", "--db", "server.db", "--port", address.rpartition(":")[2]]
    with (
        running(serve, tmp_path, PYTHONPATH=SOURCES) as server,
        running([sys.executable, "worker.py"], tmp_path, PYTHONPATH=SOURCES) as worker,
    ):
        server.wait_for("is running")
        said = [run(command, tmp_path, STEPWELL_ADDRESS=address) for command in OF_SERVER]
        assert "confirmed by bob" in said[-1]
        assert worker.stop() == 0, worker.text
        assert server.stop() == 0, server.text


def test_its_snippets_run(folder: Path) -> None:
    run([sys.executable, "-W", "error", Path(__file__).with_name("guide_snippets.py")], folder)
