"""A worker of case WC-22, for two processes with different hash seeds: ``python wc_22_worker.py ADDRESS``."""

import asyncio
import random
import sys
from datetime import timedelta

from stepwell import activity, workflow
from stepwell.client import Client
from stepwell.worker import Worker

QUEUE = "order"
LIMIT = timedelta(seconds=30)
WORDS = ("apple", "pear", "plum", "fig", "lime", "kiwi", "date", "nut")


@activity.defn
async def echo(value: str) -> str:
    """Answers after a moment of random length, so that answers overtake each other."""
    await asyncio.sleep(random.uniform(0, 0.02))
    return value


async def call(value: str) -> str:
    return await workflow.execute_activity(echo, value, start_to_close_timeout=LIMIT)


@workflow.defn
async def first_completed(count: int, standard: bool) -> list[str]:
    """(a) Loops over ``wait(FIRST_COMPLETED)``; each task that is done asks for one thing more."""
    pending: list[asyncio.Task[str]] = [asyncio.create_task(call(f"{n}"), name=f"{n}") for n in range(count)]
    wrong: list[str] = []
    while pending:
        if standard:
            done_set, pending_set = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            done, pending = list(done_set), list(pending_set)
        else:
            done, pending = await workflow.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.get_name() != task.result():
                wrong.append(f"{task.get_name()} got {task.result()}")
            again = await call(f"again {task.get_name()}")
            if again != f"again {task.get_name()}":
                wrong.append(f"again {task.get_name()} got {again}")
    return wrong


@workflow.defn
async def in_order_of_end(count: int, standard: bool) -> list[str]:
    """(b) ``as_completed``; each result asks for one thing more."""
    calls = [call(f"{n}") for n in range(count)]
    wrong: list[str] = []
    seen: list[str] = []
    for ended in asyncio.as_completed(calls) if standard else workflow.as_completed(calls):
        value = await ended
        seen.append(value)
        again = await call(f"again {value}")
        if again != f"again {value}":
            wrong.append(f"again {value} got {again}")
    return wrong if sorted(seen) == sorted(str(n) for n in range(count)) else [*wrong, f"seen: {seen}"]


@workflow.defn
async def over_a_set(in_order: bool) -> list[str]:
    """(c) One activity per element of a set of strings."""
    words = {str(word) for word in WORDS}
    chosen = sorted(words) if in_order else list(words)
    results = await asyncio.gather(*(call(word) for word in chosen))
    last = await call("last")
    wrong = [f"{word} got {result}" for word, result in zip(chosen, results, strict=True) if word != result]
    return wrong if last == "last" else [*wrong, f"last got {last}"]


@workflow.defn
async def two_lines(steps: int) -> list[str]:
    """(d) Two coroutines of some short steps each."""

    async def line(name: str) -> list[str]:
        wrong: list[str] = []
        for step in range(steps):
            asked = f"{name}{step}"
            got = await call(asked)
            if got != asked:
                wrong.append(f"{asked} got {got}")
        return wrong

    left, right = await asyncio.gather(line("left"), line("right"))
    return left + right


async def main(address: str) -> None:
    async with await Client.connect(address) as client:
        workflows = [first_completed, in_order_of_end, over_a_set, two_lines]
        async with Worker(client, task_queue=QUEUE, workflows=workflows, activities=[echo], max_cached_workflows=0):
            sys.stdout.write("worker is ready\n")
            sys.stdout.flush()
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
