"""What a worker says when its tasks wait in SQS and it cannot get at them: what is wrong, and the way out.

A server on loopback answers as SQS does when it refuses.
"""

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from stepwell.api.errors import ApiError, InvalidArgument, PermissionDenied, Unauthenticated, Unavailable
from stepwell.client import Client
from stepwell.transport.queue_fed import QueueFedTransport
from stepwell.transport.signing import RequestSigner
from stepwell.transport.sqs import SqsQueues
from stepwell.worker import Worker

from stepwell_server.adapters.embedded import embedded_backend
from tests.unit.sdk.transport.test_queue_fed import Order, World, charge

QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/stepwell-main-00-wft-0"


class RefusingSqs:
    def __init__(self) -> None:
        self.code = ""
        self.refuses = ("ReceiveMessage", "DeleteMessageBatch")
        self.messages: list[dict[str, str]] = []
        self.scopes: list[str] = []
        self.calls: list[str] = []

    async def answer(self, request: web.Request) -> web.Response:
        method = request.headers["x-amz-target"].rpartition(".")[2]
        self.calls.append(method)
        self.scopes.append(request.headers["authorization"])
        if self.code and method in self.refuses:
            body = {"__type": f"com.amazonaws.sqs#{self.code}", "message": "said by SQS"}
            return web.Response(status=403, body=json.dumps(body), content_type="application/x-amz-json-1.0")
        messages, self.messages = self.messages, []
        body = {"Messages": messages} if method == "ReceiveMessage" else {"Successful": [], "Failed": []}
        return web.Response(body=json.dumps(body), content_type="application/x-amz-json-1.0")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No credentials and no region, whatever this machine has."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    return monkeypatch


