"""Starts real processes and reads their lines as they come, with a limit on every wait."""

import itertools
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = os.pathsep.join((str(ROOT / "sdk"), str(ROOT)))
"""For PYTHONPATH: the code under test, whichever clone the environment has installed."""

_FIRST_PORT, _PORTS_EACH, _PROCESSES = 10_000, 1_000, 20
_next_port = itertools.count(os.getpid() * 7)


class Running:
    """A process whose standard output and error are read line by line."""

    def __init__(self, command: Sequence[str | Path], folder: Path, variables: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self.process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._new.put(line.rstrip("\n"))
        self._new.put(None)

    def wait_for(self, text: str, seconds: float = 30) -> str:
        """The next line that contains the text; AssertionError with all lines when it does not come."""
        limit = time.monotonic() + seconds
        while True:
            try:
                line = self._new.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"{text!r} did not come; lines were:\n" + "\n".join(self.lines)
            self.lines.append(line)
            if text in line:
                return line

    def wait(self, seconds: float = 30) -> int:
        """The exit code; the lines that were left are in ``lines`` then."""
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        while (line := self._new.get()) is not None:
            self.lines.append(line)
        return code

    def stop(self, number: signal.Signals = signal.SIGTERM, seconds: float = 15) -> int:
        """Sends the signal and waits for the end."""
        self.process.send_signal(number)
        return self.wait(seconds)

    def close(self) -> None:
        """Kills it if it still runs, and lets go of its output."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        if self.process.stdout is not None:
            self.process.stdout.close()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@contextmanager
def running(command: Sequence[str | Path], folder: Path, **variables: str) -> Iterator[Running]:
    """A process that is killed at the latest when the block ends."""
    started = Running(command, folder, variables)
    try:
        yield started
    finally:
        started.close()


def free_port() -> int:
    """A TCP port of the loopback address that was free a moment ago.

    It lies below those that the system gives to others unasked, and each process of pytest-xdist (gw0, gw1, …) has a
    range of its own: nobody takes it until the server that gets its number has it.
    """
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PROCESSES
    for number in itertools.islice(_next_port, _PORTS_EACH):
        port = _FIRST_PORT + process * _PORTS_EACH + number % _PORTS_EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
