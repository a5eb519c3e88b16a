"""The benchmark's workflows and step in Stepwell, shared by both Stepwell peers; run as a program it is a worker."""

import asyncio
import os
import sys
from datetime import timedelta

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import steplog
from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.worker import Worker

TASK_QUEUE = "bench"
TIMEOUT = timedelta(seconds=60)


@activity.defn
async def step(workflow_id: str, index: int, previous: int) -> int:
    return steplog.step(workflow_id, index, previous)


@workflow.defn
async def seq(n: int) -> list[int]:
    workflow_id, previous, tokens = workflow.info().workflow_id, 0, []
    for index in range(n):
        previous = await workflow.execute_activity(
            step, args=[workflow_id, index, previous], start_to_close_timeout=TIMEOUT
        )
        if n <= 3:
            tokens.append(previous)
    return tokens


@workflow.defn
async def fan(n: int) -> int:
    workflow_id = workflow.info().workflow_id
    calls = [
        workflow.execute_activity(step, args=[workflow_id, index, 0], start_to_close_timeout=TIMEOUT)
        for index in range(n)
    ]
    return len(await asyncio.gather(*calls))


@workflow.defn
async def waves(n: int) -> int:
    workflow_id = workflow.info().workflow_id
    calls = (
        workflow.execute_activity(step, args=[workflow_id, index, 0], start_to_close_timeout=TIMEOUT)
        for index in range(n)
    )
    return len((await workflow.fan_out(calls, max_concurrency=1_500)).results)


@workflow.defn
async def timer(n: int) -> int:
    with workflow.unsafe.sandbox_unrestricted():
        steplog.log("S", workflow.info().workflow_id)
    await workflow.sleep(n)
    with workflow.unsafe.sandbox_unrestricted():
        steplog.log("K", workflow.info().workflow_id)
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


KINDS = {"seq": seq, "fan": fan, "waves": waves, "timer": timer, "sig": Sig.run}


def make_worker(client: Client) -> Worker:
    return Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[seq, fan, waves, timer, Sig],
        activities=[step],
        max_concurrent_activities=400,
        max_eager_activity_reservations_per_workflow_task=0 if os.environ.get("BENCH_FUSING") == "off" else None,
    )


async def run_worker(url: str) -> None:
    client = await Client.connect(url)
    steplog.log("B", "boot")
    await make_worker(client).run()


if __name__ == "__main__":
    asyncio.run(run_worker(sys.argv[1]))
