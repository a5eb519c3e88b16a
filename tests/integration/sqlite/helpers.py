"""What the SQLite tests share."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stepwell_server.adapters.backend import Backend
from stepwell_server.adapters.embedded import open_for_inspection
from stepwell_server.history.commit import Commit, ExecutionKey
from tests.support.listed import list_executions
from tests.support.sample_commits import SampleRun

ROOT = Path(__file__).parents[3]


async def append_runs(backend: Backend, numbers: Iterable[int]) -> dict[int, list[Commit]]:
    """Whole runs, one commit after the other."""
    runs = {number: list(SampleRun(number).commits()) for number in numbers}
    for commits in runs.values():
        for commit in commits:
            await backend.log.append(commit, arm=commit.deadline)
    return runs


async def on_writer(backend: Backend, work: Callable[[Any], Any]) -> Any:
    """Runs ``work(connection)`` on the writer's connection: a look behind the port, to break things."""
    return await backend.log._submit(lambda connection, tables: work(connection))  # type: ignore[attr-defined]


async def stored_seqs(path: Path, *, in_use: bool = False) -> dict[str, list[int]]:
    """Seqs of every log in the file; each commit and each history is decoded on the way.

    With ``in_use`` the reads are of different moments, so a later one may show more than an earlier one.
    """
    reads = open_for_inspection(path)
    found: dict[str, list[int]] = {}
    infos = await list_executions(reads, "default", status=None, workflow_type="", after=None, limit=100_000)
    for info in infos:
        key = ExecutionKey("default", info.execution.workflow_id)
        head = await reads.head(key)
        assert head is not None
        commits = [await reads.get(key, seq) for seq in range(1, head.seq + 1)]
        found[key.workflow_id] = [commit.seq for commit in commits if commit is not None]
        page = await reads.read_events(key, info.execution.run_id, 0, 10_000)
        assert [event.event_id for event in page.events] == list(range(1, len(page.events) + 1))
        assert in_use or (len(page.events), info.status) == (head.state.next_event_id - 1, head.state.status)
    reads.close()
    return found


def acknowledged(output: str) -> dict[str, int]:
    """Newest acknowledged seq of each workflow, as ``store_process`` said before it was killed."""
    newest: dict[str, int] = {}
    for line in output.splitlines(keepends=True):
        if line.endswith("\n"):  # the last one may be cut
            workflow_id, seq = line.split()
            newest[workflow_id] = max(int(seq), newest.get(workflow_id, 0))
    return newest


def start_process(script: Path | str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that finds our packages, its output piped as text."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "sdk")])}
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
