"""An AWS account that is not as it should be: each fault ends in a sentence with the way out, or passes by retries, and
nothing that was acknowledged is lost.

Shown elsewhere, and not repeated here: conflicts, lost answers and invalid writes (``cases/test_wc_36.py``); what
`stepwell aws bootstrap` says (``integration/aws/test_bootstrap.py``); items over 400 KB at the port (``contract``).
"""

import asyncio
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import aioboto3
import pytest
from stepwell import activity, workflow
from stepwell.client import Client, RPCError
from stepwell.transport.http import HttpTransport
from stepwell.worker import Worker

from stepwell_server.adapters.aws.client import AwsClients
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.system import SystemClock
from stepwell_server.entrypoints.aws_presence import CellIncomplete
from stepwell_server.entrypoints.aws_server import AwsContainer
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.containers import served_container
from tests.support.aws.fault_proxy import FaultProxy, fault_proxy
from tests.support.processes import SOURCES

SOON = timedelta(seconds=10)
SERVER = [sys.executable, "-c", "import sys; from stepwell_server.entrypoints.server import main; sys.exit(main())"]
KMS = ("KMSAccessDeniedException", "The ciphertext refers to a key that this principal may not use")


@activity.defn
async def double(value: int) -> int:
    return value * 2


@workflow.defn
async def doubled(value: int) -> int:
    for _ in range(3):
        value = await workflow.execute_activity(double, value, start_to_close_timeout=SOON)
        await workflow.sleep(0.05)
    return value


@workflow.defn
async def measured(texts: list[str]) -> int:
    return sum(len(text) for text in texts)


def worker_of(client: Client) -> Worker:
    return Worker(client, task_queue="q", workflows=[doubled, measured], activities=[double])


async def start(client: Client, number: int) -> Any:
    return await client.start_workflow(doubled, number, id=f"w{number}", task_queue="q")


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.01)


@asynccontextmanager
async def served_through_proxy(cell: Cell, **rates: float) -> AsyncIterator[tuple[Client, FaultProxy]]:
    async with fault_proxy(cell.environment["AWS_ENDPOINT_URL"], 1, **rates) as proxy:
        proxy.on = False
        async with (
            served_container(cell, endpoint_url=proxy.url) as served,
            Client(HttpTransport(served.address, total_wait=2.0)) as client,
        ):
            yield client, proxy


# --- what does not start ---


def _delete(provisioning: Provisioning, cell: Cell, what: str) -> str:
    name: str = cell.bucket if what == "bucket" else getattr(cell.names, what)
    if what.endswith("_table"):
        provisioning.dynamodb.delete_table(TableName=name)
    elif what.endswith("_queue"):
        url = provisioning.sqs.get_queue_url(QueueName=name)["QueueUrl"]
        provisioning.sqs.delete_queue(QueueUrl=url)
    else:
        provisioning.s3.delete_bucket(Bucket=name)
    return name


@pytest.mark.parametrize("what", ["exec_table", "timer_table", "ctl_table", "vis_table", "timer_queue", "bucket"])
async def test_a_stack_that_is_half_made_is_told_by_what_is_missing(
    cell: Cell, provisioning: Provisioning, what: str
) -> None:
    name = _delete(provisioning, cell, what)
    with pytest.raises((AwsRefused, CellIncomplete), match=rf"{name}\b.*stepwell aws bootstrap"):
        await AwsContainer.start(AwsSettings(cell.names.cell, cell.bucket))


async def test_all_that_is_missing_is_told_at_once(cell: Cell, provisioning: Provisioning) -> None:
    missing = [_delete(provisioning, cell, what) for what in ("vis_table", "failure_queue", "bucket")]
    with pytest.raises(CellIncomplete) as told:
        await AwsContainer.start(AwsSettings(cell.names.cell, cell.bucket))
    assert all(name in str(told.value) for name in missing)


async def test_a_bucket_that_nobody_named_is_asked_for(shared_cell: Cell) -> None:
    with pytest.raises(CellIncomplete, match="STEPWELL_BUCKET"):
        await AwsContainer.start(AwsSettings(shared_cell.names.cell))


async def test_another_region_is_one_of_the_reasons_that_are_told(shared_cell: Cell) -> None:
    clients = AwsClients(region="eu-central-1", session=aioboto3.Session())
    with pytest.raises(AwsRefused, match="region"):
        await AwsContainer.start(AwsSettings(shared_cell.names.cell, shared_cell.bucket), clients=clients)


@pytest.mark.parametrize(
    ("code", "message", "way_out"),
    [
        ("UnrecognizedClientException", "The security token is invalid", "credentials of this process are wrong"),
        ("InvalidSignatureException", "Signature not yet current: 20261130T2005 is later than", "correct the clock"),
        ("InvalidSignatureException", "Signature expired: 20261130T1955 is earlier than", "correct the clock"),
        ("AccessDeniedException", "not authorized to perform dynamodb:GetItem", "lacks that permission"),
        (*KMS, "KMS key"),
    ],
)
async def test_what_keeps_a_server_from_starting_is_said(
    shared_cell: Cell, code: str, message: str, way_out: str
) -> None:
    async with fault_proxy(shared_cell.environment["AWS_ENDPOINT_URL"], 1) as proxy:
        proxy.refused["getitem"] = (code, message)
        clients = AwsClients(endpoint_url=proxy.url, session=aioboto3.Session())
        with pytest.raises(AwsRefused, match=way_out):
            await AwsContainer.start(AwsSettings(shared_cell.names.cell, shared_cell.bucket), clients=clients)


