"""What a clumsy caller gets wrong is refused at the call, in the same words in this process and over HTTP, and leaves
nothing behind.

Shown elsewhere, and not repeated here:

- every limit of every operation, and that exactly the limit passes: ``contract/api/test_refusals.py``;
- argument counts and types of workflows, signals and queries, arguments that cannot be encoded, sizes, id policies:
  ``unit/sdk/client/test_client.py``;
- which values cannot be encoded, and why: ``unit/sdk/converter/test_json_values.py``;
- timeouts of activities (negative, both missing): ``test_refused_options`` in ``unit/sdk/workflow/test_activities.py``
  and, by the engine, ``unit/history/test_timeouts.py``;
- bodies that are no JSON, content types, sizes, Host and Origin: ``unit/frontend/test_asgi.py``, ``test_guard.py``;
- what is typed on the command line: ``e2e/test_cli.py``; files that are not ours: ``test_storage.py`` beside this one.
"""

import asyncio
import base64
import json
import math
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from stepwell import activity, workflow
from stepwell.client import Client, RPCError, WorkflowHandle
from stepwell.common import RetryPolicy, WorkflowIDReusePolicy
from stepwell.converter import ArgumentError
from stepwell.exceptions import WorkflowAlreadyStartedError
from stepwell.worker import Worker

from stepwell_server.frontend import asgi
from tests.support.api_server import ServedApi, served_api
from tests.support.processes import free_port, running

JSON = {"content-type": "application/json"}
NAMESPACE = "/api/v1/namespaces/default"
STEPWELL = Path(sys.executable).with_name("stepwell")


@workflow.defn
class Order:
    @workflow.run
    async def run(self, item: str, amount: int = 1) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def ship(self, parcels: int) -> None: ...

    @workflow.query
    def status(self, long: bool) -> str:
        return "open"


@activity.defn
async def act() -> None: ...


@asynccontextmanager
async def _in_process() -> AsyncIterator[Client]:
    async with await Client.connect("sqlite://:memory:") as client:
        yield client


@asynccontextmanager
async def _over_http() -> AsyncIterator[Client]:
    async with served_api() as served, await Client.connect(served.address) as client:
        yield client


@pytest.fixture(params=[_in_process, _over_http], ids=["in-process", "http"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with request.param() as client:
        yield client


def start(client: Client, *args: Any, **options: Any) -> Awaitable[WorkflowHandle[Any]]:
    return client.start_workflow("Order", *args, **({"id": "w", "task_queue": "q"} | options))


# What is given, the field that the refusal names, and what it says about it.
OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"id": None}, "workflow_id", "Expected `str`, got `null`"),
    ({"id": 5}, "workflow_id", "Expected `str`, got `int`"),
    ({"id": b"w"}, "workflow_id", "got `bytes`"),
    ({"task_queue": 5}, "task_queue", "Expected `str`, got `int`"),
    ({"run_timeout": 5}, "workflow_run_timeout", "got `int`; durations are timedeltas"),
    ({"run_timeout": "5s"}, "workflow_run_timeout", "durations are timedeltas"),
    ({"run_timeout": timedelta(seconds=-1)}, "workflow_run_timeout", "is -1 s; it must be above zero"),
    ({"execution_timeout": timedelta.max}, "workflow_execution_timeout", "above the limit of 3650 days; use a shorter"),
    ({"task_timeout": timedelta(days=1)}, "workflow_task_timeout", "limit of 120 s; use a shorter one"),
    ({"id_reuse_policy": "MAYBE"}, "workflow_id_reuse_policy", "'MAYBE'; use a member"),
    ({"id_conflict_policy": 1}, "workflow_id_conflict_policy", "got `int`"),
    ({"memo": {"": 2}}, "memo name", "is empty"),
    ({"memo": {"m": "x" * 2**21}}, "memo", "limit is 2097152; keep it short"),
]


