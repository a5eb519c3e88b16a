"""Containers of a cell, in this process, each with its API on a port of its own."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aioboto3

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.common.clock import Clock
from stepwell_server.entrypoints.aws_server import AwsContainer
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.guard import LoopbackGuard
from tests.support.aws.cells import Cell


@dataclass(frozen=True)
class Served:
    container: AwsContainer
    address: str


@asynccontextmanager
async def served_container(
    cell: Cell, owner: str = "one", *, endpoint_url: str = "", clock: Clock | None = None
) -> AsyncIterator[Served]:
    """Finds the emulator without the variables of a test's environment, since it may outlive that."""
    there = cell.environment
    session = aioboto3.Session(
        there["AWS_ACCESS_KEY_ID"], there["AWS_SECRET_ACCESS_KEY"], there.get("AWS_SESSION_TOKEN"), cell.region
    )
    clients = AwsClients(endpoint_url=endpoint_url or there["AWS_ENDPOINT_URL"], session=session)
    settings = AwsSettings(cell.names.cell, cell.bucket)
    container = await AwsContainer.start(settings, owner=owner, clients=clients, clock=clock)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    application = Application(
        container.engine, guard=LoopbackGuard(port), database=container.parts.backend.database, version="0"
    )
    server = HttpServer(application)
    serving = asyncio.create_task(server.serve(listener))
    try:
        yield Served(container, f"http://127.0.0.1:{port}")
    finally:
        server.stop()
        await serving
        await container.stop()
