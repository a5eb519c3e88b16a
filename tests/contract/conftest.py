"""Every adapter of the ports runs through the same suites: add its maker to ``BACKENDS``."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend

BACKENDS: dict[str, Callable[[Path], Backend]] = {
    "sqlite-memory": lambda folder: embedded_backend(":memory:"),
    "sqlite-file": lambda folder: embedded_backend(folder / "contract.db"),
}


@pytest.fixture(params=list(BACKENDS))
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Backend]:
    backend = BACKENDS[request.param](tmp_path)
    yield backend
    await backend.close()
