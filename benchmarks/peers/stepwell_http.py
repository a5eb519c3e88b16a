"""Stepwell as ``stepwell dev`` and a worker process, over loopback HTTP."""

import asyncio
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from harness import main
from peer import Peer
from stepwell.client import Client
from stepwell_app import KINDS, TASK_QUEUE, Sig

PORT = 17400
URL = f"http://127.0.0.1:{PORT}"


class StepwellHttp(Peer):
    name = "stepwell-http"
    client: Client | None = None

    async def start_server(self, *, fresh: bool) -> None:
        if fresh:
            self.fresh_directory()
        program = os.path.join(os.path.dirname(sys.executable), "stepwell")
        self.spawn("server", [program, "dev", "--db", f"{self.directory}/stepwell.db", "--port", str(PORT)])
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", PORT)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
        raise RuntimeError("stepwell dev did not come up")

    async def start_worker(self) -> None:
        self.spawn("worker", [sys.executable, f"{HERE}/stepwell_app.py", URL])

    async def reconnect(self) -> None:
        if self.client is not None:
            await self.client.close()
        self.client = await Client.connect(URL)

    async def up(self, *, fresh: bool) -> None:
        await self.start_server(fresh=fresh)
        await self.start_worker()
        await self.reconnect()

    async def down(self) -> None:
        if self.client is not None:
            await self.client.close()
            self.client = None
        self.kill_all()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        assert self.client is not None
        await self.client.start_workflow(KINDS[kind], n, id=workflow_id, task_queue=TASK_QUEUE)

    async def wait(self, workflow_id: str) -> object:
        assert self.client is not None
        return await self.client.get_workflow_handle(workflow_id).result()

    async def signal(self, workflow_id: str, index: int) -> None:
        assert self.client is not None
        await self.client.get_workflow_handle(workflow_id).signal(Sig.message, index)


if __name__ == "__main__":
    main(StepwellHttp)
