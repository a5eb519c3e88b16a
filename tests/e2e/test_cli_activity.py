"""``stepwell activity`` against a real server and worker: ends by hand, pauses, resets, options (AC-21, AC-25)."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import free_port, running

STEPWELL = Path(sys.executable).with_name("stepwell")
WORKER = Path(__file__).with_name("echo_worker.py")


class Shell:
    def __init__(self, address: str) -> None:
        self.address = address

    def __call__(self, *arguments: str, code: int = 0, stdin: str = "") -> str:
        command = [STEPWELL, *arguments[:2], "--address", self.address, *arguments[2:]]
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=60, check=False, encoding="utf-8"
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stderr

    def needy(self, workflow_id: str, missing: Path) -> None:
        """A workflow whose activity fails every 200 ms until the file is there."""
        inputs = ("--input", json.dumps(str(missing)), "--input", "1000")
        self("workflow", "start", "--type", "Needy", "-t", "echo", "-w", workflow_id, *inputs)

    def pending(self, workflow_id: str) -> dict[str, Any]:
        return json.loads(self("workflow", "describe", workflow_id, "-o", "json"))["pending_activities"][0]

    def until(self, workflow_id: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        ends = time.monotonic() + 60
        while not holds(found := self.pending(workflow_id)):
            assert time.monotonic() < ends, found
        return found

    def result(self, workflow_id: str) -> Any:
        return json.loads(self("workflow", "result", workflow_id, "-o", "json"))["result"]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp("activity")
    port = free_port()
    with running([STEPWELL, "dev", "--port", str(port), "--db", ":memory:"], folder) as engine:
        engine.wait_for("is running")
        address = f"http://127.0.0.1:{port}"
        with running([sys.executable, WORKER, address], folder) as worker:
            worker.wait_for("ready")
            yield Shell(address)


def test_pause_options_reset_and_unpause(shell: Shell, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    shell.needy("steered", missing)
    named = ("-w", "steered", "-a", shell.pending("steered")["activity_id"])
    shell.until("steered", lambda found: found["attempt"] > 1)
    assert shell("activity", "pause", *named, "--reason", "file is late") == "Paused activity 1 of steered.\n"
    paused = shell.until("steered", lambda found: found["state"] == "PAUSED")
    assert paused["pause_reason"] == "file is late" and paused["paused_by"]
    changed = shell("activity", "update-options", *named, "--retry-initial-interval", "1h", "-o", "json")
    assert json.loads(changed) == {"workflow_id": "steered", "activity_ids": ["1"]}
    assert "file is late" in shell("workflow", "describe", "steered")
    shell("activity", "reset", *named, "--keep-paused")
    assert shell.pending("steered")["attempt"] == 1
    shell("activity", "reset", *named, "--restore-original-options", "--jitter", "10ms")
    shell.until("steered", lambda found: found["attempt"] > 1 and not found.get("paused_by"))
    shell("activity", "pause", "steered", "--type", "needs_file")
    missing.touch()
    shell("activity", "unpause", "-w", "steered", "--type", "needs_file", "--reset-attempts")
    assert shell.result("steered") == "found"


def test_fail_and_complete_by_hand(shell: Shell, tmp_path: Path) -> None:
    shell.needy("failed", tmp_path / "none")
    shell("activity", "update-options", "-w", "failed", "-a", "1", "--retry-initial-interval", "1h")
    refused = shell("activity", "fail", "failed", "-a", "2", "--reason", "no", code=3)
    assert "not pending" in refused
    shell("activity", "complete", "-w", "failed", "-a", "1", "--input", '"by hand"')
    assert shell.result("failed") == "by hand"
    assert "is closed" in shell("activity", "complete", "-w", "failed", "-a", "1", code=3)


def test_mistakes_on_the_command_line(shell: Shell) -> None:
    for command in ("pause", "unpause", "reset", "update-options"):
        assert "--activity-id" in shell("activity", command, "-w", "any", code=2)
        assert "--type" in shell("activity", command, "-w", "any", "-a", "1", "--type", "t", code=2)
    assert "one of a workflow is named with its workflow_id" in shell("activity", "complete", "-a", "1", code=3)
    assert "use one" in shell("activity", "complete", "this", "-w", "that", "-a", "1", code=2)
    assert "one result" in shell("activity", "complete", "-w", "w", "-a", "1", "-i", "1", "-i", "2", code=2)
    assert "nothing to change" in shell("activity", "update-options", "-w", "any", "-a", "1", code=3)


def test_activities_without_a_workflow(shell: Shell) -> None:
    options = ("-t", "nobody", "--start-to-close-timeout", "1m")
    for name in ("one", "two", "three"):
        started = shell("activity", "start", "--type", "charge", "-a", name, "--input", "17", *options)
        assert started.startswith(f"Started {name} (run ")
    refused = shell("activity", "start", "--type", "charge", "-a", "one", *options, code=3)
    assert "activity 'one' is running as run" in refused
    assert shell("activity", "count", "-q", "ActivityType = 'charge'") == "3\n"
    assert shell("activity", "pause", "-a", "one", "--reason", "wait") == "Paused activity one.\n"
    shown = shell("activity", "describe", "one")
    assert "PAUSED" in shown and "wait" in shown and "nobody" in shown
    assert shell("activity", "complete", "-a", "one", "--input", '"paid"') == "Completed activity one.\n"
    assert shell("activity", "result", "one") == '"paid"\n'
    assert shell("activity", "cancel", "two", "--reason", "no more") == "Asked to stop: two.\n"
    assert "the activity was cancelled" in shell("activity", "result", "two", code=1)
    assert shell("activity", "terminate", "three", "--reason", "enough") == "Terminated: three.\n"
    listed = json.loads(shell("activity", "list", "-o", "json"))
    assert {each["activity_id"]: each["status"] for each in listed} == {
        "one": "COMPLETED",
        "two": "CANCELED",
        "three": "TERMINATED",
    }
    assert shell("activity", "delete", "three") == "Deleted: three.\n"
    assert "there is no stand-alone activity 'nothing'" in shell("activity", "describe", "nothing", code=3)
