"""Who calls the collector of blobs: the function that is called once a minute, and a container's loop."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.entrypoints import aws_process, aws_timer_tick
from stepwell_server.entrypoints.aws_process import FunctionProcess, open_process
from stepwell_server.entrypoints.blob_collecting import collect_some, keep_collecting
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.run_blobs import Owner, RunBlobs
from tests.integration.aws.conftest import Store
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.clock import StandingClock

OWNER = Owner(ExecutionKey("default", "nobody"), "a-run-that-never-was")


def put_garbage(bucket: str, s3: Any, now: datetime) -> None:
    blobs = RunBlobs(MemoryBlobs(), StandingClock(now - timedelta(days=2)))
    form = blobs.form(OWNER, b"data")
    s3.put_object(Bucket=bucket, Key=OWNER.prefix + blobs.name(form), Body=form)


def left(bucket: str, s3: Any) -> int:
    return int(s3.list_objects_v2(Bucket=bucket, Prefix="p/")["KeyCount"])


def test_the_tick_collects_now_and_then(
    cell: Cell, provisioning: Provisioning, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_garbage(cell.bucket, provisioning.s3, datetime.now(UTC))
    process = open_process(AwsSettings(cell.names.cell, cell.bucket))
    try:
        handler = aws_timer_tick.handler_of(process)
        monkeypatch.setattr(aws_timer_tick, "COLLECTS_EVERY", 61)
        if process.parts.clock.now().minute:  # in the first minute of an hour it collects whatever the interval is
            handler({}, None)
            assert left(cell.bucket, provisioning.s3) == 1
        monkeypatch.setattr(aws_timer_tick, "COLLECTS_EVERY", 1)
        assert handler({}, None)["collected"] == 1
        assert left(cell.bucket, provisioning.s3) == 0
    finally:
        process.close()


def test_the_tick_asks_for_no_key_of_tokens(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its role may not read the secret; here there is none."""
    given = {"CELL": cell.names.cell, "BUCKET": cell.bucket, "TOKEN_KEY_PARAMETER": "no-such-secret"}
    for name, value in given.items():
        monkeypatch.setenv(f"STEPWELL_{name}", value)
    monkeypatch.setattr(aws_process, "structured_logs", lambda cell: None)
    monkeypatch.setattr(aws_timer_tick, "this_process", aws_process.this_process.__wrapped__)
    opened: list[FunctionProcess] = []

    def opening(*arguments: Any, **more: Any) -> FunctionProcess:
        opened.append(open_process(*arguments, **more))
        return opened[-1]

    monkeypatch.setattr(aws_process, "open_process", opening)
    try:
        assert aws_timer_tick._handler.__wrapped__()({}, None)["sent"] == 0
    finally:
        for process in opened:
            process.close()
    assert len(opened) == 1
    with pytest.raises(AwsRefused, match="no-such-secret"):
        aws_process.this_process.__wrapped__()


async def test_a_container_collects_in_the_background(store: Store, provisioning: Provisioning) -> None:
    put_garbage(store.cell.bucket, provisioning.s3, store.clock.now())
    loop = asyncio.create_task(keep_collecting(store.backend, interval=timedelta(milliseconds=20)))
    async with asyncio.timeout(60):
        while left(store.cell.bucket, provisioning.s3):
            await asyncio.sleep(0.05)
    assert not loop.done()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop


async def test_a_missing_bucket_is_told_and_serving_goes_on(
    store: Store, provisioning: Provisioning, caplog: pytest.LogCaptureFixture
) -> None:
    provisioning.s3.delete_bucket(Bucket=store.cell.bucket)
    loop = asyncio.create_task(keep_collecting(store.backend, interval=timedelta(milliseconds=20)))
    async with asyncio.timeout(60):
        while sum("Blobs cannot be collected" in record.message for record in caplog.records) < 2:
            await asyncio.sleep(0.05)
    assert not loop.done()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop
    with pytest.raises(Exception, match=store.cell.bucket):
        await collect_some(store.backend, 1.0)
