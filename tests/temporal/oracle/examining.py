"""Runs programs on one server, several at once, and compares what two servers made of one."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from . import driver
from .compare import Difference, chains, values
from .normalise import Normaliser
from .programs import Program

_AT_ONCE = 4

Normal = dict[str, Any]
"""Of one program: ``problem``, ``result``, ``answers``, ``runs`` and ``described``."""

_DESCRIBED = ("status", "type", "taskQueue", "historyLength", "memo", "searchAttributes", "parentExecution")


async def run_all(address: str, programs: Mapping[int, Program], tag: str) -> dict[int, Normal]:
    """By seed. ``tag`` is in all ids, so that one server can be asked several times."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(server: driver.Server, seed: int, program: Program) -> tuple[int, Normal]:
        async with slots:
            return seed, normal(await driver.run(server, f"p{seed}", program), tag)

    async with driver.connected(address, tag) as server:
        return dict(await asyncio.gather(*(one(server, seed, program) for seed, program in programs.items())))


def normal(report: driver.Report, tag: str) -> Normal:
    normaliser = Normaliser(tag)
    runs = {name: [normaliser.history(events) for events in chain] for name, chain in report.runs.items()}
    described = {name: [_described(answer) for answer in chain] for name, chain in report.described.items()}
    told = {"problem": report.problem, "result": report.result, "answers": report.answers}
    return {**normaliser.plain(told), "runs": runs, "described": normaliser.message(described)}


def _described(answer: dict[str, Any]) -> dict[str, Any]:
    """Options as configured, and of the execution what does not differ from call to call."""
    info = answer.get("workflowExecutionInfo", {})
    pending = {
        key: len(value) for key, value in answer.items() if key.startswith("pending") and isinstance(value, list)
    }
    info.get("searchAttributes", {}).get("indexedFields", {}).pop("BuildIds", None)  # of worker versioning
    return {"config": answer.get("executionConfig"), **{key: info.get(key) for key in _DESCRIBED}, **pending}


def differences(theirs: Normal, ours: Normal) -> Iterator[Difference]:
    for part in ("problem", "result", "answers"):
        yield from values(part, theirs[part], ours[part])
    for name in sorted({*theirs["runs"], *ours["runs"]}):
        yield from chains(name, theirs["runs"].get(name, []), ours["runs"].get(name, []))
        yield from values(f"described/{name}", theirs["described"].get(name), ours["described"].get(name))
