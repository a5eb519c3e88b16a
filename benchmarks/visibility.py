"""Lists and counts on one SQLite file with a million closed and 100,000 open runs, beside one with 1,000 runs.

``python benchmarks/visibility.py [--closed 1000000] [--open 100000]`` prints for each query the median time of a first
page in both files and their ratio, then the time of counts and of a walk through all pages, and the memory it took.
The files are written by SQL, in the form in which the engine writes them.
"""

import argparse
import asyncio
import resource
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "sdk"), str(Path(__file__).resolve().parents[1])]

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import embedded_backend
from stepwell_server.visibility.attributes import ValueType
from stepwell_server.visibility.query import parse

BEGIN_US = 1_764_000_000_000_000
SMALL = 1_000
TYPES = {"Customer": ValueType.KEYWORD, "Amount": ValueType.INT}
LISTS = (
    "",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus = 'Failed'",
    "WorkflowType = 'type-7'",
    "WorkflowId = 'order-500'",
    "Customer = 'c-17'",
    "Customer = 'c-17' AND ExecutionStatus = 'Completed'",
    "ORDER BY CloseTime DESC",
    "ORDER BY Amount",
)
COUNTS = ("ExecutionStatus = 'Running'", "Customer = 'c-17'", "", "GROUP BY ExecutionStatus")
BATCH = 10_000
PAGE = 10
"""As many as each query finds in the small file, so that both read the same."""


def fill(path: Path, closed: int, opened: int) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    total = closed + opened
    for begin in range(0, total, BATCH):
        numbers = range(begin, min(begin + BATCH, total))
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO logs VALUES (?, 'default', ?, 0)", ((n + 1, f"order-{n}") for n in numbers))
        connection.executemany(
            "INSERT INTO runs (id, log, first_seq, run, namespace, status, workflow_type, task_queue, start_us, "
            "close_us, history_length, history_size, transitions) "
            "VALUES (?, ?, 1, ?, 'default', ?, ?, 'orders', ?, ?, 11, 2000, 3)",
            (_run(n, open_every=max(total // max(opened, 1), 1)) for n in numbers),
        )
        connection.executemany("INSERT INTO found_by VALUES ('default', ?, ?, ?, ?, ?, ?)", _found_by(numbers))
        connection.execute("COMMIT")
    connection.close()


def _id(number: int) -> bytes:
    return uuid.uuid5(uuid.NAMESPACE_OID, str(number)).bytes


def _run(number: int, open_every: int) -> tuple[object, ...]:
    start = BEGIN_US + number * 1_000
    is_open = number % open_every == 0
    status = "RUNNING" if is_open else "FAILED" if number % 50 == 1 else "COMPLETED"
    close = None if is_open else start + 60_000_000
    return number + 1, number + 1, _id(number), status, f"type-{number % 40}", start, close


def _found_by(numbers: range) -> Iterator[tuple[object, ...]]:
    for n in numbers:
        start, run = BEGIN_US + n * 1_000, _id(n)
        yield "Customer", "k", f"c-{n % 90}", start, run, n + 1
        yield "Amount", "i", n * 7919 % 1_000, start, run, n + 1


async def first_page(backend: Backend, text: str, repeats: int = 30) -> float:
    query = parse(text, TYPES, ordered_by=backend.visibility.ordered_by)
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        await backend.visibility.search("default", query, after=None, limit=PAGE)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1_000


async def walk(backend: Backend) -> tuple[int, float]:
    begin, seen, after = time.perf_counter(), 0, None
    while True:
        page = await backend.visibility.search("default", parse("", {}), after=after, limit=1_000)
        seen, after = seen + len(page.executions), page.reached
        if after is None:
            return seen, time.perf_counter() - begin


async def measure(closed: int, opened: int) -> None:
    with tempfile.TemporaryDirectory(prefix="stepwell-visibility-") as folder:
        backends = []
        for name, sizes in (("small.db", (SMALL * 10 // 11, SMALL // 11)), ("large.db", (closed, opened))):
            path = Path(folder) / name
            await embedded_backend(path).close()
            fill(path, *sizes)
            backends.append(embedded_backend(path))
        small, large = backends
        print(f"first page of {PAGE}, median of 30, ms: {SMALL:,} runs, {closed + opened:,} runs, ratio")
        for text in LISTS:
            before, after = await first_page(small, text), await first_page(large, text)
            print(f"{before:9.2f} {after:9.2f} {after / before:6.2f}  {text or '(all)'}")
        for text in COUNTS:
            begin = time.perf_counter()
            query = parse(text, TYPES, counts=True)
            counted = await large.visibility.count("default", query, after=None)
            print(f"count {counted.count:9,} in {time.perf_counter() - begin:6.2f} s  {text or '(all)'}")
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seen, seconds = await walk(large)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        print(f"all pages of 1,000: {seen:,} runs in {seconds:.1f} s, {grown / 1024:.1f} MB more memory")
        for backend in backends:
            await backend.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--closed", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=100_000)
    options = parser.parse_args()
    asyncio.run(measure(options.closed, options.open))


if __name__ == "__main__":
    main()
