"""Every adapter of the ports runs through the same suites: add its maker to ``BACKENDS``.

What only the embedded store promises takes ``embedded`` instead of ``backend``: there, deadlines are read back and
struck off, queues are rebuilt from what heads owe, retention deletes when it is told to, a write whose caller was
cancelled is carried out, and writes that wait together are made in order. Elsewhere sweepers have ports of their own,
queues outlive processes, the tables expire what is over, a cancelled write may stand or not, and whoever appends waits
for the commit before.
"""

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.memory_blobs import MemoryBlobs
from stepwell_server.history import offload
from stepwell_server.history.offload import OffloadingLog
from stepwell_server.history.run_blobs import RunBlobs
from tests.simulation.faults import CALM, Faults
from tests.support.aws.clock import StandingClock
from tests.support.aws.projecting import ProjectingLog
from tests.support.sample_commits import EPOCH

Request = pytest.FixtureRequest

TINY = 40
"""A threshold of bytes by which nearly every payload of the suites is a blob; no engine may have it."""


async def on_memory(request: Request) -> Backend:
    return embedded_backend(":memory:")


async def on_a_file(request: Request) -> Backend:
    folder: Path = request.getfixturevalue("tmp_path")
    return embedded_backend(folder / "contract.db")


async def on_memory_with_blobs(request: Request) -> Backend:
    backend = embedded_backend(":memory:")
    log = OffloadingLog(backend.log, RunBlobs(MemoryBlobs(), backend.clock), backend.clock)
    log._threshold = TINY
    return dataclasses.replace(backend, log=log)


async def on_dynamodb(request: Request) -> Backend:
    return await _on_dynamodb(request, offload.DEFAULT_THRESHOLD)


async def on_dynamodb_with_blobs(request: Request) -> Backend:
    return await _on_dynamodb(request, TINY)


async def _on_dynamodb(request: Request, threshold: int) -> Backend:
    from stepwell_server.adapters.aws.backend import aws_backend
    from stepwell_server.adapters.aws.settings import AwsSettings

    cell = request.getfixturevalue("cell")
    clock = StandingClock(EPOCH)  # nothing that the suites write has expired
    backend = await aws_backend(AwsSettings(cell.names.cell, cell.bucket), clock=clock)
    assert isinstance(backend.log, OffloadingLog)
    backend.log._threshold = threshold
    log: Any = ProjectingLog(backend.log, backend.visibility)
    return dataclasses.replace(backend, log=log)


async def on_emulated_dynamodb(request: Request) -> Backend:
    """That of the simulation, which so does what moto does."""
    from stepwell_server.adapters.aws.backend import aws_backend
    from stepwell_server.adapters.aws.names import Names
    from stepwell_server.adapters.aws.settings import AwsSettings
    from tests.simulation.aws.cloud import Cloud, CloudClients

    clock = StandingClock(EPOCH)
    cloud = Cloud(Names(), clock, Random(1), Faults(Random(1), CALM), lambda table, item: None, lags=False)
    backend = await aws_backend(AwsSettings(bucket="bucket"), clock=clock, clients=CloudClients(cloud))
    log: Any = ProjectingLog(backend.log, backend.visibility)
    return dataclasses.replace(backend, log=log)


EMBEDDED: dict[str, Callable[[Request], Awaitable[Backend]]] = {"sqlite-memory": on_memory, "sqlite-file": on_a_file}
ON_AWS: dict[str, Callable[[Request], Awaitable[Backend]]] = {
    "dynamodb": on_dynamodb,
    "dynamodb-blobs": on_dynamodb_with_blobs,
}
BACKENDS = {**EMBEDDED, "sqlite-blobs": on_memory_with_blobs, **ON_AWS, "dynamodb-emulated": on_emulated_dynamodb}


@pytest.fixture(params=list(BACKENDS))
def backend_name(request: Request) -> str:
    return str(request.param)


@pytest.fixture
def cell_of_backend(request: Request, backend_name: str) -> None:
    """Sync fixtures are asked for before the loop runs."""
    if backend_name in ON_AWS:
        request.getfixturevalue("cell")


@pytest.fixture
async def backend(request: Request, backend_name: str, cell_of_backend: None) -> AsyncIterator[Backend]:
    backend = await BACKENDS[backend_name](request)
    yield backend
    await backend.close()


@pytest.fixture(params=list(EMBEDDED))
async def embedded(request: Request) -> AsyncIterator[Backend]:
    backend = await EMBEDDED[request.param](request)
    yield backend
    await backend.close()
