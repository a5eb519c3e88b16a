"""One client per service, its retries and its errors, against the emulator and against nobody."""

import asyncio
from collections.abc import AsyncIterator

import aioboto3
import pytest

from stepwell_server.adapters.aws import client as client_module
from stepwell_server.adapters.aws.client import AwsClients, Limits
from stepwell_server.adapters.aws.faults import AwsRefused, ConditionFailed
from stepwell_server.adapters.aws.s3_blobs import S3Blobs
from stepwell_server.history.ports import StoreUnavailable
from tests.support.aws.cells import Cell

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}


@pytest.fixture
async def clients(cell: Cell) -> AsyncIterator[AwsClients]:
    clients = AwsClients()
    yield clients
    await clients.close()


async def test_a_failed_condition_brings_what_is_there(clients: AwsClients, cell: Cell) -> None:
    dynamodb = clients.service("dynamodb")
    put = {"TableName": cell.names.exec_table, "ConditionExpression": "attribute_not_exists(pk)"}
    put["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    await dynamodb.call("put_item", **put, Item={**KEY, "n": {"S": "first"}})
    with pytest.raises(ConditionFailed) as failed:
        await dynamodb.call("put_item", **put, Item={**KEY, "n": {"S": "second"}})
    assert failed.value.item == {**KEY, "n": {"S": "first"}}


async def test_a_missing_table_is_named_at_once(clients: AwsClients) -> None:
    with pytest.raises(AwsRefused, match=r"get_item on stepwell-gone-exec.*bootstrap") as refused:
        await clients.service("dynamodb").call("get_item", TableName="stepwell-gone-exec", Key=KEY)
    assert refused.value.code == "ResourceNotFoundException"


async def test_nobody_listening_is_unavailable_after_bounded_retries(
    cell: Cell, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {**client_module.LIMITS, "dynamodb": Limits(1.0, attempts=3, first_pause=0.001)}
    monkeypatch.setattr(client_module, "LIMITS", limits)
    clients = AwsClients(endpoint_url=f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(StoreUnavailable, match="retry later"):
        await clients.service("dynamodb").call("get_item", TableName=cell.names.exec_table, Key=KEY)
    await clients.close()


async def test_an_answer_that_never_comes_is_unavailable(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[asyncio.Task[None] | None] = []

    async def keep_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(asyncio.current_task())
        await reader.read()
        writer.close()
        await writer.wait_closed()

    limits = {**client_module.LIMITS, "dynamodb": Limits(0.05, attempts=3, first_pause=0.001)}
    monkeypatch.setattr(client_module, "LIMITS", limits)
    server = await asyncio.start_server(keep_silent, "127.0.0.1", 0)
    clients = AwsClients(endpoint_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    with pytest.raises(StoreUnavailable):
        await clients.service("dynamodb").call("get_item", TableName=cell.names.exec_table, Key=KEY)
    assert len(asked) == 3
    await clients.close()
    server.close()
    await asyncio.gather(*(answering for answering in asked if answering is not None))


async def test_missing_credentials_are_said(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    clients = AwsClients(session=aioboto3.Session())
    with pytest.raises(AwsRefused, match="no credentials"):
        await clients.service("dynamodb").call("get_item", TableName=cell.names.exec_table, Key=KEY)
    await clients.close()


async def test_a_missing_region_is_said(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    clients = AwsClients(session=aioboto3.Session())
    with pytest.raises(AwsRefused, match="AWS_REGION"):
        await clients.service("dynamodb").call("get_item", TableName=cell.names.exec_table, Key=KEY)
    await clients.close()


async def test_all_services_of_the_data_path_answer(clients: AwsClients, cell: Cell) -> None:
    tables = await clients.service("dynamodb").call("describe_table", TableName=cell.names.exec_table)
    arn = tables["Table"]["LatestStreamArn"]
    stream = await clients.service("dynamodbstreams").call("describe_stream", StreamArn=arn)
    assert stream["StreamDescription"]["StreamStatus"] == "ENABLED"
    assert (await clients.service("sqs").call("get_queue_url", QueueName=cell.names.timer_queue))["QueueUrl"]
    await clients.service("s3").call("put_object", Bucket=cell.bucket, Key="k", Body=b"data")
    got = await clients.service("s3").call("get_object", Bucket=cell.bucket, Key="k")
    assert got["Body"] == b"data"
    await clients.close()
    await clients.close()


async def test_an_object_that_breaks_off_is_read_again(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client_module.LIMITS, "s3", Limits(5.0, attempts=3, first_pause=0.001))  # type: ignore[misc]
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        body = b"whole" if len(asked) == 3 else b"wh"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        clients = AwsClients(endpoint_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        blobs = S3Blobs(clients, cell.bucket)
        assert await blobs.get("k") == b"whole"
        asked[:] = [b"", b"", b""]
        with pytest.raises(StoreUnavailable, match="broke off"):
            await blobs.get("k")
        await clients.close()