async def test_options_of_a_start(client: Client) -> None:
    for options, field, said in OPTIONS:
        with pytest.raises(RPCError, match=said) as refused:
            await start(client, **options)
        assert refused.value.code in ("INVALID_ARGUMENT", "PAYLOAD_TOO_LARGE"), options
        assert refused.value.details["field"] == field
        assert not refused.value.retryable, "says that trying again does not help"
    with pytest.raises(RPCError, match=r"lone surrogate.*remove it"):
        await start(client, id="\ud800")
    with pytest.raises(TypeError, match="memo maps names to values"):
        await start(client, memo=[1])
    with pytest.raises(TypeError, match="memo has the name 1, which is no text"):
        await start(client, memo={1: 2})
    with pytest.raises(ValueError, match="start_signal_args are given without a start_signal; name the signal"):
        await start(client, start_signal_args=["x"])
    assert [run.id async for run in client.list_workflows()] == []
    policy: Any = "REJECT_DUPLICATE"  # the name of a member is as good as the member
    await start(client, id_reuse_policy=policy)
    assert WorkflowIDReusePolicy.REJECT_DUPLICATE == policy


async def test_calls_on_a_run(client: Client) -> None:
    handle = await client.start_workflow(Order.run, "book", id="w", task_queue="q")
    before = await handle.fetch_history()
    unencodable = {"nan": math.nan, "object": object(), "lone": "\ud800", "deep": [[]]}
    unencodable["deep"].append(unencodable["deep"])  # type: ignore[union-attr]
    for value in unencodable.values():
        with pytest.raises(ArgumentError, match=r"signal 'any', argument '\*args\[0\]'"):
            await handle.signal("any", value)
    calls: list[tuple[Callable[[], Awaitable[Any]], type[Exception], str]] = [
        (lambda: handle.signal(Order.ship, "many"), ArgumentError, "argument 'parcels'.*str does not fit int"),
        (lambda: handle.signal(Order.ship), ArgumentError, r"takes 1 argument \(parcels\), but 0 were given"),
        (lambda: handle.query(Order.status, 1), ArgumentError, "argument 'long'"),
        (lambda: handle.signal(""), RPCError, "signal_name is empty"),
        (lambda: handle.signal("s" * 1_001), RPCError, "signal_name has 1001 bytes.*limit of 1000; use a shorter one"),
        (lambda: handle.signal("a\x1b"), RPCError, "signal_name contains the control character.*remove it"),
        (lambda: handle.signal("s", idempotency_key=""), ValueError, "idempotency_key is empty.*leave it out"),
        (lambda: handle.signal("s", idempotency_key="k" * 1_001), RPCError, "idempotency_key has 1001 bytes"),
        (lambda: handle.signal("s", "x" * 2**21), RPCError, "have 2097154 bytes|limit is 2097152; store the data"),
        (lambda: handle.query("q", rpc_timeout=timedelta(seconds=-1)), RPCError, "timeout is -1 s; it must not be"),
        (lambda: handle.terminate(reason=5), RPCError, "reason: Expected `str`, got `int`"),  # type: ignore[arg-type]
        (lambda: handle.reset(build_id=""), ValueError, "build_id is empty.*leave it out"),
        (lambda: handle.reset(event_id=0), ValueError, "event_id is 0; events are numbered from 1 on"),
        (lambda: client.get_workflow_handle(None).result(), RPCError, "workflow_id: Expected"),  # type: ignore[arg-type]
        (lambda: anext(client.list_workflows(status="x")), ValueError, "status is 'x', which is none; use"),  # type: ignore[call-overload, arg-type]
        (lambda: anext(client.list_workflows(page_size=-1)), RPCError, "page_size is -1; it must be at least 0"),  # type: ignore[call-overload]
    ]
    for call, error, said in calls:
        with pytest.raises(error, match=said):
            await call()
    assert await handle.fetch_history() == before


