"""The benchmark's workflows and step in Temporal's Python SDK, as its documentation writes them; run as a program it is
a worker."""

import asyncio
import os
import sys
from datetime import timedelta

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import steplog

TASK_QUEUE = "bench"
TIMEOUT = timedelta(seconds=60)


@activity.defn
async def step(workflow_id: str, index: int, previous: int) -> int:
    return steplog.step(workflow_id, index, previous)


@workflow.defn
class Seq:
    @workflow.run
    async def run(self, n: int) -> list[int]:
        workflow_id, previous, tokens = workflow.info().workflow_id, 0, []
        for index in range(n):
            previous = await workflow.execute_activity(
                step, args=[workflow_id, index, previous], start_to_close_timeout=TIMEOUT
            )
            if n <= 3:
                tokens.append(previous)
        return tokens


@workflow.defn
class Fan:
    @workflow.run
    async def run(self, n: int) -> int:
        workflow_id = workflow.info().workflow_id
        calls = [
            workflow.execute_activity(step, args=[workflow_id, index, 0], start_to_close_timeout=TIMEOUT)
            for index in range(n)
        ]
        return len(await asyncio.gather(*calls))


@workflow.defn
class Timer:
    @workflow.run
    async def run(self, n: int) -> int:
        workflow_id = workflow.info().workflow_id
        with workflow.unsafe.sandbox_unrestricted():
            steplog.log("S", workflow_id)
        await workflow.sleep(n)
        with workflow.unsafe.sandbox_unrestricted():
            steplog.log("K", workflow_id)
        return n


@workflow.defn
class Sig:
    def __init__(self) -> None:
        self.handled = 0

    @workflow.run
    async def run(self, n: int) -> int:
        await workflow.wait_condition(lambda: self.handled >= n)
        return n

    @workflow.signal
    def message(self, index: int) -> None:
        with workflow.unsafe.sandbox_unrestricted():
            steplog.log("H", workflow.info().workflow_id, index)
        self.handled += 1


KINDS = {"seq": Seq.run, "fan": Fan.run, "timer": Timer.run, "sig": Sig.run}


async def run_worker(address: str) -> None:
    client = await Client.connect(address)
    worker = Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[Seq, Fan, Timer, Sig],
        activities=[step],
        max_concurrent_activities=400,  # as the worker of stepwell_app.py
    )
    steplog.log("B", "boot")
    await worker.run()


if __name__ == "__main__":
    asyncio.run(run_worker(sys.argv[1]))
