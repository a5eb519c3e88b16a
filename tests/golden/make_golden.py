"""Writes the golden database files of this release, once, at release time; committed ones are never edited.

    python tests/golden/make_golden.py --version 0.1.0 [FILE …]

``tests/golden/databases/<version>-samples.db`` holds hand-made runs in every state the tables know. Each FILE, a
database that the engine wrote (the order-fulfilment example, a benchmark), is copied beside it as ``<version>-<its
name>``. What a reader finds in a database is written next to it as JSON; ``test_golden_databases.py`` compares every
later release to it.
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "sdk")]

import msgspec  # noqa: E402
from stepwell.api.codec import encode_json  # noqa: E402

from stepwell_server.adapters.embedded import embedded_backend, open_for_inspection  # noqa: E402
from stepwell_server.adapters.embedded.backup import back_up  # noqa: E402
from stepwell_server.adapters.embedded.connection import open_read_only  # noqa: E402
from stepwell_server.adapters.embedded.store import SqliteReads  # noqa: E402
from stepwell_server.history.commit import ExecutionKey  # noqa: E402
from tests.support.listed import list_executions  # noqa: E402
from tests.support.sample_commits import EPOCH, SampleRun, chain, sample_item  # noqa: E402

DATABASES = Path(__file__).resolve().parent / "databases"
NAMESPACES = ("default", "other")


async def write_samples(path: Path) -> None:
    """Closed and open runs, a second run of an id, runs that share a commit, items, deadlines, another namespace."""
    backend = embedded_backend(":memory:")
    runs = [
        (SampleRun(1), 5),
        (SampleRun(2), 3),
        (SampleRun(3), 1),
        (SampleRun(4), 5),
        (SampleRun(4, run=1, first_seq=6), 2),
        (SampleRun(5, namespace="other", workflow_id="日本 #1"), 4),
    ]
    for run, count in runs:
        for commit in list(run.commits())[:count]:
            await backend.log.append(commit, arm=commit.deadline)
    for run_commits in chain(6, runs=3):
        for commit in run_commits:
            await backend.log.append(commit, arm=commit.deadline)
    for version in (1, 2):
        await backend.log.put_activity(sample_item(runs[1][0], version=version))
    await backend.log.put_activity(sample_item(runs[2][0]), arm=EPOCH)
    await backend.backup(path)
    await backend.close()


async def found_in(reads: SqliteReads) -> dict[str, Any]:
    """Everything that the ports can read, as plain JSON values."""
    runs = []
    for namespace in NAMESPACES:
        infos = await list_executions(reads, namespace, status=None, workflow_type="", after=None, limit=1_000)
        runs += [await _run_found(reads, namespace, info.execution.run_id, info) for info in infos]
    found = {
        "runs": runs,
        "owing": await reads.owing(None, 1_000),
        "due": await reads.due(EPOCH.replace(year=2100), 1_000),
    }
    return json.loads(encode_json(found))  # type: ignore[no-any-return]


async def _run_found(reads: SqliteReads, namespace: str, run_id: str, info: Any) -> dict[str, Any]:
    key = ExecutionKey(namespace, info.execution.workflow_id)
    page = await reads.read_events(key, run_id, 0, 100_000)
    newest = await reads.find_run(key, run_id)
    assert newest is not None
    scheduled = [event.event_id for event in page.events if event.event_type == "ActivityTaskScheduled"]
    return {
        "namespace": namespace,
        "info": info,
        "events": page.events,
        "newest_seq": newest.seq,
        "state": newest.state_of(run_id),
        "items": await reads.activities(key, run_id, sorted({5, *scheduled})),
    }


async def write_golden(target: Path) -> None:
    reads = open_for_inspection(target)
    found = await found_in(reads)
    reads.close()
    text = msgspec.json.format(json.dumps(found, ensure_ascii=False), indent=1)
    target.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{target.name}: {len(found['runs'])} runs, {target.stat().st_size} bytes\n")


async def make(version: str, files: list[Path], databases: Path = DATABASES) -> None:
    """Refuses to touch what is there."""
    databases.mkdir(exist_ok=True)
    samples = databases / f"{version}-samples.db"
    if samples.exists():
        raise SystemExit(f"{samples} exists; golden files are added to, never edited")
    await write_samples(samples)
    await write_golden(samples)
    for file in files:
        target = databases / f"{version}-{file.stem}.db"
        source = open_read_only(file.resolve())
        back_up(source, target)
        source.close()
        await write_golden(target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--version", required=True, help="the release that wrote them, such as 0.1.0")
    options = parser.parse_args()
    asyncio.run(make(options.version, options.files))


if __name__ == "__main__":
    main()