async def test_unknown_and_closed_runs(client: Client) -> None:
    nobody = client.get_workflow_handle("nobody")
    for call in (nobody.describe, nobody.cancel, nobody.terminate, nobody.result, nobody.fetch_history):
        with pytest.raises(RPCError, match="no such workflow as 'nobody' in namespace 'default'; check both") as gone:
            await call()
        assert (gone.value.code, gone.value.retryable) == ("NOT_FOUND", False)
    for message in (nobody.signal("ship"), nobody.query("status")):
        with pytest.raises(RPCError, match="no such workflow as 'nobody'"):
            await message
    handle = await start(client)
    with pytest.raises(WorkflowAlreadyStartedError, match="'w'"):
        await start(client)
    await handle.terminate()
    before = await handle.fetch_history()
    with pytest.raises(RPCError, match=r"'w' is closed \(TERMINATED\); start a new run") as closed:
        await handle.signal("ship")
    assert closed.value.code == "WORKFLOW_EXECUTION_CLOSED"
    with pytest.raises(RPCError, match=r"no worker has polled task queue 'q'.*start a worker"):
        await handle.query("status")
    assert await handle.fetch_history() == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"initial_interval": 5}, "initial_interval cannot be of type int"),
        ({"backoff_coefficient": math.nan}, "backoff_coefficient must be at least 1 and finite, not nan"),
        ({"backoff_coefficient": math.inf}, "at least 1 and finite"),
        ({"maximum_attempts": 1.5}, "maximum_attempts cannot be of type float"),
        ({"non_retryable_error_types": [ValueError]}, "give names of error types"),
    ],
)
def test_retry_policies(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        RetryPolicy(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workflows": Order}, r"workflows is a list.*write workflows=\[…\]"),
        ({"activities": act}, r"activities is a list.*write activities=\[…\]"),
        ({"deadlock_timeout": timedelta(0)}, "deadlock_timeout must be above zero; set debug_mode"),
        ({"graceful_shutdown_timeout": timedelta(seconds=-1)}, "graceful_shutdown_timeout must not be negative"),
    ],
)
def test_options_of_a_worker(options: dict[str, Any], said: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said):
        Worker(None, task_queue="q", **({"activities": [act]} | options))  # type: ignore[arg-type]


@pytest.mark.parametrize("address", [7400, "http://x:99999", "http://[::1", "sqlite:///a\0.db", "/tmp/a.db"])
async def test_addresses(address: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"use sqlite:///relative.db.*or http://host:port"):
        await Client.connect(address)


# --- raw HTTP ---


@pytest.fixture
async def served() -> AsyncIterator[ServedApi]:
    async with served_api() as served:
        yield served


async def _post(served: ServedApi, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession(served.address) as http,
        http.post(NAMESPACE + path, data=json.dumps(body), headers=JSON) as response,
    ):
        return response.status, await response.json()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("workflow_run_timeout", 1.5, 'durations as ISO 8601 text, such as "PT30S"'),
        ("workflow_run_timeout", "P1Y", "durations as ISO 8601"),
        ("workflow_run_timeout", "P99999999999D", "out of range"),
        ("workflow_run_timeout", "-PT1S", "is -1 s; it must be above zero"),
        ("input[0].data", [{"data": "!!"}], "write bytes as base64 with padding"),
        ("input[0].data", [{"data": "YQ"}], "base64"),
        ("input", "text", "Expected `array`"),
        ("identity", ["x"], "openapi.json"),
    ],
)
async def test_values_in_json(served: ServedApi, field: str, value: Any, said: str) -> None:
    body = {"workflow_id": "w", "workflow_type": "Order", "task_queue": "q", field.partition("[")[0]: value}
    status, answer = await _post(served, "/workflow-types/Order/workflows/w/start", **body)
    assert (status, answer["code"], answer["details"]["field"]) == (400, "INVALID_ARGUMENT", field)
    assert field in answer["message"]
    assert said in answer["message"]
    assert not answer.get("retryable")
    assert (await _post(served, "/list-workflows"))[1] == {}


