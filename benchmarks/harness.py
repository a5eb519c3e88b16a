"""Runs workloads against one peer, a JSON line for each: ``python peers/NAME.py W1,W2 --runs 3 [--scale 0.1]``."""

import argparse
import asyncio
import json
import os
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from peer import Peer
from processes import busy_seconds
from recovery import child, w7, w8
from workloads import TIMED, new_id

WORKLOADS = {**TIMED, "W7": w7, "W8": w8}


async def _quiet(most: float, wait: float) -> float:
    """Wait until other work on the machine uses fewer than ``most`` cores, at most ``wait`` seconds."""
    begin = time.time()
    while True:
        busy, own, at = busy_seconds(), time.process_time(), time.time()
        await asyncio.sleep(1.0)
        foreign = (busy_seconds() - busy - (time.process_time() - own)) / (time.time() - at)
        if foreign < most or time.time() - begin > wait:
            return round(foreign, 2)


async def _drive(peer: Peer, names: list[str], arguments: argparse.Namespace) -> None:
    up = False
    for name in names:
        for run in range(arguments.runs):
            if not up:
                await peer.up(fresh=True)
                up = True
                warm = new_id("warm")
                await peer.start("seq", warm, 3)
                await peer.wait(warm)
            foreign = await _quiet(arguments.quiet, arguments.quiet_wait)
            begin = time.time()
            try:
                figures = await asyncio.wait_for(WORKLOADS[name](peer, arguments.scale), arguments.timeout)
            except Exception as error:
                traceback.print_exc()
                figures = {"error": repr(error)[:300]}
            row = {"peer": peer.name, "workload": name, "run": run, "foreign_cores": foreign}
            print(json.dumps({**row, "took_s": round(time.time() - begin, 1), **figures}), flush=True)
            if name in ("W7", "W8"):
                await peer.down()
                up = False
    if up:
        await peer.down()


def main(peer_type: type[Peer]) -> None:
    if sys.argv[1:2] == ["--child"]:
        asyncio.run(child(peer_type(), sys.argv[2], sys.argv[3:]))
        os._exit(0)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workloads", help="comma-separated, of W1 to W8")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="size of each workload; 1 is what is published")
    parser.add_argument("--timeout", type=float, default=560)
    parser.add_argument("--quiet", type=float, default=0.6, help="start when others use fewer cores than this")
    parser.add_argument("--quiet-wait", type=float, default=5)
    arguments = parser.parse_args()
    peer = peer_type()
    try:
        asyncio.run(_drive(peer, arguments.workloads.split(","), arguments))
    finally:
        peer.kill_all()
