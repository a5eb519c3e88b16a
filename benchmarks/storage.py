"""The embedded store alone, beside raw SQLite in the same run: appends in a row, group commit, reads, bytes on disk.

    python benchmarks/storage.py [--rounds 5] [--directory DIR]

Each line is the median of the rounds. Raw SQLite writes one row of the same size per append into one table (WAL,
synchronous FULL) and nothing else, on the calling thread. Numbers of a busy machine say little: compare the columns.
"""

import argparse
import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

from stepwell.api.limits import HISTORY_PAGE_EVENTS

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.adapters.embedded.connection import open_writable
from stepwell_server.adapters.embedded.group_commit import BatchCommitter
from stepwell_server.adapters.embedded.writes import AppendCommit
from stepwell_server.history import codec
from stepwell_server.history.commit import Commit
from tests.support.sample_commits import SampleRun

SEQUENTIAL = 400
RUNS = 2_000
BATCH = 50
ROUNDS = 5


def commits_of(runs: range) -> list[list[Commit]]:
    return [list(SampleRun(number).commits()) for number in runs]


def raw(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE row (workflow TEXT, seq INT, body BLOB, PRIMARY KEY (workflow, seq))")
    return connection


def raw_sequential(path: Path) -> dict[str, float]:
    connection = raw(path)
    rows = [(c.workflow_id, c.seq, b"".join(codec.encode_commit(c))) for run in commits_of(range(80)) for c in run]
    times = []
    cpu = time.process_time()
    for row in rows[:SEQUENTIAL]:
        begin = time.perf_counter()
        connection.execute("INSERT INTO row VALUES (?, ?, ?)", row)
        times.append(time.perf_counter() - begin)
    cpu = time.process_time() - cpu
    connection.close()
    return latencies(times) | {"CPU us": cpu / len(times) * 1e6}


def raw_group(path: Path) -> dict[str, float]:
    connection = raw(path)
    rows = [(c.workflow_id, c.seq, b"".join(codec.encode_commit(c))) for run in commits_of(range(RUNS)) for c in run]
    begin = time.perf_counter()
    for start in range(0, len(rows), BATCH):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO row VALUES (?, ?, ?)", rows[start : start + BATCH])
        connection.execute("COMMIT")
    took = time.perf_counter() - begin
    connection.close()
    return {"rows per s": len(rows) / took}


def committer_group(path: Path) -> dict[str, float]:
    """The transaction alone: encoded commits, on the calling thread."""
    connection = open_writable(path)
    batches = BatchCommitter(connection)
    runs = [[AppendCommit.of(c, c.state.armed if c.seq == 1 else None) for c in run] for run in commits_of(range(RUNS))]
    begin = time.perf_counter()
    for start in range(0, RUNS, BATCH):
        for step in range(5):
            outcomes = batches.commit([run[step] for run in runs[start : start + BATCH]])
            assert outcomes == [None] * BATCH
    took = time.perf_counter() - begin
    connection.close()
    return {"rows per s": RUNS * 5 / took}


async def sequential(backend: Backend) -> dict[str, float]:
    times = []
    runs = commits_of(range(SEQUENTIAL // 5))
    cpu = time.process_time()
    for run in runs:
        for commit in run:
            begin = time.perf_counter()
            await append(backend, commit)
            times.append(time.perf_counter() - begin)
    return latencies(times) | {"CPU us": (time.process_time() - cpu) / len(times) * 1e6}


async def group(backend: Backend) -> dict[str, float]:
    """``BATCH`` workflows in flight, each appending its commits in order: batches of up to that many rows."""
    waiting = iter(commits_of(range(RUNS)))

    async def worker() -> None:
        for run in waiting:
            for commit in run:
                await append(backend, commit)

    begin, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(BATCH)))
    took = time.perf_counter() - begin
    return {"rows per s": RUNS * 5 / took, "CPU us per row": (time.process_time() - cpu) / (RUNS * 5) * 1e6}


async def waiting_rows(backend: Backend) -> dict[str, float]:
    """As the group-commit floor: encoded rows that are submitted ``BATCH`` at a time."""
    runs = commits_of(range(RUNS))
    begin = time.perf_counter()
    for start in range(0, RUNS, BATCH):
        for step in range(5):
            await asyncio.gather(*(append(backend, run[step]) for run in runs[start : start + BATCH]))
    return {"rows per s": RUNS * 5 / (time.perf_counter() - begin)}


async def reads(backend: Backend) -> dict[str, float]:
    runs = commits_of(range(500))
    for step in range(5):
        await asyncio.gather(*(append(backend, run[step]) for run in runs))
    begin = time.perf_counter()
    for run in runs:
        await backend.log.head(run[0].key)
    heads = time.perf_counter() - begin
    begin = time.perf_counter()
    for run in runs:
        await backend.log.read_events(run[0].key, run[0].run_id, 0, HISTORY_PAGE_EVENTS)
    histories = time.perf_counter() - begin
    return {"head us": heads / 500 * 1e6, "history of 5 commits us": histories / 500 * 1e6}


async def append(backend: Backend, commit: Commit) -> None:
    await backend.log.append(commit, arm=commit.state.armed if commit.seq == 1 else None)


def latencies(times: list[float]) -> dict[str, float]:
    times.sort()
    return {"p50 us": times[len(times) // 2] * 1e6, "p99 us": times[len(times) * 99 // 100] * 1e6}


def on_store(work: Callable[[Backend], Coroutine[Any, Any, dict[str, float]]]) -> Callable[[Path], dict[str, float]]:
    async def run(path: Path) -> dict[str, float]:
        backend = embedded_backend(path)
        try:
            return await work(backend)
        finally:
            await backend.close()

    return lambda path: asyncio.run(run(path))


def bytes_on_disk(path: Path) -> dict[str, float]:
    on_store(group)(path)
    return {"bytes per workflow of 5 commits": path.stat().st_size / RUNS}


CASES: dict[str, Callable[[Path], dict[str, float]]] = {
    "raw SQLite, appends in a row": raw_sequential,
    "store, appends in a row": on_store(sequential),
    f"raw SQLite, {BATCH} rows a commit": raw_group,
    f"writer thread's part, {BATCH} rows a commit": committer_group,
    f"store, {BATCH} appends at a time": on_store(waiting_rows),
    f"store, {BATCH} workflows in flight": on_store(group),
    "store, reads": on_store(reads),
    "store, size": bytes_on_disk,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--directory", type=Path, default=None, help="where the databases go; default: a temporary one")
    options = parser.parse_args()
    results: dict[str, list[dict[str, float]]] = {name: [] for name in CASES}
    for round_number in range(options.rounds):
        for name, case in CASES.items():
            with tempfile.TemporaryDirectory(dir=options.directory) as folder:
                results[name].append(case(Path(folder) / f"round-{round_number}.db"))
    for name, rounds in results.items():
        medians = {measure: statistics.median(result[measure] for result in rounds) for measure in rounds[0]}
        print(f"{name:42}", "  ".join(f"{measure} {value:,.0f}" for measure, value in medians.items()))


if __name__ == "__main__":
    main()