async def test_tokens_that_were_tampered_with_or_are_for_something_else(served: ServedApi) -> None:
    start = {"workflow_id": "w", "workflow_type": "Order", "task_queue": "q"}
    assert (await _post(served, "/workflow-types/Order/workflows/w/start", **start))[0] == 200
    poll = {"task_queue": "q", "worker": {"identity": "x"}, "timeout": "PT5S"}
    _, polled = await _post(served, "/task-queues/q/poll-workflow-task", **poll)
    token = base64.b64decode(polled["tasks"][0]["task_token"])
    before = await _post(served, "/workflows/w/history", execution={"workflow_id": "w"})
    flipped = [token[:i] + bytes([token[i] ^ 1]) + token[i + 1 :] for i in range(0, len(token), 7)]
    for bad in (*flipped, token[:-1], token + b"x", b"W", b"x" * 16, b"W" * 100_000):
        sent = base64.b64encode(bad).decode()
        status, answer = await _post(
            served, "/workflow-tasks/complete", task_token=sent, nonce="n", worker={"identity": "x"}
        )
        assert (status, answer["code"]) == (400, "INVALID_ARGUMENT")
        assert "task_token is not a token of this engine; send back unchanged" in answer["message"]
    good = base64.b64encode(token).decode()
    for path, body in (
        ("/activity-tasks/heartbeat", {"task_token": good}),
        ("/query-tasks/complete", {"task_token": good}),
        ("/workflows/w/history", {"execution": {"workflow_id": "w"}, "next_page_token": good}),
    ):
        status, answer = await _post(served, path, **body)
        assert status == 400
        assert "is a token for something else; send back the one" in answer["message"]
    assert await _post(served, "/workflows/w/history", execution={"workflow_id": "w"}) == before


async def _half_a_request(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /api/v1/system-info HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: 1000\r\n\r\n{{".encode())
    return reader, writer


async def test_a_body_that_does_not_come(served: ServedApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "BODY_SECONDS", 0.2)
    reader, writer = await _half_a_request(served.port)
    answer = await asyncio.wait_for(reader.read(), 30)  # until the server hangs up
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"did not arrive within 0.2 s; nothing was done, send the request again" in answer
    assert b'"retryable":true' in answer
    writer.close()


async def test_half_a_request_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    port = free_port()
    with running([STEPWELL, "dev", "--port", str(port)], tmp_path) as server:
        await asyncio.to_thread(server.wait_for, "is running")
        halves = [await _half_a_request(port) for _ in range(20)]
        await asyncio.sleep(0.2)
        assert await asyncio.to_thread(server.stop, signal.SIGTERM) == 0
        assert "Traceback" not in server.text and "shutdown exceeded" not in server.text
        for reader, writer in halves:
            assert b"503" in await asyncio.wait_for(reader.read(), 30)
            writer.close()


async def test_nonsense_instead_of_http(served: ServedApi) -> None:
    host = f"host: 127.0.0.1:{served.port}\r\ncontent-type: application/json\r\n"
    request = f"POST /api/v1/system-info HTTP/1.1\r\n{host}"
    for nonsense, said in (
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),  # TLS
        (b"\0" * 1_000 + b"\r\n\r\n", b"400"),
        (f"{request}content-length: -2\r\n\r\n{{}}".encode(), b"400"),
        (f"{request}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".encode(), b"400"),
        (f"{request}transfer-encoding: chunked\r\n\r\nZZ\r\n".encode(), b"400"),
        (f"{request}host: evil.example\r\ncontent-length: 2\r\n\r\n{{}}".encode(), b"403"),
        (b"POST /api/v1/system-info HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}", b"403"),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(nonsense)
        assert said in (await asyncio.wait_for(reader.readline(), 30)), nonsense[:80]
        writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    writer.write(f"{request}content-length: 2\r\n\r\n{{}}".encode() * 50)  # fifty at once on one connection
    for _ in range(50):
        assert b"200" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
        assert b"server_version" in await reader.readuntil(b"}")
    writer.close()
