"""What both servers have in common that Temporal's Python SDK works with: the client and the worker, unmodified."""

import asyncio
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from peer import Peer
from temporal_app import KINDS, TASK_QUEUE, Sig
from temporalio.client import Client
from temporalio.service import RPCError


class TemporalPeer(Peer):
    port = 0
    client: Client | None = None

    def command(self) -> list[str]:
        """The server's, on a file of this peer's directory."""
        raise NotImplementedError

    def program(self, name: str) -> str:
        return os.path.join(os.path.dirname(sys.executable), name)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start_server(self, *, fresh: bool) -> None:
        if fresh:
            self.fresh_directory()
        self.spawn("server", self.command())
        for _ in range(600):
            try:
                client = await Client.connect(self.address)
                await client.count_workflows()  # the namespace is there
            except (RPCError, RuntimeError):
                await asyncio.sleep(0.1)
                continue
            return
        raise RuntimeError(f"the server did not come up at {self.address}")

    async def start_worker(self) -> None:
        self.spawn("worker", [sys.executable, f"{HERE}/temporal_app.py", self.address])

    async def reconnect(self) -> None:
        self.client = await Client.connect(self.address)

    async def up(self, *, fresh: bool) -> None:
        await self.start_server(fresh=fresh)
        await self.start_worker()
        await self.reconnect()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        assert self.client is not None
        await self.client.start_workflow(KINDS[kind], n, id=workflow_id, task_queue=TASK_QUEUE)

    async def wait(self, workflow_id: str) -> object:
        assert self.client is not None
        return await self.client.get_workflow_handle(workflow_id).result()

    async def signal(self, workflow_id: str, index: int) -> None:
        assert self.client is not None
        await self.client.get_workflow_handle(workflow_id).signal(Sig.message, index)
