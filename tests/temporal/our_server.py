"""A gateway on an embedded engine in memory: what ``real_server`` is for Temporal's server.

python -m tests.temporal.our_server --port 7233
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator

from stepwell.api import limits

from stepwell_server.adapters.system import SystemIds
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.calls import Calls
from stepwell_server.temporal_gateway.server import GatewayServer

_SUGGEST_CONTINUE_EVENTS = 50
"""Of the server that the SDK's suite starts; ``real_server.SETTINGS`` has it too."""


@contextlib.asynccontextmanager
async def running(port: int = 0) -> AsyncIterator[str]:
    """Its address, in this process."""
    hosted = await HostedEngine.start(":memory:")
    server = GatewayServer(Calls(hosted.engine, hosted.limiter), "1.0", SystemIds())
    try:
        yield f"127.0.0.1:{await server.start('127.0.0.1', port)}"
    finally:
        await server.stop(0)
        await hosted.stop()


async def _serve(port: int) -> None:
    async with running(port) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """This process becomes the server, with the limits that the suites ask for, until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free; it is printed")
    limits.SUGGEST_CONTINUE_EVENTS = _SUGGEST_CONTINUE_EVENTS
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
