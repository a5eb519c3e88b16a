"""A namespace at ten times its limit reaches the engine as often as its limit allows, and another is served as if it
was alone (NFR-06, in counts; benchmarks/noisy_neighbour.py has the times)."""

import asyncio
import time
from typing import Any

import pytest
from stepwell.client import Client, NamespaceLimits, RPCError
from stepwell.transport.http import HttpTransport

from stepwell_server.entrypoints.embedded import open_transport
from tests.support.api_server import served_api

RATE = 20.0
CALLS = 400


async def start(client: Client, number: int) -> str:
    """Why it did not pass."""
    try:
        await client.start_workflow("t", id=f"w-{number}", task_queue="q")
    except RPCError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("transport", ["in process", "http"])
async def test_what_is_over_the_limit_never_reaches_the_engine(transport: str) -> None:
    async with served_api() as served:
        if transport == "http":
            made: Any = HttpTransport(served.address, total_wait=0.0)
        else:
            made = await open_transport(":memory:")
        noisy, quiet = Client(made, namespace="noisy"), Client(made, namespace="quiet")
        for name in ("noisy", "quiet"):
            await noisy.namespaces.register(
                name, limits=NamespaceLimits(requests_per_second=RATE * (name == "noisy") or None)
            )
        began = time.monotonic()
        outcomes = await asyncio.gather(
            *(start(noisy if number % 11 else quiet, number) for number in range(CALLS * 11 // 10))
        )
        elapsed = time.monotonic() - began
        of_quiet = [why for number, why in enumerate(outcomes) if not number % 11]
        of_noisy = [why for number, why in enumerate(outcomes) if number % 11]
        assert not any(of_quiet) and len(of_noisy) == CALLS
        passed = of_noisy.count("")
        assert 2 * RATE <= passed <= 2 * RATE + RATE * elapsed + 1
        assert all("'noisy' has used up its 20 calls a second" in why and "RPS_LIMIT" in why for why in of_noisy if why)
        listed = [each.id async for each in quiet.list_workflows()]
        assert len(listed) == len(of_quiet)
        there = [each.id async for each in noisy.list_workflows(page_size=1_000)]
        assert len(there) == passed
        await made.close()
