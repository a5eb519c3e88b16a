"""Whose time a step through the Temporal gateway is: the server's, or the worker's, which is Temporal's Python SDK.

    python benchmarks/gateway_shares.py [--steps 400]

One sequential workflow, and what the server sees of it: when each call came and when it was answered. What is left
between an answer and the next call is the worker's (with both ways through loopback), so no server can make a step
shorter than that. Medians in ms.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import sys
import time
from bisect import bisect
from itertools import pairwise
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

CALLS = "calls.json"
COMPLETED, DONE, POLL = "RespondWorkflowTaskCompleted", "RespondActivityTaskCompleted", "PollWorkflowTaskQueue"
OWN_PORT, PORT = 17411, 17412


def serve(folder: str) -> None:
    """``stepwell dev``, which writes down its calls when it ends."""
    from stepwell.cli import main

    from stepwell_server.temporal_gateway.http2 import Http2Application, Incoming

    calls: list[tuple[str, float, float]] = []
    inner = Http2Application._answer

    async def answer(self: Http2Application, call: Incoming) -> None:
        came = time.monotonic()
        await inner(self, call)
        calls.append((call.path.rpartition("/")[2], came, time.monotonic()))

    timed: Any = Http2Application
    timed._answer = answer
    ports = ["--port", str(OWN_PORT), "--temporal-port", str(PORT)]
    try:
        main(["dev", "--db", os.path.join(folder, "stepwell.db"), *ports])
    finally:
        with open(os.path.join(folder, CALLS), "w") as file:
            json.dump(calls, file)


async def run(steps: int) -> str:
    from temporal_peer import TemporalPeer

    class Timed(TemporalPeer):
        name = "gateway-shares"
        port = PORT

        def command(self) -> list[str]:
            return [sys.executable, os.path.abspath(__file__), "--serve", self.directory]

    peer = Timed()
    try:
        await peer.up(fresh=True)
        for name, count in (("warm", 50), ("timed", steps)):
            await peer.start("seq", name, count)
            await peer.wait(name)
        server = peer.processes["server"]
        server.send_signal(signal.SIGINT)
        await asyncio.to_thread(server.wait, 30)
    finally:
        await peer.down()
    return peer.directory


def shares(calls: list[tuple[str, float, float]], steps: int) -> dict[str, list[float]]:
    """In seconds, of the last steps."""
    by_name = {
        name: sorted((came, answered) for each, came, answered in calls if each == name) for name in (COMPLETED, DONE)
    }
    handed = sorted(answered for name, _, answered in calls if name == POLL)
    found: dict[str, list[float]] = {
        "server: workflow task completed": [],
        "worker: activity": [],
        "server: activity completed, next workflow task out": [],
        "worker: workflow task": [],
        "all": [],
    }
    completed = by_name[COMPLETED][-steps - 1 :]
    for (came, answered), (after, _) in pairwise(completed):
        at = bisect(by_name[DONE], (answered, 0.0))
        out = bisect(handed, by_name[DONE][at][0]) if at < len(by_name[DONE]) else len(handed)
        if out == len(handed) or handed[out] > after:
            continue  # another task than that of the step
        done, given = by_name[DONE][at][0], handed[out]
        times = (answered - came, done - answered, given - done, after - given, after - came)
        for kind, took in zip(found.values(), times, strict=True):
            kind.append(took)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    folder = asyncio.run(run(options.steps))
    with open(os.path.join(folder, CALLS)) as file:
        found = shares([(name, came, answered) for name, came, answered in json.load(file)], options.steps)
    for kind, times in found.items():
        print(f"{statistics.median(times) * 1000:7.2f}  {kind} ({len(times)})")


if __name__ == "__main__":
    main()
