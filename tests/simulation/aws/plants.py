"""Faults planted into what is of AWS alone, one at a time, to show that the simulation finds them."""

import asyncio
from typing import Any
from unittest import mock

from stepwell_server.adapters.aws.s3_blobs import S3Blobs
from stepwell_server.timer_sweeper import progress

_put = S3Blobs.put
_background: set[asyncio.Task[None]] = set()


def young_rows_skipped() -> Any:
    """A sweeper never looks back: what is put behind what it has read, by a slow write or clock, is left out."""
    return mock.patch.multiple(progress, OVERLAP_MS=0, _LOOKS_BACK=(), SKEW_MS=0)


def put_acknowledged_before_it_is_durable() -> Any:
    """An object is put behind the write that refers to it, or never."""

    async def put(self: S3Blobs, key: str, data: bytes) -> None:
        async def later() -> None:
            await asyncio.sleep(0.05)
            await _put(self, key, data)

        task = asyncio.get_running_loop().create_task(later())
        _background.add(task)
        task.add_done_callback(_background.discard)

    return mock.patch.object(S3Blobs, "put", put)
