"""DBOS embedded in the client's process, on a SQLite file, as it comes."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import steplog
from dbos import DBOS, DBOSConfig, SetWorkflowID
from harness import main
from peer import Peer


@DBOS.step()
async def step(workflow_id: str, index: int, previous: int) -> int:
    return steplog.step(workflow_id, index, previous)


@DBOS.workflow()
async def seq(n: int) -> list[int]:
    workflow_id, previous, tokens = DBOS.workflow_id, 0, []
    for index in range(n):
        previous = await step(workflow_id, index, previous)
        if n <= 3:
            tokens.append(previous)
    return tokens


@DBOS.workflow()
async def fan(n: int) -> int:
    workflow_id = DBOS.workflow_id
    return len(await asyncio.gather(*[step(workflow_id, i, 0) for i in range(n)]))


@DBOS.workflow()
async def timer(n: int) -> int:
    steplog.log("S", DBOS.workflow_id)
    await DBOS.sleep_async(n)
    steplog.log("K", DBOS.workflow_id)
    return n


@DBOS.workflow()
async def sig(n: int) -> int:
    for _ in range(n):
        index = await DBOS.recv_async("messages", timeout_seconds=60)
        steplog.log("H", DBOS.workflow_id, index)
    return n


KINDS = {"seq": seq, "fan": fan, "timer": timer, "sig": sig}


class DbosSqlite(Peer):
    name = "dbos-sqlite"
    embedded = True

    async def up(self, *, fresh: bool) -> None:
        if fresh:
            self.fresh_directory()
        config: DBOSConfig = {
            "name": "bench",
            "system_database_url": f"sqlite:///{self.directory}/dbos.sqlite",
            "log_level": "WARNING",
            "application_version": "1",
        }
        DBOS(config=config)
        DBOS.launch()
        self.handles = {}

    async def down(self) -> None:
        DBOS.destroy()
        self.kill_all()

    async def start(self, kind: str, workflow_id: str, n: int) -> None:
        with SetWorkflowID(workflow_id):
            self.handles[workflow_id] = await DBOS.start_workflow_async(KINDS[kind], n)

    async def wait(self, workflow_id: str) -> object:
        handle = self.handles.pop(workflow_id, None) or await DBOS.retrieve_workflow_async(workflow_id)
        return await handle.get_result()

    async def signal(self, workflow_id: str, index: int) -> None:
        await DBOS.send_async(workflow_id, index, "messages")


if __name__ == "__main__":
    main(DbosSqlite)
