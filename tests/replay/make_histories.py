"""Records the golden histories of this release, once, at release time; committed ones are never edited.

    python tests/replay/make_histories.py --version 0.1.0 [--database FILE]

Each workflow of ``golden_workflows.py`` runs twice: on a worker that keeps it cached and fuses its steps, and on one
that keeps nothing, so that every workflow task is a full replay. One history is taken of a run that is still open.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell.client import Client, WorkflowFailureError, WorkflowHandle  # noqa: E402
from stepwell.replay.history import WorkflowHistory  # noqa: E402
from stepwell.worker import Worker  # noqa: E402

from tests.replay import golden_workflows as g  # noqa: E402

HISTORIES = Path(__file__).resolve().parent / "histories"


def _write(path: Path, history: WorkflowHistory) -> None:
    """Without this machine's folders, which stand in the stack traces of failures."""
    text = history.to_json().replace(f"{ROOT}/", "")
    path.write_text(text.replace(sys.base_prefix, "python").replace(sys.prefix, "python"))


async def _drive(client: Client, name: str) -> WorkflowHandle:
    """Starts one workflow, does to it what it needs, and waits for its end."""
    definition, argument = {
        "sequence": (g.golden_sequence, 4),
        "saga": (g.golden_saga, "order-1"),
        "fan_out": (g.golden_fan_out, 7),
        "messages": (g.GoldenMessages.run, 3),
        "cancelled": (g.golden_cancelled, "x"),
        "values": (g.golden_values, "x"),
        "race": (g.golden_race, "quick"),
        "failed": (g.golden_failed, "order-2"),
    }[name]
    handle = await client.start_workflow(definition, argument, id=name, task_queue="golden")
    if name == "messages":
        for message in ("one", "two", "three"):
            await handle.signal(g.GoldenMessages.add, message)
    if name == "cancelled":
        await asyncio.sleep(0.3)
        await handle.cancel(reason="golden")
    try:
        await handle.result()
    except WorkflowFailureError:
        if name not in ("cancelled", "failed"):
            raise
    return handle


async def _database(path: Path) -> None:
    """A database as the engine leaves it: closed runs, and ``open``, which waits for one more message.

    Without failures, since their stack traces name this machine's folders.
    """
    async with await Client.connect(f"sqlite:///{path}", identity="golden") as client:
        worker = Worker(client, task_queue="golden", workflows=g.WORKFLOWS, activities=g.ACTIVITIES, identity="golden")
        async with worker:
            for name in ("sequence", "fan_out", "messages", "cancelled", "values", "race"):
                await _drive(client, name)
            await _leave_open(client)


async def _leave_open(client: Client) -> WorkflowHandle:
    handle = await client.start_workflow(g.GoldenMessages.run, 2, id="open", task_queue="golden")
    await handle.signal(g.GoldenMessages.add, "only one")
    await asyncio.sleep(0.3)
    return handle


async def _record(folder: Path, variant: str, *, cached: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with await Client.connect(f"sqlite:///{directory}/golden.db", identity="golden") as client:
            worker = Worker(
                client,
                task_queue="golden",
                workflows=g.WORKFLOWS,
                activities=g.ACTIVITIES,
                max_cached_workflows=cached,
                identity="golden",
            )
            async with worker:
                names = ["sequence", "saga", "fan_out", "messages", "cancelled", "values", "race", "failed"]
                for name in names:
                    history = await (await _drive(client, name)).fetch_history()
                    _write(folder / f"{name}-{variant}.json", history)
                handle = await _leave_open(client)
                _write(folder / f"open-{variant}.json", await handle.fetch_history())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", required=True)
    parser.add_argument("--database", type=Path, help="only write a database, for tests/golden/make_golden.py")
    options = parser.parse_args()
    if options.database:
        asyncio.run(_database(options.database.resolve()))
        return
    folder = HISTORIES / options.version
    folder.mkdir(parents=True)  # existing ones are never written again
    asyncio.run(_record(folder, "cached", cached=100))
    asyncio.run(_record(folder, "replayed", cached=0))


if __name__ == "__main__":
    main()
