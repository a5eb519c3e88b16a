"""How soon a container of the AWS control plane starts a workflow and hands its first task to a poll that waits.

    python benchmarks/aws_latency.py [--starts 500] [--pollers 2]

`stepwell server --aws` runs as a process of its own on the tests' emulator; a client starts one workflow after the
other while polls wait, over HTTP. Nobody completes the tasks, so what is timed is a start, its commit and its hand-out
alone. Beside it, in the same seconds: one conditional put of an item of that size straight to the emulator. A figure
says how many of these it took, since the emulator is not DynamoDB. Targets (design, budgets): start p99 below 100 ms,
dispatch p99 below 50 ms.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.transport import Transport
from stepwell.transport.address import open_transport

from stepwell_server.adapters.aws.client import AwsClients
from tests.kill.processes import container, free_port, wait_until_serving
from tests.support.aws.cells import Cell, Provisioning
from tests.support.aws.moto_server import moto_server

QUEUE = "latency"
ITEM_BYTES = 800
"""About what the commit of a start has."""
WARM_UP = 50


class Handed:
    """When each workflow's task reached a poll."""

    def __init__(self, transport: Transport, pollers: int) -> None:
        self._transport = transport
        self._futures: dict[str, asyncio.Future[float]] = {}
        self._polls = [asyncio.create_task(self._poll(number)) for number in range(pollers)]

    def of(self, workflow_id: str) -> "asyncio.Future[float]":
        return self._futures.setdefault(workflow_id, asyncio.get_running_loop().create_future())

    async def _poll(self, number: int) -> None:
        request = r.PollWorkflowTaskRequest(task_queue=QUEUE, worker=r.WorkerInfo(identity=f"poller-{number}"))
        while True:
            answer = await self._transport.call(o.POLL_WORKFLOW_TASK, request)
            at = time.perf_counter()
            for task in answer.tasks:
                future = self.of(task.execution.workflow_id)
                if not future.done():
                    future.set_result(at)

    async def stop(self) -> None:
        for poll in self._polls:
            poll.cancel()
        await asyncio.gather(*self._polls, return_exceptions=True)


class Times:
    """Seconds of each kind, in the order in which they were taken."""

    def __init__(self) -> None:
        self.put: list[float] = []
        self.start: list[float] = []
        self.dispatch: list[float] = []
        self.both: list[float] = []


async def measure(address: str, table: str, starts: int, pollers: int) -> Times:
    transport = await open_transport(address)
    clients = AwsClients()
    handed, times = Handed(transport, pollers), Times()
    await asyncio.sleep(1)
    for number in range(WARM_UP + starts):
        if number == WARM_UP:
            times = Times()
        times.put.append(await _put(clients, table, number))
        request = r.StartWorkflowRequest(workflow_id=f"w-{number}", workflow_type="Latency", task_queue=QUEUE)
        began = time.perf_counter()
        await transport.call(o.START_WORKFLOW, request)
        acknowledged = time.perf_counter()
        at = await asyncio.wait_for(handed.of(f"w-{number}"), 30)
        times.start.append(acknowledged - began)
        times.dispatch.append(max(at - acknowledged, 0.0))
        times.both.append(max(at, acknowledged) - began)
    await handed.stop()
    await transport.close()
    await clients.close()
    return times


async def _put(clients: AwsClients, table: str, number: int) -> float:
    item = {"pk": {"S": f"latency#{number}"}, "sk": {"S": "C#1"}, "h": {"B": bytes(ITEM_BYTES)}}
    began = time.perf_counter()
    await clients.service("dynamodb").call(
        "put_item", TableName=table, Item=item, ConditionExpression="attribute_not_exists(pk)"
    )
    return time.perf_counter() - began


def _print(times: Times) -> None:
    floor = statistics.median(times.put)
    rows = (
        ("put to the emulator", times.put),
        ("start, acknowledged", times.start),
        ("then until its task is at the poll", times.dispatch),
        ("start until its task is at the poll", times.both),
    )
    print(f"{'':38}{'p50 ms':>9}{'p99 ms':>9}{'p50 / put':>11}{'p99 / put':>11}")
    for name, values in rows:
        ordered = sorted(values)
        p50, p99 = (ordered[min(int(len(ordered) * part), len(ordered) - 1)] for part in (0.5, 0.99))
        print(f"{name:38}{p50 * 1_000:9.1f}{p99 * 1_000:9.1f}{p50 / floor:11.1f}{p99 / floor:11.1f}")


def _run(cell: Cell, starts: int, pollers: int) -> Times:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "sdk")])
        process = container(1, port, {**cell.variables, "PYTHONPATH": paths}, Path(folder) / "container.log")
        process.start()
        try:
            if not wait_until_serving(f"http://127.0.0.1:{port}", 60):
                raise SystemExit(f"the container did not serve:\n{process.tail()}")
            return asyncio.run(measure(f"http://127.0.0.1:{port}", cell.names.ctl_table, starts, pollers))
        finally:
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=500)
    parser.add_argument("--pollers", type=int, default=2, help="polls that wait at the same time")
    options = parser.parse_args()
    with moto_server() as environment:
        os.environ.update(environment)
        provisioning = Provisioning(environment)
        try:
            _print(_run(provisioning.cell(), options.starts, options.pollers))
        finally:
            provisioning.close()


if __name__ == "__main__":
    main()
