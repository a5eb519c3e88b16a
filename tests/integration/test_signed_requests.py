"""A server that asks for signatures, and the client that makes them: who may not call is refused before anything is
done, and says how to be let in."""

import asyncio
import hashlib
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from stepwell.api.codec import encode_json
from stepwell.api.errors import PermissionDenied, Unauthenticated
from stepwell.api.requests import GetSystemInfoRequest
from stepwell.client import Client, RPCError

from stepwell_server.adapters.system import SystemClock
from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.entrypoints.http_server import HttpServer
from stepwell_server.frontend.asgi import Application
from stepwell_server.frontend.signatures import AccessKey, SignatureVerifier

OWNER = AccessKey("AKOWNER", "owner-secret", ("*",))
READER = AccessKey("AKREADER", "reader-secret", ("system-info", "namespaces/*/workflows/*/describe"))
BILLING = AccessKey("AKBILLING", "billing-secret", ("system-info", "namespaces/billing/*/workflows/inv-*"))


class EarlierClock(SystemClock):
    """So that requests signed by the machine's clock come behind the server's start."""

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.ahead)

    ahead = -2.0


@pytest.fixture
async def server() -> AsyncIterator[str]:
    hosted = await HostedEngine.start(":memory:")
    verifier = SignatureVerifier([OWNER, READER, BILLING], EarlierClock())
    application = Application(hosted.engine, verifier=verifier, database="memory", version="0")
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(application)
    serving = asyncio.ensure_future(server.serve(listener))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.stop()
    await serving
    await hosted.stop()


@pytest.fixture
def as_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def use(key: AccessKey, secret: str = "") -> None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret or key.secret)
        monkeypatch.setenv("AWS_REGION", "eu-west-1")

    return use


def signed(
    url: str,
    body: bytes,
    *,
    key: AccessKey = OWNER,
    at: datetime | None = None,
    method: str = "POST",
    service: str = "execute-api",
    headers: dict[str, str] | None = None,
) -> dict[str, str]:
    """As any AWS SDK signs, at whatever time."""
    request = AWSRequest(method, url, data=body, headers={"content-type": "application/json"} | (headers or {}))
    request.headers["X-Amz-Date"] = f"{at or datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    request.context["timestamp"] = request.headers["X-Amz-Date"]
    auth = SigV4Auth(Credentials(key.key_id, key.secret), service, "eu-west-1")
    to_sign = auth.string_to_sign(request, auth.canonical_request(request))
    auth._inject_signature_to_request(request, auth.signature(to_sign, request))
    return dict(request.headers.items())


INFO = encode_json(GetSystemInfoRequest())


