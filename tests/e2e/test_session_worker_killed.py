"""AC-29 with real processes: a session worker is killed in the middle, and the workflow begins anew on another."""

import asyncio
import sys
from contextlib import ExitStack
from pathlib import Path

from stepwell.client import Client
from stepwell.worker import Worker

from tests.e2e.session_worker import QUEUE, Convert
from tests.support.api_server import served_api
from tests.support.processes import Running, running

SCRIPT = Path(__file__).with_name("session_worker.py")


async def test_a_killed_worker_breaks_its_session(tmp_path: Path) -> None:
    """Within the heartbeat timeout, long before the limits of the activity that ran in it."""
    with ExitStack() as stack:
        async with served_api() as api, await Client.connect(api.address) as client:

            async def process(name: str) -> Running:
                found = stack.enter_context(running([sys.executable, SCRIPT, api.address, name], tmp_path))
                await asyncio.to_thread(found.wait_for, "ready")
                return found

            async with Worker(client, task_queue=QUEUE, workflows=[Convert]):
                first = await process("first")
                handle = await client.start_workflow(Convert.run, id="convert", task_queue=QUEUE)
                await asyncio.to_thread(first.wait_for, "has the file")
                await process("second")
                first.process.kill()
                async with asyncio.timeout(25):
                    assert await handle.result() == ["first", "broke", "second", "second"]