def test_a_server_without_credentials_ends_with_one_line(shared_cell: Cell) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("ACCESS_KEY_ID")}
    named = {"STEPWELL_CELL": shared_cell.names.cell, "STEPWELL_BUCKET": shared_cell.bucket, "PYTHONPATH": SOURCES}
    done = subprocess.run(
        [*SERVER, "--aws", "--port", "0"],
        env={**kept, **named},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("Error: dynamodb refused get_item") and "no credentials" in done.stderr
    assert done.stderr.count("\n") == 1


# --- what happens while it runs ---


async def test_throttled_tables_cost_time_and_nothing_else(cell: Cell) -> None:
    async with served_through_proxy(cell, throttling=0.1) as (client, proxy), worker_of(client):
        proxy.on = True
        handles = [await _insisted(client, number) for number in range(4)]
        results = await asyncio.gather(*(handle.result() for handle in handles))
        assert results == [8 * number for number in range(4)]
        assert proxy.done["throttling"] > 10


async def _insisted(client: Client, number: int) -> Any:
    while True:
        try:
            return await start(client, number)
        except RPCError as error:
            if not error.retryable or "throughput" not in str(error):
                raise


async def test_a_table_that_is_throttled_for_good_is_said_and_what_was_acknowledged_goes_on(cell: Cell) -> None:
    async with served_through_proxy(cell) as (client, proxy):
        before = await start(client, 1)
        throttled = ("ProvisionedThroughputExceededException", "exceeded the configured throughput")
        proxy.refused.update(putitem=throttled, query=throttled)
        with pytest.raises(RPCError, match="throughput") as told:
            await start(client, 2)
        assert told.value.retryable
        proxy.refused.clear()
        async with worker_of(client):
            assert await before.result() == 8
            assert await (await start(client, 2)).result() == 16


async def test_a_key_that_is_denied_for_a_while_ends_no_worker(cell: Cell) -> None:
    async with served_through_proxy(cell) as (client, proxy):
        before = await start(client, 1)
        proxy.refused.update(putitem=KMS)
        async with worker_of(client):
            with pytest.raises(RPCError, match="KMS key") as told:
                await start(client, 2)
            assert told.value.retryable and "put_item on stepwell-" in str(told.value)
            refused = proxy.done["refused"]
            await until(lambda: proxy.done["refused"] > refused + 5)
            proxy.refused.clear()
            assert await before.result() == 8
            assert await (await start(client, 2)).result() == 16


async def test_a_queue_that_was_deleted_is_made_again(cell: Cell, provisioning: Provisioning) -> None:
    async with served_through_proxy(cell) as (client, _):
        first = await start(client, 1)  # makes the queue
        async with worker_of(client):
            assert await first.result() == 8
        prefix = f"{cell.names.prefix}-"
        urls = provisioning.sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]
        tasks = [url for url in urls if "-wft-" in url]
        assert len(tasks) == 1
        provisioning.sqs.delete_queue(QueueUrl=tasks[0])
        second = await start(client, 2)
        assert tasks[0] in provisioning.sqs.list_queues(QueueNamePrefix=prefix)["QueueUrls"]
        async with worker_of(client):
            assert await second.result() == 16


async def test_a_queue_that_is_full_or_closed_keeps_no_start_from_being_recorded(cell: Cell) -> None:
    async with served_through_proxy(cell) as (client, proxy):
        proxy.refused["sendmessagebatch"] = ("OverLimit", "too many messages")
        first = await start(client, 1)
        proxy.refused["sendmessagebatch"] = ("KMS.AccessDeniedException", "no access to the key")
        second = await start(client, 2)
        assert proxy.done["refused"] >= 2
        async with worker_of(client):
            assert await asyncio.gather(first.result(), second.result()) == [8, 16]


async def test_payloads_up_to_the_limit_go_whatever_an_item_holds_and_larger_ones_are_refused(cell: Cell) -> None:
    async with served_container(cell) as served, await Client.connect(served.address) as client, worker_of(client):
        one = [secrets.token_hex(900_000)]  # one object
        many = [secrets.token_hex(3_000) for _ in range(200)]  # each too small for one, together more than an item
        for number, texts in enumerate((one, many)):
            result = await client.execute_workflow(measured, texts, id=f"m{number}", task_queue="q")
            assert result == sum(map(len, texts)) > 1_000_000
        with pytest.raises(RPCError, match=r"2.?097.?152|2 MiB|limit"):
            await client.start_workflow(measured, ["x" * 2_200_000], id="large", task_queue="q")
        with pytest.raises(RPCError, match="large"):
            await client.get_workflow_handle("large").describe()


class SkewedClock(SystemClock):
    def __init__(self, skew: timedelta) -> None:
        self._skew = skew

    def now(self) -> datetime:
        return super().now() + self._skew


@pytest.mark.parametrize("minutes", [-5, 5])
async def test_a_clock_that_is_five_minutes_off_holds_up_nobody(cell: Cell, minutes: int) -> None:
    clock = SkewedClock(timedelta(minutes=minutes))
    async with (
        served_container(cell, clock=clock) as served,
        await Client.connect(served.address) as client,
        worker_of(client),
    ):
        assert await (await start(client, 1)).result() == 8
