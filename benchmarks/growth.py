"""Cost of the n-th step: one workflow of 8,000 sequential steps in process; figures per 1,000 steps must stay flat.

``python benchmarks/growth.py [--steps 8000]`` prints for each thousand: seconds, CPU seconds, bytes of file. With
``--fan-out`` the steps are activities of one fan-out, 1,500 at a time: ``--fan-out --steps 10000``.
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
from stepwell_sqlite import StepwellSqlite


async def measure(kind: str, steps: int) -> list[dict[str, float]]:
    peer = StepwellSqlite()
    peer.truncate_log()
    await peer.up(fresh=True)
    tail = Tail(peer.log)
    rows = []
    await peer.start(kind, "growth", steps)
    done, mark = 0, (time.perf_counter(), time.process_time(), peer.disk())
    while done < steps:
        await asyncio.sleep(0.005)
        for line in tail.new():
            done += line[0] == "X"
            if line[0] == "X" and done % 1000 == 0:
                now = (time.perf_counter(), time.process_time(), peer.disk())
                wall, cpu, disk = (b - a for a, b in zip(mark, now, strict=True))
                rows.append({"steps": done, "wall_s": round(wall, 3), "cpu_s": round(cpu, 3), "disk_kb": disk // 1024})
                mark = now
    await peer.wait("growth")
    await peer.down()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=8_000)
    parser.add_argument("--fan-out", action="store_true")
    options = parser.parse_args()
    for row in asyncio.run(measure("waves" if options.fan_out else "seq", options.steps)):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
