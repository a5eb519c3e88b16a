"""Stepwell embedded: engine, worker and client in one process, on a SQLite file."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from harness import main
from peer import Peer
from stepwell.client import Client
from stepwell_app import KINDS, TASK_QUEUE, Sig, make_worker


class StepwellSqlite(Peer):
    name = "stepwell-sqlite"
    embedded = True

    async def up(self, *, fresh: bool) -> None:
        if fresh:
            self.fresh_directory()
        self.client = await Client.connect(f"sqlite:///{self.directory}/stepwell.db")
        self.worker = make_worker(self.client)
        await self.worker.__aenter__()

    async def down(self) -> None:
        await self.worker.__aexit__(None, None, None)
        await self.client.close()
        self.kill_all()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        await self.client.start_workflow(KINDS[kind], n, id=workflow_id, task_queue=TASK_QUEUE)

    async def wait(self, workflow_id: str) -> object:
        return await self.client.get_workflow_handle(workflow_id).result()

    async def signal(self, workflow_id: str, index: int) -> None:
        await self.client.get_workflow_handle(workflow_id).signal(Sig.message, index)


if __name__ == "__main__":
    main(StepwellSqlite)
