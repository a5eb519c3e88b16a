"""Whether a namespace at ten times its limit makes another's tasks wait (NFR-06).

    python benchmarks/noisy_neighbour.py [--seconds 10] [--rounds 5] [--rate 30] [--times 10]

One engine on a file. In ``quiet`` a start is made 40 times a second and its first workflow task is polled for; what is
timed is from the start's call until the task is handed over. In every other half of a round, ``noisy`` calls
``--times`` as often as its limit of ``--rate`` calls a second allows. Halves are short and take turns, so that both see
the same machine. Printed: how many noisy calls passed, and the latencies with their ratio; the target is 1.5 at p50
and p95.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.errors import ResourceExhausted
from stepwell.api.namespaces import NamespaceLimits
from stepwell.api.operations import Operation

from stepwell_server.entrypoints.hosting import HostedEngine
from stepwell_server.frontend.routes import HANDLERS

QUIET, NOISY = "quiet", "noisy"
QUIET_RATE = 40.0
WORKER = r.WorkerInfo(identity="w", worker_key="k")
WAIT = timedelta(seconds=10)


class Load:
    def __init__(self, hosted: HostedEngine) -> None:
        self._hosted = hosted
        self._number = 0
        self.passed = self.refused = 0

    async def call(self, operation: Operation[Any, Any], **fields: Any) -> Any:
        hosted = self._hosted
        return await hosted.limiter.carry_out(
            HANDLERS[operation.name], hosted.engine, operation, operation.request_type(**fields)
        )

    async def _start(self, namespace: str) -> None:
        self._number += 1
        await self.call(
            o.START_WORKFLOW,
            namespace=namespace,
            workflow_id=f"w-{self._number}",
            workflow_type="t",
            task_queue="q",
            request_id=str(self._number),
        )

    async def dispatch(self) -> float:
        """Seconds from a start until a poll has its task."""
        poll = asyncio.create_task(
            self.call(o.POLL_WORKFLOW_TASK, namespace=QUIET, task_queue="q", worker=WORKER, timeout=WAIT)
        )
        await asyncio.sleep(0)
        began = time.perf_counter()
        await self._start(QUIET)
        tasks = (await poll).tasks
        assert len(tasks) == 1
        return time.perf_counter() - began

    async def make_noise(self, rate: float, ends: float) -> None:
        """Starts without waiting for one before the next."""
        running: set[asyncio.Task[None]] = set()
        following = time.perf_counter()
        while following < ends:
            task = asyncio.create_task(self._noise())
            running.add(task)
            task.add_done_callback(running.discard)
            following += 1 / rate
            await asyncio.sleep(max(0.0, following - time.perf_counter()))
        await asyncio.gather(*running)

    async def _noise(self) -> None:
        try:
            await self._start(NOISY)
        except ResourceExhausted:
            self.refused += 1
        else:
            self.passed += 1


async def half(load: Load, seconds: float, noise: float) -> list[float]:
    ends = time.perf_counter() + seconds
    noisy = asyncio.create_task(load.make_noise(noise, ends)) if noise else None
    found: list[float] = []
    while time.perf_counter() < ends:
        took = await load.dispatch()
        found.append(took)
        await asyncio.sleep(max(0.0, 1 / QUIET_RATE - took))
    if noisy is not None:
        await noisy
    return found


async def measure(seconds: float, rounds: int, rate: float, times: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        hosted = await HostedEngine.start(Path(folder) / "n.db")
        load = Load(hosted)
        await load.call(o.REGISTER_NAMESPACE, namespace=QUIET)
        await load.call(o.REGISTER_NAMESPACE, namespace=NOISY, limits=NamespaceLimits(requests_per_second=rate))
        await half(load, 1.0, 0.0)
        alone: list[float] = []
        beside: list[float] = []
        for _ in range(rounds):
            alone += await half(load, seconds / 2, 0.0)
            beside += await half(load, seconds / 2, rate * times)
        await hosted.stop()
    made = load.passed + load.refused
    print(f"noisy: {made} calls, {load.passed} passed ({rounds * seconds / 2 * rate:.0f} at its rate)")
    for name, quantile in (("p50", 0.50), ("p95", 0.95)):
        one, other = (_quantile(times_, quantile) * 1_000 for times_ in (alone, beside))
        print(f"quiet, start to task, {name}: alone {one:.2f} ms, beside the noise {other:.2f} ms, {other / one:.2f} x")


def _quantile(values: list[float], quantile: float) -> float:
    return statistics.quantiles(values, n=100)[round(quantile * 100) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=30.0)
    parser.add_argument("--times", type=float, default=10.0)
    options = parser.parse_args()
    asyncio.run(measure(options.seconds, options.rounds, options.rate, options.times))


if __name__ == "__main__":
    main()
