"""``stepwell workflow import``: runs from files that hold their histories (LC-46)."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import WorkflowExecutionAlreadyStarted
from ..replay.history import WorkflowHistory
from .connection import Engine, Target, identity, run
from .grammar import Command
from .inputs import STDIN
from .options import target_options
from .output import print_json
from .text import safe
from .troubles import Usage


@click.command("import", cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--skip-existing", is_flag=True, help="Pass over runs that are there already.")
@target_options
def import_(target: Target, files: tuple[str, ...], skip_existing: bool) -> None:
    """Make runs of histories in files, such as `workflow show --output json` writes (also gzipped; - reads one).

    Of a folder, such as an export made, all histories in it are taken. A closed run can be looked at here; one that is
    open goes on, as a second one beside the one it was read of.
    """
    # By the times of their starts; one history at a time is in memory.
    begun = sorted([(history.events[0].event_time, name) for name in _named(files) for history in [read_history(name)]])
    from_stdin = read_history(STDIN) if STDIN in files else None

    async def command(engine: Engine) -> None:
        for _, name in begun:
            await _import(engine, target, read_history(name), skip_existing)
        if from_stdin is not None:
            await _import(engine, target, from_stdin, skip_existing)

    run(target, command)


async def _import(engine: Engine, target: Target, history: WorkflowHistory, skip_existing: bool) -> None:
    workflow_id, run_id = history.workflow_id, history.run_id
    request = r.ImportWorkflowRequest(
        namespace=target.namespace,
        execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id),
        events=tuple(history.events),
        identity=identity(),
        # The same file again, when this command was interrupted, is the same import.
        request_id=f"import-{hashlib.sha256(history.to_json().encode()).hexdigest()[:32]}",
    )
    imported = True
    try:
        await engine.call(o.IMPORT_WORKFLOW, request)
    except WorkflowExecutionAlreadyStarted as there:
        if not skip_existing or there.details.get("run_id") != run_id:
            raise
        imported = False
    if target.as_json:
        print_json({"workflow_id": workflow_id, "run_id": run_id, "imported": imported})
    else:
        words = "Imported" if imported else "Passed over"
        click.echo(safe(f"{words} {workflow_id}, run {run_id}, {len(history.events)} events."))


def _named(names: tuple[str, ...]) -> Iterator[str]:
    """Files, those of folders one by one; lists and manifests of exports are no histories."""
    for name in names:
        path = Path(name)
        if name == STDIN:
            continue
        if not path.is_dir():
            yield name
            continue
        found = [
            file
            for ending in ("*.json", "*.jsonl", "*.json.gz", "*.jsonl.gz")
            for file in path.rglob(ending)
            if file.is_file() and "jobs" not in file.relative_to(path).parts[:-1]
        ]
        if not found:
            raise Usage(f"there are no histories in the folder {name} (files that end in .json, .jsonl or .gz)")
        yield from map(str, found)


def read_history(name: str) -> WorkflowHistory:
    """Of a file, or of standard input; raises Usage that names the place where it is none."""
    try:
        data = sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise Usage(f"{name} cannot be read: {error.strerror or error}") from error
    try:
        return WorkflowHistory.from_json("", data)
    except ValueError as error:
        raise Usage(f"{'standard input' if name == STDIN else name}: {error}") from error
