"""The workloads W7 (how soon a killed run goes on) and W8 (what is lost when everything is killed under load)."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable

from peer import Line, Peer, Tail
from workloads import IN_FLIGHT, Figures, new_id

STEPS, KILL_AT = 2500, 2000


async def _until(condition: Callable[[], bool], timeout: float, pause: float = 0.005) -> bool:
    end = time.time() + timeout
    while time.time() < end:
        if condition():
            return True
        await asyncio.sleep(pause)
    return False


def _child(peer: Peer, mode: str, *arguments: str) -> None:
    peer.spawn("child", [sys.executable, sys.argv[0], "--child", mode, *arguments])


async def w7(peer: Peer, scale: float) -> Figures:
    """The worker (embedded: the process) is killed after 2,000 of 2,500 steps and started again at once."""
    steps, kill_at = int(STEPS * scale) or 1, int(KILL_AT * scale)
    peer.truncate_log()
    workflow_id = new_id("w7")
    tail = Tail(peer.log)
    if peer.embedded:
        await peer.down()
        _child(peer, "start", workflow_id, str(steps))
    else:
        await peer.start("seq", workflow_id, steps)
    if not await _until(lambda: any(x[0] == "X" and x[2] >= kill_at - 1 for x in tail.new()), 600):
        return {"error": "the first part did not finish in 600 s"}
    peer.kill("child" if peer.embedded else "worker")
    tail.new()
    before = max(x[2] for x in peer.lines("X"))
    begin = time.time()
    if peer.embedded:
        _child(peer, "recover")
    else:
        await peer.start_worker()
    seen: list[Line] = []

    def stepped() -> bool:
        seen.extend(tail.new())
        return any(x[0] == "X" for x in seen)

    found = await _until(stepped, 120)
    boots = [x[5] for x in seen if x[0] == "B"]
    result: Figures = {"last_step_before": before, "boot_s": round(boots[0] - begin, 3) if boots else -1}
    if found:
        first = next(x for x in seen if x[0] == "X")
        result |= {"recovery_s": round(first[5] - begin, 3), "first_step_after": first[2]}
        if boots:
            result["replay_s"] = round(first[5] - boots[0], 3)
    else:
        result["error"] = "no step within 120 s"
    peer.kill("child")
    return result


def _check(peer: Peer, acknowledged: set[str], results: dict[str, list[int]]) -> Figures:
    """No step may have seen a predecessor's result that differs from the one recorded in the end."""
    ran: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for _, workflow_id, index, token, previous, _, _ in peer.lines("X"):
        ran.setdefault((workflow_id, index), []).append((token, previous))
    lost = 0
    for (workflow_id, index), attempts in ran.items():
        if workflow_id not in results:
            continue
        if index > 0:
            lost += sum(previous != results[workflow_id][index - 1] for _, previous in attempts)
        lost += results[workflow_id][index] not in [token for token, _ in attempts]
    return {
        "acknowledged": len(acknowledged),
        "completed": sum(1 for i in acknowledged if i in results),
        "lost_results": lost,
        "bodies_run_twice": sum(len(attempts) > 1 for attempts in ran.values()),
        "missing": sorted(i for i in acknowledged if i not in results)[:3],
    }


async def w8(peer: Peer, scale: float) -> Figures:
    """Everything is killed at 40 % of a throughput run, started again, and every acknowledged workflow awaited."""
    count = int(2000 * scale)
    peer.truncate_log()
    return await (_w8_embedded if peer.embedded else _w8_server)(peer, count)


async def _w8_embedded(peer: Peer, count: int) -> Figures:
    await peer.down()
    _child(peer, "load", str(count))
    tail, ended = Tail(peer.log), [0]

    def enough() -> bool:
        ended[0] += sum(x[0] == "R" for x in tail.new())
        return ended[0] >= count * 0.4

    if not await _until(enough, 600):
        return {"error": "the load did not get to 40 %"}
    peer.kill("child")
    acknowledged = {x[1] for x in peer.lines("A")}
    begin = time.time()
    _child(peer, "collect")
    process = peer.processes["child"]
    await _until(lambda: process.poll() is not None, 180, 0.05)
    peer.kill("child")
    took = time.time() - begin
    with open(peer.log + ".results") as file:
        results = json.load(file)
    return {**_check(peer, acknowledged, results), "recovered_s": round(took, 2)}


async def _w8_server(peer: Peer, count: int) -> Figures:
    acknowledged: set[str] = set()
    results: dict[str, list[int]] = {}
    semaphore, stopped = asyncio.Semaphore(IN_FLIGHT), asyncio.Event()

    async def one() -> None:
        async with semaphore:
            if stopped.is_set():
                return
            workflow_id = new_id("w8")
            try:
                await asyncio.wait_for(peer.start("seq", workflow_id, 3), 30)
                acknowledged.add(workflow_id)
                results[workflow_id] = await asyncio.wait_for(peer.wait(workflow_id), 60)  # type: ignore[assignment]
            except Exception:
                return

    tasks = [asyncio.create_task(one()) for _ in range(count)]
    while len(results) < count * 0.4 and not all(t.done() for t in tasks):
        await asyncio.sleep(0.005)
    peer.kill("server")
    stopped.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    begin = time.time()
    await peer.start_server(fresh=False)
    await peer.reconnect()

    async def finish(workflow_id: str) -> None:
        results[workflow_id] = await asyncio.wait_for(peer.wait(workflow_id), 120)  # type: ignore[assignment]

    await asyncio.gather(*[finish(i) for i in acknowledged if i not in results], return_exceptions=True)
    return {**_check(peer, acknowledged, results), "recovered_s": round(time.time() - begin, 2)}


async def child(peer: Peer, mode: str, arguments: list[str]) -> None:
    """What the killed process does, for embedded peers."""
    from steplog import log

    await peer.up(fresh=mode in ("start", "load"))
    log("B", "boot")
    if mode == "start":
        await peer.start("seq", arguments[0], int(arguments[1]))
        await peer.wait(arguments[0])
    elif mode == "recover":
        await asyncio.sleep(3600)
    elif mode == "load":
        semaphore = asyncio.Semaphore(IN_FLIGHT)

        async def one() -> None:
            async with semaphore:
                workflow_id = new_id("w8")
                await peer.start("seq", workflow_id, 3)
                log("A", workflow_id)
                await peer.wait(workflow_id)
                log("R", workflow_id)

        await asyncio.gather(*[one() for _ in range(int(arguments[0]))])
        await asyncio.sleep(3600)
    elif mode == "collect":
        results: dict[str, object] = {}

        async def get(workflow_id: str) -> None:
            results[workflow_id] = await asyncio.wait_for(peer.wait(workflow_id), 150)

        await asyncio.gather(*[get(i) for i in {x[1] for x in peer.lines("A")}], return_exceptions=True)
        with open(peer.log + ".results.new", "w") as file:
            json.dump(results, file)
        os.rename(peer.log + ".results.new", peer.log + ".results")
