"""Every way to reach the API runs through the same suite: add its opener to ``TRANSPORTS``."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from stepwell.transport import Transport
from stepwell.transport.http import HttpTransport

from stepwell_server.entrypoints.embedded import open_transport
from tests.support.api_server import served_api

from .client import ApiClient


@asynccontextmanager
async def _in_process() -> AsyncIterator[Transport]:
    transport = await open_transport(":memory:")
    yield transport
    await transport.close()


@asynccontextmanager
async def _over_http() -> AsyncIterator[Transport]:
    async with served_api() as served:
        transport = HttpTransport(served.address, total_wait=0.2)
        yield transport
        await transport.close()


TRANSPORTS: dict[str, Callable[[], AbstractAsyncContextManager[Transport]]] = {
    "in-process": _in_process,
    "asgi": _over_http,
}


@pytest.fixture(params=list(TRANSPORTS))
async def api(request: pytest.FixtureRequest) -> AsyncIterator[ApiClient]:
    async with TRANSPORTS[request.param]() as transport:
        yield ApiClient(transport)