@pytest.fixture
async def sqs(bare: pytest.MonkeyPatch) -> AsyncIterator[RefusingSqs]:
    server = RefusingSqs()
    application = web.Application()
    application.router.add_post("/", server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    bare.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{runner.addresses[0][1]}")
    yield server
    await runner.cleanup()


@pytest.fixture
def keys(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_ACCESS_KEY_ID", "key")
    bare.setenv("AWS_SECRET_ACCESS_KEY", "secret")


@pytest.fixture
async def queues() -> AsyncIterator[SqsQueues]:
    queues = SqsQueues()
    yield queues
    await queues.close()


async def refusal(queues: SqsQueues, queue: str = QUEUE) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await queues.receive(queue, 1, 0.0, 10)
    return caught.value


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("code", "kind", "way_out"),
    [
        ("AccessDeniedException", PermissionDenied, "sqs:ReceiveMessage"),
        ("AccessDenied", PermissionDenied, "sqs:ReceiveMessage"),
        ("KmsAccessDenied", PermissionDenied, "kms:Decrypt"),
        ("KMS.AccessDeniedException", PermissionDenied, "kms:Decrypt"),
        ("KmsDisabled", PermissionDenied, "whether it is enabled"),
        ("UnrecognizedClientException", Unauthenticated, "of its account"),
        ("InvalidClientTokenId", Unauthenticated, "of its account"),
        ("ExpiredTokenException", Unauthenticated, "not expired"),
        ("InvalidSignatureException", Unauthenticated, "clock is right"),
        ("QueueDoesNotExist", Unavailable, "cannot be received from"),
        ("ThrottlingException", Unavailable, "cannot be received from"),
    ],
)
async def test_what_sqs_refuses_is_said_with_the_way_out(
    sqs: RefusingSqs, queues: SqsQueues, code: str, kind: type[ApiError], way_out: str
) -> None:
    sqs.code = code
    error = await refusal(queues)
    assert type(error) is kind and way_out in str(error) and QUEUE in str(error) and "said by SQS" in str(error)


async def test_missing_credentials_are_no_outage(sqs: RefusingSqs, queues: SqsQueues) -> None:
    error = await refusal(queues)
    assert type(error) is Unauthenticated and "set AWS_PROFILE" in str(error)
    assert sqs.calls == []


async def test_half_of_the_credentials(sqs: RefusingSqs, queues: SqsQueues, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_ACCESS_KEY_ID", "key")
    error = await refusal(queues)
    assert type(error) is Unauthenticated and "AWS_SECRET_ACCESS_KEY" in str(error)


async def test_a_profile_that_is_not_there(sqs: RefusingSqs, queues: SqsQueues, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("AWS_PROFILE", "orders")
    error = await refusal(queues)
    assert type(error) is Unauthenticated and "orders" in str(error)


@pytest.mark.usefixtures("keys")
async def test_the_queues_own_region_counts_not_that_of_the_environment(
    sqs: RefusingSqs, queues: SqsQueues, bare: pytest.MonkeyPatch
) -> None:
    bare.setenv("AWS_DEFAULT_REGION", "us-east-1")
    assert await queues.receive(QUEUE, 1, 0.0, 10) == []
    assert "/eu-west-1/sqs/" in sqs.scopes[0]


@pytest.mark.usefixtures("keys")
async def test_an_address_without_region_wants_one(sqs: RefusingSqs, queues: SqsQueues) -> None:
    error = await refusal(queues, "http://127.0.0.1:4566/123456789012/stepwell-main-00-wft-0")
    assert type(error) is InvalidArgument and "AWS_REGION" in str(error)


@pytest.mark.usefixtures("keys")
async def test_nobody_there_is_an_outage(queues: SqsQueues, bare: pytest.MonkeyPatch, unused_port: int) -> None:
    bare.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused_port}")
    assert type(await refusal(queues)) is Unavailable


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.parametrize("missing", ["aioboto3", "botocore.exceptions"])
async def test_packages_that_are_not_installed(
    queues: SqsQueues, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(RuntimeError, match=r"install stepwell\[aws\]"):
        await queues.receive(QUEUE, 1, 0.0, 10)


# --- the worker ---


@pytest.fixture
async def world() -> AsyncIterator[World]:
    backend = embedded_backend(":memory:")
    world = World(backend)
    made = world.engine

    def engine():
        engine = made()

        async def sources(name):
            return (QUEUE,)

        engine._task_sources = sources
        return engine

    world.engine = engine  # type: ignore[method-assign]
    yield world
    await backend.close()


@pytest.mark.usefixtures("keys")
async def test_a_worker_without_permission_ends_and_says_why(
    sqs: RefusingSqs, queues: SqsQueues, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    sqs.code = "AccessDeniedException"
    client = Client(QueueFedTransport(world, queues))
    worker = Worker(client, task_queue="orders", workflows=[Order], activities=[charge])
    async with asyncio.timeout(20):
        with pytest.raises(PermissionDenied, match="sqs:ReceiveMessage"):
            await worker.run()
    assert "Worker of task queue 'orders' stopped" in caplog.text


@pytest.mark.usefixtures("keys")
async def test_a_worker_that_may_not_delete_warns(
    sqs: RefusingSqs, queues: SqsQueues, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    sqs.code, sqs.refuses = "AccessDeniedException", ("DeleteMessageBatch",)
    sqs.messages = [{"Body": "hello", "ReceiptHandle": "1", "MessageId": "1"}]
    client = Client(QueueFedTransport(world, queues))
    with caplog.at_level(logging.WARNING, "stepwell.worker"):
        async with Worker(client, task_queue="orders", workflows=[Order]), asyncio.timeout(20):
            while "DeleteMessageBatch" not in sqs.calls or "come again and again" not in caplog.text:
                await asyncio.sleep(0.05)
    assert "sqs:DeleteMessage" in caplog.text


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "no AWS credentials to sign requests with"),
        ({"AWS_ACCESS_KEY_ID": "key"}, "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "orders"}, "orders"),
    ],
)
async def test_requests_that_cannot_be_signed_are_refused(
    bare: pytest.MonkeyPatch, environment: dict[str, str], said: str
) -> None:
    for name, value in environment.items():
        bare.setenv(name, value)
    signer = RequestSigner("abc.execute-api.eu-west-1.amazonaws.com")
    with pytest.raises(Unauthenticated, match=said):
        await signer.headers("https://abc.execute-api.eu-west-1.amazonaws.com/api", b"{}")
