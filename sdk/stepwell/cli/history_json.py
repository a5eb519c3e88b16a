"""``stepwell workflow fix-history-json``: a history that another tool exported, in the form of our own (DX-01)."""

from pathlib import Path

import click

from .grammar import Command
from .importing import read_history
from .text import safe
from .troubles import Usage


@click.command("fix-history-json", cls=Command)
@click.option("--source", required=True, metavar="FILE", help="The history; - is standard input.")
@click.option("--target", metavar="FILE", help="Where it goes, also over a file that is there; else standard output.")
def fix_history_json(source: str, target: str | None) -> None:
    """Write a history that Temporal's command line, UI or SDKs exported as `workflow show --output json` would.

    Of old exports as well, whose kinds of events have other names. What it writes can be replayed and imported; both
    read the exports themselves, too. Nothing asks an engine.
    """
    history = read_history(source)
    if target is None:
        click.echo(history.to_json())
        return
    try:
        Path(target).write_text(history.to_json() + "\n", encoding="utf-8")
    except OSError as error:
        raise Usage(f"--target {target} cannot be written: {error.strerror or error}") from error
    click.echo(safe(f"Wrote {len(history.events)} events of {history.workflow_id}, run {history.run_id}, to {target}."))
