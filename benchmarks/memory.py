"""Memory of a server with 100,000 open workflows that wait on a timer: ``python benchmarks/memory.py [--open 100000]``.

Prints the server's proportional set size before, after the starts and after a restart, and how long the restart took.
The target is 1 GiB.
"""

import argparse
import asyncio
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "peers")]

from peer import Tail
from processes import memory_mb
from stepwell_http import StepwellHttp
from workloads import new_id

WAIT_SECONDS = 30 * 24 * 3600


async def measure(count: int) -> dict[str, float]:
    peer = StepwellHttp()
    peer.truncate_log()
    await peer.up(fresh=True)
    try:
        figures: dict[str, float] = {"open": count, "empty_mb": memory_mb(peer.pids("server"))}
        semaphore = asyncio.Semaphore(100)
        begin = time.perf_counter()

        async def start() -> None:
            async with semaphore:
                await peer.start("timer", new_id("memory"), WAIT_SECONDS)

        for _ in range(0, count, 10_000):
            await asyncio.gather(*[start() for _ in range(min(count, 10_000))])
        figures["start_all_s"] = round(time.perf_counter() - begin, 1)
        tail, waiting = Tail(peer.log), 0
        while waiting < count:  # until every workflow has got to its timer
            await asyncio.sleep(0.5)
            waiting += sum(line[0] == "S" for line in tail.new())
        figures["all_waiting_s"] = round(time.perf_counter() - begin, 1)
        figures["after_starts_mb"] = memory_mb(peer.pids("server"))
        figures["disk_mb"] = round(peer.disk() / 2**20, 1)
        peer.kill("server")
        begin = time.perf_counter()
        await peer.start_server(fresh=False)
        await peer.reconnect()
        await peer.start("seq", "after-restart", 1)
        await peer.wait("after-restart")
        figures["restart_to_first_result_s"] = round(time.perf_counter() - begin, 2)
        figures["after_restart_mb"] = memory_mb(peer.pids("server"))
        return figures
    finally:
        await peer.down()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", type=int, default=100_000)
    arguments = parser.parse_args()
    print(json.dumps(asyncio.run(measure(arguments.open))))


if __name__ == "__main__":
    main()
