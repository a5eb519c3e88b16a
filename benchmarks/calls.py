"""Where the calls go that ``tests/integration/test_call_budgets.py`` bounds: by file and by function, on the event
loop's thread. C functions are counted with whoever calls them. Counts do not depend on the machine; times would.

``python benchmarks/calls.py step|workflow|signal|timer``
"""

import asyncio
import cProfile
import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, "sdk")]

from stepwell.client import Client

from tests.integration.test_call_budgets import QUEUE, Listener, sleeper, steps, working

UNITS = 100
Counts = Counter[tuple[str, str]]
"""By function, and by the C function that it calls; that is empty for the calls of the function itself."""


def name(code: CodeType) -> str:
    file = os.path.relpath(code.co_filename, ROOT)
    return f"{file.rpartition('lib/python3.')[2]}:{code.co_firstlineno} {code.co_qualname}"


@contextmanager
def counting(counts: Counts, sign: int = 1) -> Iterator[None]:
    asyncio.get_running_loop().set_debug(False)
    profile = cProfile.Profile()
    gc.collect()
    gc.disable()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
        gc.enable()
    for entry in profile.getstats():
        if isinstance(entry.code, str):
            continue
        counts[name(entry.code), ""] += sign * entry.callcount
        for called in entry.calls or ():
            if isinstance(called.code, str):
                counts[name(entry.code), called.code] += sign * called.callcount


async def step(client: Client, counts: Counts) -> None:
    """Of a run that has begun: what a longer one takes more."""
    for length, sign in ((UNITS, -1), (2 * UNITS, 1)):
        handle = await client.start_workflow(steps, length, id=f"steps-{length}", task_queue=QUEUE)
        with counting(counts, sign):
            await handle.result()


async def workflow(client: Client, counts: Counts) -> None:
    """Of three steps, together with others; as W2."""

    async def one(number: int) -> None:
        handle = await client.start_workflow(steps, 3, id=f"three-{number}", task_queue=QUEUE)
        await handle.result()

    await asyncio.gather(*[one(-number) for number in range(1, UNITS)])
    with counting(counts):
        await asyncio.gather(*[one(number) for number in range(UNITS)])


async def signal(client: Client, counts: Counts) -> None:
    handle = await client.start_workflow(Listener.run, 2 * UNITS, id="listens", task_queue=QUEUE)
    for number in range(UNITS):
        await handle.signal(Listener.message, number)  # from here on the ring of request ids is full
    with counting(counts):
        for number in range(UNITS):
            await handle.signal(Listener.message, number)
        await handle.result()


async def timer(client: Client, counts: Counts) -> None:
    ids = [f"sleeps-{number}" for number in range(UNITS)]
    with counting(counts):
        handles = await asyncio.gather(*[client.start_workflow(sleeper, id=i, task_queue=QUEUE) for i in ids])
        await asyncio.gather(*[handle.result() for handle in handles])


def show(counts: Counts) -> None:
    files: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for (function, _), count in counts.items():
        files[function.partition(":")[0]] += count
        functions[function] += count
    print(f"{sum(files.values()) / UNITS:.1f} calls")
    for file, count in files.most_common(40):
        print(f"{count / UNITS:8.1f} {file}")
    print()
    for function, count in functions.most_common(120):
        called = Counter({c: number for (of, c), number in counts.items() if of == function and c})
        print(
            f"{count / UNITS:8.1f} {function}",
            *[f"\n{number / UNITS:17.1f} {c}" for c, number in called.most_common(6) if number >= UNITS / 2],
        )


async def main(kind: str) -> None:
    counts: Counts = Counter()
    async with working() as client:
        await {"step": step, "workflow": workflow, "signal": signal, "timer": timer}[kind](client, counts)
    show(counts)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
