"""The physical floor: one 1 KB row in SQLite (WAL, synchronous FULL) per step and nothing else, as JSON lines.

``direct``: the event loop commits each step itself. ``group``: a writer thread commits all that waits at once.
W1 shape: 100 steps in a row. W2 shape: 2,000 workflows of 5 rows (start, 3 steps, end), 200 in flight. W6 shape: one
row every 50 ms; what a commit costs when the processor was idle just before, which is several times as much.
"""

import asyncio
import json
import os
import queue
import sqlite3
import statistics
import tempfile
import threading
import time

BODY = os.urandom(500).hex()
INSERT = "INSERT INTO event VALUES (?, ?, ?)"


SHAPES = {"W1": ["step_ms_p50"], "W2": ["steps_per_s", "cpu_s_per_1000_steps"], "W6": ["ack_ms_p50"]}


class Direct:
    name = "floor-direct"

    def __init__(self, path: str) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute(
            "CREATE TABLE event (workflow TEXT, seq INT, body TEXT, PRIMARY KEY (workflow, seq)) WITHOUT ROWID"
        )

    async def put(self, workflow: str, seq: int) -> None:
        self.connection.execute(INSERT, (workflow, seq, BODY))

    def close(self) -> None:
        self.connection.close()


class Group(Direct):
    name = "floor-group"

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.waiting: queue.SimpleQueue[tuple[str, int, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self.loop = asyncio.get_running_loop()
        self.thread = threading.Thread(target=self._write)
        self.thread.start()

    async def put(self, workflow: str, seq: int) -> None:
        done: asyncio.Future[None] = self.loop.create_future()
        self.waiting.put((workflow, seq, done))
        await done

    def _write(self) -> None:
        while (first := self.waiting.get()) is not None:
            batch = [first]
            while len(batch) < 500 and not self.waiting.empty():
                item = self.waiting.get()
                if item is None:
                    return
                batch.append(item)
            self.connection.execute("BEGIN")
            self.connection.executemany(INSERT, [(workflow, seq, BODY) for workflow, seq, _ in batch])
            self.connection.execute("COMMIT")
            self.loop.call_soon_threadsafe(lambda done=batch: [f.set_result(None) for *_, f in done])

    def close(self) -> None:
        self.waiting.put(None)
        self.thread.join()
        super().close()


async def measure(kind: type[Direct], folder: str, run: int) -> dict[str, float | int | str]:
    engine = kind(f"{folder}/{kind.name}-{run}.db")
    latencies = []
    for workflow in range(10):
        for seq in range(100):
            begin = time.perf_counter()
            await engine.put(f"a{workflow}", seq)
            latencies.append(time.perf_counter() - begin)
    semaphore = asyncio.Semaphore(200)

    async def one(workflow: int) -> None:
        async with semaphore:
            for seq in range(5):
                await engine.put(f"w{workflow}", seq)
                await asyncio.sleep(0)

    begin, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[one(i) for i in range(2000)])
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    paced = []
    for seq in range(60):
        await asyncio.sleep(0.05)
        begin = time.perf_counter()
        await engine.put("paced", seq)
        paced.append(time.perf_counter() - begin)
    engine.close()
    return {
        "peer": kind.name,
        "run": run,
        "step_ms_p50": round(statistics.median(latencies) * 1000, 3),
        "ack_ms_p50": round(statistics.median(paced) * 1000, 3),
        "steps_per_s": round(6000 / elapsed),
        "cpu_s_per_1000_steps": round(cpu / 6, 3),
    }


def main() -> None:
    base = os.environ.get("BENCH_DIR", os.path.expanduser("~/.cache/stepwell-bench"))
    os.makedirs(base, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=base) as folder:
        for run in range(3):
            for kind in (Direct, Group):
                figures = asyncio.run(measure(kind, folder, run))
                for workload, keys in SHAPES.items():
                    row = {"peer": figures["peer"], "workload": workload, "run": run, **{k: figures[k] for k in keys}}
                    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
