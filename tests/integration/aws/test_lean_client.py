"""The client of our own answers as botocore's does, and makes the same of everything that goes wrong."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stepwell_server.adapters.aws import client as client_module
from stepwell_server.adapters.aws.client import LIMITS, AwsClients, Limits, ServiceClient
from stepwell_server.adapters.aws.faults import AwsRefused, ConditionFailed
from stepwell_server.common import metric_names as names
from stepwell_server.common.metrics import NO_METRICS, Gathered, Metrics, Series
from stepwell_server.history.ports import StoreUnavailable
from tests.support.aws.cells import Cell

KEY = {"pk": {"S": "p"}, "sk": {"S": "日本"}}
ITEM = {**KEY, "b": {"B": bytes(range(256))}, "n": {"N": "-17"}, "m": {"M": {"b": {"B": b"\xff"}}}, "e": {"S": ""}}
ITEM["l"] = {"L": [{"B": b"\x00"}, {"S": "s"}]}


def without_metadata(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: told for name, told in answer.items() if name != "ResponseMetadata"}


@pytest.fixture
async def both(cell: Cell) -> AsyncIterator[tuple[ServiceClient, ServiceClient]]:
    clients = AwsClients()
    yield ServiceClient("dynamodb", clients, LIMITS["dynamodb"]), clients.service("dynamodb")
    await clients.close()


async def test_all_calls_answer_the_same(both: tuple[ServiceClient, ServiceClient], cell: Cell) -> None:
    table = cell.names.exec_table
    query = {
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "p"}},
        "ConsistentRead": True,
    }
    put = {
        "Item": ITEM,
        "ConditionExpression": "attribute_not_exists(pk)",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_item", {"TableName": table, "Key": KEY}),
        ("put_item", {"TableName": table, "Item": ITEM}),
        ("get_item", {"TableName": table, "Key": KEY, "ConsistentRead": True}),
        ("query", {"TableName": table, **query}),
        ("batch_get_item", {"RequestItems": {table: {"Keys": [KEY, {**KEY, "sk": {"S": "other"}}]}}}),
        ("put_item", {"TableName": table, **put}),
        (
            "update_item",
            {
                "TableName": table,
                "Key": KEY,
                "UpdateExpression": "SET n = :n",
                "ExpressionAttributeValues": {":n": {"N": "5"}},
                "ReturnValues": "ALL_NEW",
            },
        ),
        ("delete_item", {"TableName": table, "Key": KEY, "ReturnValues": "ALL_OLD"}),
        ("get_item", {"TableName": "stepwell-gone-exec", "Key": KEY}),
        ("put_item", {"TableName": table, "Item": {"pk": {"S": "only half of a key"}}}),
    ]
    seen: list[list[object]] = []
    for client in both:
        answers: list[object] = []
        for operation, parameters in calls:
            try:
                answers.append(without_metadata(await client.call(operation, **parameters)))
            except ConditionFailed as failed:
                answers.append(("condition", failed.item))
            except AwsRefused as refused:
                answers.append((refused.code, str(refused)))
        seen.append(answers)
    assert seen[0] == seen[1]
    assert seen[1][2] == {"Item": ITEM} and seen[1][5] == ("condition", ITEM)


Answer = Callable[[asyncio.StreamWriter], None]


def http(status: str, body: bytes, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def answering(
    *answers: bytes | None, monkeypatch: pytest.MonkeyPatch, metrics: Metrics = NO_METRICS
) -> AsyncIterator[tuple[ServiceClient, list[bytes]]]:
    """A server that gives these answers in turn, and then the last for ever; None: it hangs up."""
    asked: list[bytes] = []
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                asked.append(head)
                answer = answers[min(len(asked), len(answers)) - 1]
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    limits = {**LIMITS, "dynamodb": Limits(5.0, attempts=3, first_pause=0.001)}
    monkeypatch.setattr(client_module, "LIMITS", limits)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    clients = AwsClients(endpoint_url=address, metrics=metrics)
    yield clients.service("dynamodb"), asked
    await clients.close()
    server.close()
    await asyncio.gather(*serving)


FINE = http("200 OK", b"{}")
THROTTLED = http(
    "400 Bad Request", b'{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow"}'
)


@pytest.mark.parametrize(
    "trouble",
    [
        None,
        THROTTLED,
        http("500 Internal Server Error", b'{"__type":"InternalServerError"}'),
        http("502 Bad Gateway", b"<html>a proxy's page</html>"),
        http("200 OK", b"<html>not JSON</html>"),
        http("200 OK", b'{"Item":{}}', **{"x-amz-crc32": str(zlib.crc32(b"other"))}),
    ],
)
async def test_what_may_pass_is_tried_again(trouble: bytes | None, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(trouble, FINE, monkeypatch=monkeypatch) as (dynamodb, asked):
        assert await dynamodb.call("get_item", TableName="t", Key=KEY) == {}
        assert len(asked) == 2
    async with answering(trouble, monkeypatch=monkeypatch) as (dynamodb, asked):
        with pytest.raises(StoreUnavailable, match="get_item on t"):
            await dynamodb.call("get_item", TableName="t", Key=KEY)
        assert len(asked) == 3


async def test_each_try_that_was_throttled_is_counted(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Gathered()
    async with answering(THROTTLED, THROTTLED, FINE, monkeypatch=monkeypatch, metrics=metrics) as (dynamodb, _):
        await dynamodb.call("get_item", TableName="t", Key=KEY)
        assert metrics.take() == [Series(names.THROTTLES, {"service": "dynamodb"}, (2.0,))]
        await dynamodb.call("get_item", TableName="t", Key=KEY)
    async with answering(http("502 Bad Gateway", b""), FINE, monkeypatch=monkeypatch, metrics=metrics) as (other, _):
        await other.call("get_item", TableName="t", Key=KEY)
    assert metrics.take() == []


async def test_parts_of_a_batch_that_come_back_undone_were_throttled(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Gathered()
    undone = http("200 OK", b'{"Responses":{},"UnprocessedKeys":{"t":{"Keys":[{"pk":{"S":"p"}}]}}}')
    async with answering(undone, FINE, monkeypatch=monkeypatch, metrics=metrics) as (dynamodb, asked):
        assert await dynamodb.get_all("t", [KEY], strong=True) == []
        assert len(asked) == 2
    assert metrics.take() == [Series(names.THROTTLES, {"service": "dynamodb"}, (1.0,))]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ValidationException", "ExpiredTokenException"])
async def test_what_will_not_pass_is_told_at_once(code: str, cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = http("400 Bad Request", f'{{"__type":"com.amazon.coral.service#{code}","Message":"no"}}'.encode())
    async with answering(answer, monkeypatch=monkeypatch) as (dynamodb, asked):
        with pytest.raises(AwsRefused) as refused:
            await dynamodb.call("put_item", TableName="t", Item=ITEM)
        assert refused.value.code == code and len(asked) == 1


async def test_a_checksum_that_holds_is_no_trouble(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"Item":{"b":{"B":"AP8="}}}'
    answer = http("200 OK", body, **{"x-amz-crc32": str(zlib.crc32(body))})
    async with answering(answer, monkeypatch=monkeypatch) as (dynamodb, asked):
        assert await dynamodb.call("get_item", TableName="t", Key=KEY) == {"Item": {"b": {"B": b"\x00\xff"}}}
        assert b"x-amz-target: dynamodb_20120810.getitem" in asked[0].lower()


async def test_a_session_token_is_sent_and_renewed_credentials_are_used(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with answering(FINE, monkeypatch=monkeypatch) as (dynamodb, asked):
        await dynamodb.call("get_item", TableName="t", Key=KEY)
        assert b"x-amz-security-token" not in asked[0].lower()
        lean: Any = dynamodb._lean  # type: ignore[attr-defined]

        class Renewed:
            async def get_frozen_credentials(self) -> Any:
                from botocore.credentials import ReadOnlyCredentials

                return ReadOnlyCredentials("AKIDRENEWED", "secret", "token-2")

        monkeypatch.setattr(lean, "_credentials", Renewed())
        await dynamodb.call("get_item", TableName="t", Key=KEY)
        assert b"x-amz-security-token: token-2" in asked[1].lower() and b"AKIDRENEWED" in asked[1]
