"""The command line in this process, against a real server and worker."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from stepwell.cli import main

from tests.support.processes import Running, free_port, running

STEPWELL = Path(sys.executable).with_name("stepwell")
WORKER = Path(__file__).parents[1] / "e2e" / "echo_worker.py"
_GROUPS = ("activity", "batch", "export", "schedule", "task-queue", "worker", "system", "namespace", "search-attribute")


@dataclass(frozen=True)
class Cli:
    """Runs commands in this process. ``address`` is the server's."""

    address: str
    capture: pytest.CaptureFixture[bytes]
    errors: list[str] = field(default_factory=list)

    @property
    def said(self) -> str:
        """What the last command said on standard error."""
        return self.errors[-1]

    def __call__(self, *arguments: str, code: int = 0, address: str = "") -> str:
        """Standard output of ``stepwell workflow …``, or of another group; standard error is in ``said``."""
        ended = exit_code(_at(address or self.address, arguments))
        captured = self.capture.readouterr()
        errors = captured.err.decode()
        assert ended == code, captured.out.decode() + errors
        self.errors.append(errors)
        return captured.out.decode()

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--output", "json", code=code))

    def start(self, workflow_id: str, workflow_type: str, *inputs: str, **more: Any) -> str:
        values = [part for value in inputs for part in ("--input", value)]
        return self("start", "--type", workflow_type, "-t", "echo", "-w", workflow_id, *values, **more)


def exit_code(arguments: list[str]) -> int | str | None:
    try:
        main(arguments)
    except SystemExit as ended:
        return ended.code
    return 0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("cli")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running([STEPWELL, "dev", "--port", str(port)], folder) as engine:
        engine.wait_for("is running")
        with running([sys.executable, WORKER, address], folder) as worker:
            worker.wait_for("ready")
            yield address, folder / "stepwell.db"
            _quiet(engine)


def _quiet(engine: Running) -> None:
    assert engine.stop() == 0, engine.text
    assert "Traceback" not in engine.text


@pytest.fixture
def cli(server: tuple[str, Path], capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    return Cli(server[0], capfdbinary)


def _at(address: str, arguments: tuple[str, ...]) -> list[str]:
    """``workflow`` goes without saying."""
    if arguments[0] in _GROUPS:
        return [*arguments, "--address", address]
    return ["workflow", arguments[0], "--address", address, *arguments[1:]]
