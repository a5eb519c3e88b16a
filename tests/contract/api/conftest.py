"""Every way to reach the API runs through the same suite: add its opener to ``TRANSPORTS``."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from stepwell.api.codec import decode_json
from stepwell.api.errors import ErrorBody, error_from
from stepwell.api.operations import Operation
from stepwell.transport import Transport
from stepwell.transport.http import HttpTransport

from stepwell_server.entrypoints.embedded import open_transport
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.lambda_handler import api_handler
from stepwell_server.history.engine import Engine
from tests.support.api_server import served_api
from tests.support.http_events import http_event

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


class _LambdaTransport:
    """Each call is an event of an HTTP API for the function's handler, in a thread as an instance of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def call(self, operation: Operation[Any, Any], request: Any) -> Any:
        loop = asyncio.get_running_loop()

        def run(work: Coroutine[Any, Any, Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        event = http_event(operation, request)
        answer = await asyncio.to_thread(lambda: api_handler(self._engine, run)(event, None))
        assert answer["headers"]["Content-Type"] == "application/json" and not answer["isBase64Encoded"]
        if answer["statusCode"] != 200:
            raise error_from(decode_json(answer["body"].encode(), ErrorBody))
        return decode_json(answer["body"].encode(), operation.response_type)

    async def close(self) -> None:
        return None


@asynccontextmanager
async def _through_lambda() -> AsyncIterator[Transport]:
    hosted = await HostedEngine.start(":memory:")
    yield _LambdaTransport(hosted.engine)
    await hosted.stop()


TRANSPORTS: dict[str, Callable[[], AbstractAsyncContextManager[Transport]]] = {
    "in-process": _in_process,
    "asgi": _over_http,
    "lambda": _through_lambda,
}


@pytest.fixture(params=[*TRANSPORTS, "container"])
def transport_name(request: pytest.FixtureRequest) -> str:
    """Sync fixtures are asked for before the loop runs."""
    if request.param == "container":
        request.getfixturevalue("cell")
    return str(request.param)


@pytest.fixture
async def api(request: pytest.FixtureRequest, transport_name: str) -> AsyncIterator[ApiClient]:
    if transport_name == "container":
        async with _in_a_container(request.getfixturevalue("cell")) as transport:
            yield ApiClient(transport)
        return
    async with TRANSPORTS[transport_name]() as transport:
        yield ApiClient(transport)


@asynccontextmanager
async def _in_a_container(cell: Any) -> AsyncIterator[Transport]:
    """The whole of it on the emulated AWS."""
    from tests.support.aws.containers import served_container

    async with served_container(cell) as served:
        transport = HttpTransport(served.address, total_wait=5.0)
        yield transport
        await transport.close()


@pytest.fixture(params=[name for name in TRANSPORTS if name != "lambda"])
async def held_api(request: pytest.FixtureRequest) -> AsyncIterator[ApiClient]:
    """Where a caller can hang up: functions hold no calls."""
    async with TRANSPORTS[request.param]() as transport:
        yield ApiClient(transport)
