"""What is said at the edge of HTTP: content types, sizes, bad JSON, wrong paths, hang-ups and draining."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from stepwell.api.limits import MAX_REQUEST_BYTES

from stepwell_server.common.metrics import Gathered
from tests.support.api_server import ServedApi, served_api

JSON = {"content-type": "application/json"}
START = "/api/v1/namespaces/default/workflow-types/Order/workflows/order-1/start"
BODY = '{"workflow_id":"order-1","workflow_type":"Order","task_queue":"q"}'
POLL = "/api/v1/namespaces/default/task-queues/q/poll-workflow-task"
POLL_BODY = '{"task_queue":"q","worker":{"identity":"w"},"timeout":"PT15S"}'


@pytest.fixture
async def served() -> AsyncIterator[ServedApi]:
    async with served_api() as served:
        yield served


@pytest.fixture
async def http(served: ServedApi) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(served.address) as session:
        yield session


async def _post(http: aiohttp.ClientSession, path: str, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    async with http.post(path, data=body, headers=JSON | headers) as response:
        assert response.headers["content-type"] == "application/json"
        return response.status, json.loads(await response.read())


async def test_a_call_without_our_sdk(http: aiohttp.ClientSession) -> None:
    status, answer = await _post(http, START, BODY)
    assert (status, set(answer)) == (200, {"run_id", "first_execution_run_id"})


async def test_a_call_with_charset(http: aiohttp.ClientSession) -> None:
    status, _ = await _post(http, START, BODY, **{"content-type": "Application/JSON; charset=utf-8"})
    assert status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
async def test_other_content_types_are_refused(http: aiohttp.ClientSession, content_type: str) -> None:
    """A page of another site can send only these without asking."""
    status, answer = await _post(http, START, BODY, **{"content-type": content_type})
    assert (status, answer["code"]) == (415, "INVALID_ARGUMENT")
    assert "application/json" in answer["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1:1"}, 403),
    ],
)
async def test_foreign_hosts_and_origins_are_refused(
    http: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    assert (await _post(http, START, BODY, **headers))[0] == status
    for page in ("/", "/healthz", "/api/v1/openapi.json"):
        async with http.get(page, headers=headers) as response:
            assert response.status == status


async def test_our_own_origin_passes(http: aiohttp.ClientSession, served: ServedApi) -> None:
    assert (await _post(http, START, BODY, origin=served.address))[0] == 200


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", "no StartWorkflow request"),
        ('{"workflow_id":1}', "workflow_id"),
        ('{"workflow_type":"Order","task_queue":"q"}', "workflow_id"),
        (BODY.replace("}", ',"workflow_run_timeout":"soon"}'), "workflow_run_timeout"),
        (BODY.replace("}", ',"workflow_id_reuse_policy":"MAYBE"}'), "workflow_id_reuse_policy"),
        (BODY.replace("order-1", "order-2"), "'order-1' in the path and 'order-2' in the body"),
        ('{"x":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
async def test_bodies_that_do_not_fit(http: aiohttp.ClientSession, body: Any, said: str) -> None:
    status, answer = await _post(http, START, body)
    assert (status, answer["code"]) == (400, "INVALID_ARGUMENT")
    assert said in answer["message"]


async def test_unknown_fields_are_ignored(http: aiohttp.ClientSession) -> None:
    assert (await _post(http, START, BODY.replace("}", ',"new_field":1}')))[0] == 200


async def test_bodies_above_the_limit_are_refused_announced_or_not(served: ServedApi) -> None:
    for length in (f"content-length: {MAX_REQUEST_BYTES + 1}", "transfer-encoding: chunked"):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST {START} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
        writer.write(f"{head}{length}\r\n\r\n".encode())
        if "chunked" in length:
            for _ in range(MAX_REQUEST_BYTES // 2**16 + 1):
                writer.write(b"10000\r\n" + b" " * 2**16 + b"\r\n")
                await writer.drain()
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert answer.startswith(b"HTTP/1.1 413")
        assert b"connection: close" in answer
        writer.close()


async def test_bodies_at_the_limit_pass(http: aiohttp.ClientSession) -> None:
    padded = BODY.encode() + b" " * (MAX_REQUEST_BYTES - len(BODY))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(padded), 2**20):
            yield padded[start : start + 2**20]

    assert (await _post(http, START, pieces()))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/api/v1/nothing", 404),
        ("POST", "/api/v1/namespaces/default/workflows/a/b/signal", 404),
        ("GET", START, 404),
        ("GET", "/nothing", 404),
        ("POST", "/", 405),
        ("POST", "/healthz", 405),
    ],
)
async def test_what_is_not_served_says_so_in_json(
    http: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    async with http.request(method, path, data=BODY if method == "POST" else None, headers=JSON) as response:
        assert response.status == status
        assert (await response.json())["code"] == "NOT_FOUND"


async def test_pages(http: aiohttp.ClientSession, served: ServedApi) -> None:
    async with http.get("/") as response:
        page = await response.text()
    assert "/api/v1/openapi.json" in page
    assert served.address in page
    async with http.get("/healthz") as response:
        assert (response.status, await response.text()) == (200, "ok\n")
    async with http.get("/api/v1/openapi.json") as response:
        assert (await response.json())["openapi"] == "3.1.0"


async def test_a_poller_that_hangs_up_is_forgotten_at_once(served: ServedApi, http: aiohttp.ClientSession) -> None:
    _reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    head = f"POST {POLL} HTTP/1.1\r\nhost: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(POLL_BODY)}\r\n\r\n{POLL_BODY}".encode())
    await asyncio.sleep(0.1)
    writer.close()
    await asyncio.sleep(0.1)
    assert (await _post(http, START, BODY))[0] == 200
    async with asyncio.timeout(10):
        _, answer = await _post(http, POLL, POLL_BODY)
    assert answer["tasks"][0]["execution"]["workflow_id"] == "order-1"


async def test_draining_ends_held_polls_and_refuses_new_ones(served: ServedApi, http: aiohttp.ClientSession) -> None:
    held = asyncio.create_task(_post(http, POLL, POLL_BODY))
    idle = asyncio.create_task(_post(http, POLL, POLL_BODY))
    await asyncio.sleep(0.1)
    served.server.stop()
    async with asyncio.timeout(10):
        for status, answer in (await held, await idle):
            assert (status, answer["code"], answer["retryable"]) == (503, "UNAVAILABLE", True)


async def test_calls_are_counted_by_operation_and_code() -> None:
    metrics = Gathered()
    async with served_api(metrics=metrics) as served, aiohttp.ClientSession(served.address) as http:
        await _post(http, START, BODY)
        await _post(http, START, "no json")
        await _post(http, "/api/v1/no-such-path", "{}")
    assert {tuple(series.dimensions.values()): series.values for series in metrics.take()} == {
        ("StartWorkflow", "OK"): (1.0,),
        ("StartWorkflow", "INVALID_ARGUMENT"): (1.0,),
    }
