"""The workloads W1 to W6: what is timed while the engine is up. W7 and W8 are in ``recovery.py``."""

import asyncio
import os
import statistics
import time
import uuid
from itertools import pairwise

from peer import Peer
from processes import memory_mb

Figures = dict[str, float | int | str | list[str]]
IN_FLIGHT = 200


def percentile(values: list[float], p: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(p * len(ordered)))] if ordered else float("nan")


def ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def new_id(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


async def w1(peer: Peer, scale: float) -> Figures:
    """Sequential step latency: workflows of 100 steps, one at a time; the gap between consecutive step bodies."""
    peer.truncate_log()
    walls = []
    for _ in range(max(2, int(10 * scale))):
        workflow_id = new_id("w1")
        begin = time.perf_counter()
        await peer.start("seq", workflow_id, 100)
        await peer.wait(workflow_id)
        walls.append(time.perf_counter() - begin)
    times: dict[str, list[float]] = {}
    for _, workflow_id, _, _, _, at, _ in peer.lines("X"):
        times.setdefault(workflow_id, []).append(at)
    gaps = [b - a for run in times.values() for a, b in pairwise(run)]
    return {
        "step_ms_p50": ms(percentile(gaps, 0.5)),
        "step_ms_p99": ms(percentile(gaps, 0.99)),
        "workflow_ms_p50": ms(statistics.median(walls)),
    }


async def w2(peer: Peer, scale: float) -> Figures:
    """Throughput of 3-step workflows, 200 in flight; CPU of everything but a separate client."""
    count = int(2000 * scale)
    peer.truncate_log()
    semaphore = asyncio.Semaphore(IN_FLIGHT)
    disk, engine, server, client = peer.disk(), peer.cpu(), peer.cpu("server"), time.process_time()
    begin = time.perf_counter()

    async def one() -> None:
        async with semaphore:
            workflow_id = new_id("w2")
            await peer.start("seq", workflow_id, 3)
            await peer.wait(workflow_id)

    await asyncio.gather(*[one() for _ in range(count)])
    elapsed = time.perf_counter() - begin
    client = time.process_time() - client
    cpu = peer.cpu() - engine + (client if peer.embedded else 0.0)
    server = peer.cpu("server") - server
    return {
        "steps_per_s": round(3 * count / elapsed, 1),
        "workflows_per_s": round(count / elapsed, 1),
        "cpu_s_per_1000_steps": round(cpu / (3 * count) * 1000, 3),
        "server_cpu_s_per_1000_steps": round(server / (3 * count) * 1000, 3),
        "client_cpu_s": round(client, 2),
        "memory_mb": memory_mb([os.getpid()], children=False) if peer.embedded else memory_mb(peer.pids("server")),
        "disk_bytes_per_workflow": round((peer.disk() - disk) / count),
    }


async def w3(peer: Peer, scale: float) -> Figures:
    """Start latency: until acknowledged, and until the result of a 1-step workflow is back."""
    peer.truncate_log()
    acknowledged, ended = [], []
    for _ in range(max(20, int(300 * scale))):
        workflow_id = new_id("w3")
        begin = time.perf_counter()
        await peer.start("seq", workflow_id, 1)
        acknowledged.append(time.perf_counter() - begin)
        await peer.wait(workflow_id)
        ended.append(time.perf_counter() - begin)
    return {
        "ack_ms_p50": ms(percentile(acknowledged, 0.5)),
        "ack_ms_p99": ms(percentile(acknowledged, 0.99)),
        "result_ms_p50": ms(percentile(ended, 0.5)),
        "result_ms_p99": ms(percentile(ended, 0.99)),
    }


async def w4(peer: Peer, scale: float) -> Figures:
    """Fan-out: 500 steps at once, gathered."""
    del scale
    peer.truncate_log()
    workflow_id = new_id("w4")
    begin = time.perf_counter()
    await peer.start("fan", workflow_id, 500)
    await peer.wait(workflow_id)
    return {"wall_s": round(time.perf_counter() - begin, 3), "steps_run": len(peer.lines("X"))}


async def w5(peer: Peer, scale: float) -> Figures:
    """1,000 timers of 2 s: how late each fires."""
    peer.truncate_log()
    seconds = 2
    begin = time.perf_counter()
    ids = [new_id("w5") for _ in range(int(1000 * scale))]
    semaphore = asyncio.Semaphore(IN_FLIGHT)

    async def start(workflow_id: str) -> None:
        async with semaphore:
            await peer.start("timer", workflow_id, seconds)

    await asyncio.gather(*[start(i) for i in ids])
    started = time.perf_counter() - begin
    await asyncio.gather(*[peer.wait(i) for i in ids])
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for kind, workflow_id, _, _, _, at, _ in peer.lines():
        if kind == "S":
            before.setdefault(workflow_id, at)
        elif kind == "K":
            after.setdefault(workflow_id, at)
    lag = [after[i] - before[i] - seconds for i in before if i in after]
    return {
        "lag_ms_p50": ms(percentile(lag, 0.5)),
        "lag_ms_p99": ms(percentile(lag, 0.99)),
        "lag_ms_max": ms(max(lag)),
        "timers": len(lag),
        "start_all_s": round(started, 2),
    }


async def _handled(peer: Peer, workflow_id: str) -> dict[int, float]:
    seen: dict[int, float] = {}
    for _, owner, index, _, _, at, _ in peer.lines("H"):
        if owner == workflow_id:
            seen.setdefault(index, at)  # replays log again
    return seen


async def w6(peer: Peer, scale: float) -> Figures:
    """Messages to one waiting workflow: paced 20 a second (latency), then a burst by 50 senders (rate)."""
    count = int(500 * scale)
    peer.truncate_log()
    paced, workflow_id = max(20, count // 5), new_id("w6")
    await peer.start("sig", workflow_id, paced)
    await asyncio.sleep(0.5)
    sent: dict[int, float] = {}
    acknowledged = []
    for index in range(paced):
        sent[index] = time.time()
        await peer.signal(workflow_id, index)
        acknowledged.append(time.time() - sent[index])
        await asyncio.sleep(max(0.0, 0.05 - (time.time() - sent[index])))
    await peer.wait(workflow_id)
    handled = await _handled(peer, workflow_id)
    latency = [handled[i] - sent[i] for i in sent if i in handled]

    burst_id = new_id("w6b")
    await peer.start("sig", burst_id, count)
    await asyncio.sleep(0.5)
    semaphore = asyncio.Semaphore(50)
    begin = time.time()

    async def send(index: int) -> None:
        async with semaphore:
            await peer.signal(burst_id, index)

    await asyncio.gather(*[send(i) for i in range(count)])
    await peer.wait(burst_id)
    burst = await _handled(peer, burst_id)
    return {
        "handled_ms_p50": ms(percentile(latency, 0.5)),
        "handled_ms_p99": ms(percentile(latency, 0.99)),
        "ack_ms_p50": ms(percentile(acknowledged, 0.5)),
        "burst_per_s": round(len(burst) / (max(burst.values()) - begin), 1),
        "burst_handled": len(burst),
    }


TIMED = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6}
