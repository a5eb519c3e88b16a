"""How late deadlines of the timer table fire, with the sweeper on DynamoDB as the tests' emulator has it.

    python benchmarks/timer_lag.py [--timers 600] [--seconds 30] [--partitions 4]

Deadlines are armed at an even rate, each for 0 to 5 s ahead, by the process that also sweeps; none has a workflow, so
what is measured is the table, the leases and the sweeper alone. Beside it: one write and one read of the emulator, and
the calls of an idle sweeper. With ``AWS_ENDPOINT_URL`` set it runs there, in a cell of its own that is not removed.
"""

import argparse
import asyncio
import os
import random
import statistics
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell_server.adapters.aws.client import AwsClients, ServiceClient
from stepwell_server.adapters.aws.timer_leases import TimerLeases
from stepwell_server.adapters.aws.timer_rows import TimerRows
from stepwell_server.adapters.system import SystemClock
from stepwell_server.history.commit import Awaited, ExecutionKey
from stepwell_server.timer_sweeper.arming import Arming
from stepwell_server.timer_sweeper.bucket_sweeper import BucketSweeper
from stepwell_server.timer_sweeper.buckets import Layout, TimerRow
from stepwell_server.timer_sweeper.layouts import Layouts
from tests.support.aws.cells import Provisioning
from tests.support.aws.moto_server import moto_server

IDLE_SECONDS = 20.0


class CountedClient:
    """A client that counts and times what goes through it."""

    def __init__(self, inner: ServiceClient) -> None:
        self._inner = inner
        self.calls: Counter[str] = Counter()
        self.seconds: dict[str, list[float]] = {}

    async def call(self, operation: str, /, **parameters: Any) -> dict[str, Any]:
        began = time.perf_counter()
        answer = await self._inner.call(operation, **parameters)
        self.calls[operation] += 1
        self.seconds.setdefault(operation, []).append(time.perf_counter() - began)
        return answer


class Lags:
    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self.seconds: dict[ExecutionKey, float] = {}
        self.repeats = 0

    async def fire(self, row: TimerRow) -> bool:
        if row.key in self.seconds:
            self.repeats += 1
        else:
            self.seconds[row.key] = (self._clock.now() - row.fire_at).total_seconds()
        return True


async def measure(table: str, ctl: str, timers: int, seconds: float, layouts: Layouts) -> None:
    clients, clock = AwsClients(), SystemClock()
    counted: Any = CountedClient(clients.service("dynamodb"))
    rows = TimerRows(counted, table, layouts)
    lags = Lags(clock)
    sweeper = BucketSweeper(rows, TimerLeases(counted, ctl), clock, lags.fire, "benchmark", layouts)
    sweeper.start()
    await sweeper.ready()
    while sweeper.lag() > 1.0:  # what was before, of a table that never had a sweeper
        await asyncio.sleep(0.1)
    counted.seconds.clear()
    arming = Arming(rows, clock)
    began = time.monotonic()
    for number in range(timers):
        await asyncio.sleep(max(began + number * seconds / timers - time.monotonic(), 0))
        ahead = timedelta(seconds=random.random() * 5)
        await arming.arm(ExecutionKey("default", f"w-{number}"), clock.now() + ahead, Awaited(1))
    async with asyncio.timeout(60):
        while len(lags.seconds) < timers:
            await asyncio.sleep(0.1)
    late = sorted(lags.seconds.values())
    print(f"{timers} deadlines in {time.monotonic() - began:.0f} s: {_quantiles(late)}, fired again {lags.repeats}")
    for operation, took in counted.seconds.items():
        print(f"  {operation}: {len(took)} calls, {_quantiles(sorted(took))}")
    counted.calls.clear()
    await asyncio.sleep(IDLE_SECONDS)
    minute = {operation: round(count * 60 / IDLE_SECONDS) for operation, count in counted.calls.items()}
    print(f"  calls per idle minute: {minute}")
    await sweeper.stop()
    await clients.close()


def _quantiles(values: list[float]) -> str:
    at = {name: values[min(int(len(values) * part), len(values) - 1)] for name, part in (("p50", 0.5), ("p99", 0.99))}
    found = ", ".join(f"{name} {value * 1_000:.0f} ms" for name, value in at.items())
    return f"mean {statistics.fmean(values) * 1_000:.0f} ms, {found}, max {values[-1] * 1_000:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timers", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--partitions", type=int, default=4)
    options = parser.parse_args()
    with moto_server() as environment:
        os.environ.update(environment)
        provisioning = Provisioning(environment)
        names = provisioning.cell().names
        layouts = Layouts((Layout(1, options.partitions),))
        asyncio.run(measure(names.timer_table, names.ctl_table, options.timers, options.seconds, layouts))
        provisioning.close()


if __name__ == "__main__":
    main()
