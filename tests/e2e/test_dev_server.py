"""``stepwell dev`` as a real process: starts, refuses, stops, and goes on where it stopped."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Running, free_port, running

STEPWELL = Path(sys.executable).with_name("stepwell")
WORKER = Path(__file__).with_name("echo_worker.py")
WAITED = "graceful shutdown exceeded"
"""What uvicorn says when something held up the stop and was cut off."""

START = "/api/v1/namespaces/default/workflow-types/Echo/workflows/w/start"
START_BODY = b'{"workflow_id":"w","workflow_type":"Echo","task_queue":"echo"}'


@contextmanager
def dev(folder: Path, port: int, *options: str) -> Iterator[Running]:
    with running([STEPWELL, "dev", "--port", str(port), *options], folder) as server:
        server.wait_for("is running")
        yield server


def stepwell(port: int, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [STEPWELL, *arguments, "--address", f"http://127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def ask(port: int, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", body, {"content-type": "application/json"} | headers
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def as_json(port: int, *arguments: str) -> Any:
    return json.loads(stepwell(port, *arguments, "--output", "json"))


def test_banner_pages_and_a_graceful_stop(tmp_path: Path) -> None:
    port = free_port()
    with dev(tmp_path, port) as server:
        assert server.wait_for("Address").split()[1] == f"http://127.0.0.1:{port}"
        assert str(tmp_path / "stepwell.db") in server.wait_for("Data")
        assert f"stepwell workflow list --address http://127.0.0.1:{port}" in server.wait_for("In a terminal")
        assert ask(port, "/healthz") == (200, "ok\n")
        assert "/api/v1/openapi.json" in ask(port, "/")[1]
        assert json.loads(ask(port, "/api/v1/openapi.json")[1])["openapi"] == "3.1.0"
        assert server.stop(signal.SIGTERM) == 0, server.text
        assert server.lines[-1] == "Stopped."
        assert "Traceback" not in server.text and WAITED not in server.text


def test_ctrl_c_ends_open_long_polls_and_exits_with_0(tmp_path: Path) -> None:
    port = free_port()
    with (
        dev(tmp_path, port) as server,
        running([sys.executable, WORKER, f"http://127.0.0.1:{port}"], tmp_path) as worker,
    ):
        worker.wait_for("ready")
        stepwell(port, "workflow", "start", "--type", "Echo", "-t", "echo", "-w", "waits", "-i", '"wait"')
        with running([STEPWELL, "workflow", "result", "waits", "--address", f"http://127.0.0.1:{port}"], tmp_path):
            time.sleep(1)
            assert server.stop(signal.SIGINT) == 0, server.text
        assert "Traceback" not in server.text and WAITED not in server.text


def test_restart_on_the_same_file_while_the_worker_runs_on(tmp_path: Path) -> None:
    """WC-35: a closed run, a timer, a signal and an activity in backoff outlive stops and kills of the server."""
    port = free_port()
    awaited = tmp_path / "awaited"
    with running([sys.executable, WORKER, f"http://127.0.0.1:{port}"], tmp_path) as worker:
        with dev(tmp_path, port) as server:
            worker.wait_for("ready")
            start = ("workflow", "start", "-t", "echo", "--type")
            stepwell(port, *start, "Echo", "-w", "closed", "-i", "1")
            assert as_json(port, "workflow", "result", "closed")["result"] == [1]
            stepwell(port, *start, "Sleeper", "-w", "sleeps", "-i", "6")
            stepwell(port, *start, "Echo", "-w", "waits", "-i", '"wait"')
            stepwell(port, *start, "Needy", "-w", "retries", "-i", json.dumps(str(awaited)), "-i", "0")
            time.sleep(1)
            assert server.stop() == 0, server.text
        for number in (signal.SIGKILL, signal.SIGTERM):
            time.sleep(0.5)
            with dev(tmp_path, port) as server:
                listed = as_json(port, "workflow", "list")
                assert sorted(info["execution"]["workflow_id"] for info in listed) == [
                    "closed",
                    "retries",
                    "sleeps",
                    "waits",
                ]
                stepwell(port, "workflow", "signal", "waits", "--name", "add", "-i", json.dumps(number.name))
                assert "WARNING" not in server.text
                assert "ERROR" not in server.text
                server.stop(number)
        with dev(tmp_path, port) as server:
            awaited.touch()
            stepwell(port, "workflow", "signal", "waits", "--name", "finish")
            assert as_json(port, "workflow", "result", "waits")["result"] == [["SIGKILL"], ["SIGTERM"]]
            assert as_json(port, "workflow", "result", "retries")["result"] == "found"
            assert as_json(port, "workflow", "result", "sleeps")["result"] == "awake"
            assert server.stop() == 0
            assert "Traceback" not in server.text


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    port = free_port()
    with dev(tmp_path, port), running([STEPWELL, "dev", "--port", str(port), "--db", "other.db"], tmp_path) as second:
        assert second.wait() == 3
        assert f"port {port} is taken" in second.text
        assert "--port" in second.text
        assert "Traceback" not in second.text


def test_a_database_that_another_process_owns(tmp_path: Path) -> None:
    with dev(tmp_path, free_port()) as first:
        second = [STEPWELL, "dev", "--port", str(free_port())]
        with running(second, tmp_path) as refused:
            assert refused.wait() == 3
            assert f"in use by process {first.process.pid}" in refused.text
            assert "Traceback" not in refused.text


def test_a_file_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("my notes, which must survive " * 50)
    with running([STEPWELL, "dev", "--port", str(free_port()), "--db", "notes.txt"], tmp_path) as refused:
        assert refused.wait() == 3
        assert "notes.txt" in refused.text
        assert "Traceback" not in refused.text
    assert (tmp_path / "notes.txt").read_text() == "my notes, which must survive " * 50


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "not a loopback address"),
        (("--host", "192.168.1.1"), "not a loopback address"),
        (("--host", "example.com"), "not a loopback address"),
        (("--port", "seven"), "is no port"),
        (("--port", "65536"), "is no port"),
        (("--log-level", "loud"), "--log-level"),
    ],
)
def test_options_that_are_wrong(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    with running([STEPWELL, "dev", *options], tmp_path) as refused:
        assert refused.wait() == 2
        assert said in refused.text
        assert "Traceback" not in refused.text
    assert os.listdir(tmp_path) == []


def test_memory_keeps_no_file_and_the_banner_says_so(tmp_path: Path) -> None:
    port = free_port()
    with dev(tmp_path, port, "--db", ":memory:") as server:
        assert "in memory only" in server.wait_for("Data")
        assert ask(port, START, START_BODY)[0] == 200
        assert server.stop() == 0
    assert os.listdir(tmp_path) == []


def test_any_free_port(tmp_path: Path) -> None:
    with dev(tmp_path, 0) as server:
        port = int(server.wait_for("Address").rsplit(":", 1)[1])
        assert ask(port, "/healthz") == (200, "ok\n")


def test_pages_of_other_sites_and_foreign_names_are_refused(tmp_path: Path) -> None:
    port = free_port()
    with dev(tmp_path, port, "--db", ":memory:"):
        for headers in (
            {"Host": "rebound.example"},
            {"Host": f"rebound.example:{port}"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ):
            status, body = ask(port, START, START_BODY, **headers)
            assert (status, json.loads(body)["code"]) == (403, "PERMISSION_DENIED")
        assert ask(port, START, START_BODY, **{"content-type": "text/plain"})[0] == 415
        assert ask(port, START, START_BODY, Origin=f"http://127.0.0.1:{port}")[0] == 200