async def post(url: str, body: bytes, headers: dict[str, str], method: str = "POST") -> tuple[int, dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.request(method, url, data=body, headers=headers) as response:
        return response.status, await response.json(content_type=None)


async def test_a_client_that_signs_is_served(server: str, as_key: Any) -> None:
    as_key(OWNER)
    async with await Client.connect(server, sign=True) as client:
        handle = await client.start_workflow("order", id="päid/7 %41", task_queue="orders")
        assert (await handle.describe()).id == "päid/7 %41"
        await handle.terminate()
        events = [event async for event in handle.fetch_history_events()]
        assert [events[0].attributes.principal, events[-1].attributes.principal] == ["AKOWNER", "AKOWNER"]  # type: ignore[union-attr]


async def test_the_command_line_signs_when_it_is_told_to(
    server: str, as_key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_() -> "subprocess.CompletedProcess[str]":
        command = [Path(sys.executable).with_name("stepwell"), "workflow", "list", "--address", server, "-o", "json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    as_key(OWNER)
    ended = await asyncio.to_thread(list_)
    assert ended.returncode == 3 and "not signed" in ended.stderr
    monkeypatch.setenv("STEPWELL_SIGN", "true")
    ended = await asyncio.to_thread(list_)
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr


async def test_each_key_does_what_it_is_allowed_to(server: str, as_key: Any) -> None:
    as_key(OWNER)
    async with await Client.connect(server, sign=True) as client:
        await client.start_workflow("order", id="order-1", task_queue="orders")
    as_key(READER)
    async with await Client.connect(server, sign=True) as client:
        assert (await client.get_workflow_handle("order-1").describe()).workflow_type == "order"
        with pytest.raises(RPCError, match="may not call") as refused:
            await client.get_workflow_handle("order-1").terminate()
        assert isinstance(refused.value.__cause__, PermissionDenied)
    as_key(BILLING)
    async with await Client.connect(server, sign=True, namespace="billing") as client:
        await client.start_workflow("invoice", id="inv-7", task_queue="bills")
        with pytest.raises(RPCError, match="may not call"):
            await client.start_workflow("invoice", id="other-7", task_queue="bills")
    async with await Client.connect(server, sign=True, namespace="default") as client:
        with pytest.raises(RPCError, match="may not call"):
            await client.start_workflow("invoice", id="inv-8", task_queue="bills")


async def test_without_or_with_wrong_credentials_nothing_is_done(server: str, as_key: Any) -> None:
    with pytest.raises(RPCError, match="not signed") as refused:
        await Client.connect(server)
    assert isinstance(refused.value.__cause__, Unauthenticated)
    as_key(OWNER, "not the secret")
    with pytest.raises(RPCError, match="does not fit"):
        await Client.connect(server, sign=True)
    as_key(AccessKey("AKUNKNOWN", "x", ()))
    with pytest.raises(RPCError, match="not known to this server"):
        await Client.connect(server, sign=True)


async def test_a_request_that_is_sent_again_is_refused(server: str) -> None:
    url = server + "/api/v1/system-info"
    headers = signed(url, INFO)
    assert (await post(url, INFO, headers))[0] == 200
    status, body = await post(url, INFO, headers)
    assert status == 401 and "was sent before" in body["message"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"body": INFO + b" "}, "does not fit"),
        ({"path": "/api/v1/namespaces/default/list-workflows"}, "does not fit"),
        ({"path": "/api/v1/system-info?x=1"}, "does not fit"),
        ({"signed_body_hash": True, "body": INFO + b" "}, "not the one that was signed"),
        ({"at": timedelta(minutes=-6)}, "minutes apart"),
        ({"at": timedelta(minutes=6)}, "minutes apart"),
        ({"service": "s3"}, "no signature for this server"),
        ({"authorization": "Bearer abc"}, "no signature for this server"),
        ({"authorization": ""}, "not signed"),
        ({"date": "yesterday"}, "not a time"),
        ({"method": "GET", "path": "/"}, "not signed"),
    ],
)
async def test_what_was_changed_or_is_too_old_is_refused(server: str, change: dict[str, Any], says: str) -> None:
    url = server + "/api/v1/system-info"
    at = datetime.now(UTC) + change.get("at", timedelta(0))
    extra = {"x-amz-content-sha256": hashlib.sha256(INFO).hexdigest()} if "signed_body_hash" in change else {}
    headers = signed(url, INFO, at=at, service=change.get("service", "execute-api"), headers=extra)
    if "authorization" in change or change.get("method") == "GET":
        headers["Authorization"] = change.get("authorization", "")
    if "date" in change:
        headers["X-Amz-Date"] = change["date"]
    target = server + change.get("path", "/api/v1/system-info")
    status, body = await post(target, change.get("body", INFO), headers, change.get("method", "POST"))
    assert status == 401 and says in body["message"], body


async def test_host_and_date_have_to_be_signed(server: str) -> None:
    url = server + "/api/v1/system-info"
    headers = signed(url, INFO)
    headers["Authorization"] = headers["Authorization"].replace(";x-amz-date", "")
    status, body = await post(url, INFO, headers)
    assert status == 401 and "leaves out header 'x-amz-date'" in body["message"]


async def test_what_was_signed_before_the_start_is_to_be_signed_again(server: str) -> None:
    url = server + "/api/v1/system-info"
    status, body = await post(url, INFO, signed(url, INFO, at=datetime.now(UTC) - timedelta(minutes=1)))
    assert status == 503 and body["retryable"] and "sign it again" in body["message"]


async def test_health_needs_no_signature_and_shows_nothing(server: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(server + "/healthz") as response:
        assert (response.status, await response.text()) == (200, "ok\n")


async def test_signatures_do_not_go_over_plain_http_to_other_machines() -> None:
    with pytest.raises(ValueError, match="https"):
        await Client.connect("http://stepwell.example", sign=True)
