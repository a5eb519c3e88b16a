"""Processes that are killed without warning and started again, each in a group of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path


class Victim:
    """A process with a command that can be started any number of times; its output goes to one file."""

    def __init__(self, name: str, command: list[str], output: Path, variables: Mapping[str, str] = {}) -> None:
        self.name = name
        self.kills = 0
        self._command = command
        self._variables = variables
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **self._variables},
            )

    def ended_by_itself(self) -> int | None:
        """Its exit code when it ended though nobody killed it."""
        return self._process.poll() if self._process is not None else None

    def kill(self) -> None:
        """SIGKILL, to it and whatever it started; returns when it is gone."""
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._process = None
        self.kills += 1

    def tail(self, lines: int = 30) -> str:
        if not self._output.exists():
            return ""
        return "\n".join(self._output.read_text(errors="replace").splitlines()[-lines:])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def server(database: Path, port: int, output: Path) -> Victim:
    run = "import sys; from stepwell.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", run, "dev", "--db", str(database), "--port", str(port)]
    return Victim("server", command, output)


def container(number: int, port: int, cell: Mapping[str, str], output: Path) -> Victim:
    """``cell``: the environment that says where its tables are."""
    run = "import sys; from stepwell_server.entrypoints.server import main; sys.exit(main())"
    return Victim(f"container {number}", [sys.executable, "-c", run, "--aws", "--port", str(port)], output, cell)


def worker(number: int, url: str, output: Path) -> Victim:
    return Victim(f"worker {number}", [sys.executable, "-m", "tests.kill.worker", url], output)


def wait_until_serving(url: str, timeout: float) -> bool:
    """True once the server answers."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        try:
            request = urllib.request.Request(url + "/api/v1/system-info", data=b"{}", method="POST")
            request.add_header("content-type", "application/json")
            with urllib.request.urlopen(request, timeout=1):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    return False
