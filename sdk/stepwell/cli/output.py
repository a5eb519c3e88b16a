"""Standard output: tables for people, or pure JSON for programs."""

import sys
from collections.abc import Iterable
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..api.codec import encode_json
from ..api.enums import WorkflowExecutionStatus
from .text import safe

_PIPED_WIDTH = 10_000
"""Lines are not folded for a program that reads them."""

_STATUS_STYLES = {
    WorkflowExecutionStatus.RUNNING: "cyan",
    WorkflowExecutionStatus.PAUSED: "bright_yellow",
    WorkflowExecutionStatus.COMPLETED: "green",
    WorkflowExecutionStatus.FAILED: "red",
    WorkflowExecutionStatus.TIMED_OUT: "red",
    WorkflowExecutionStatus.TERMINATED: "magenta",
    WorkflowExecutionStatus.CANCELED: "yellow",
    WorkflowExecutionStatus.CONTINUED_AS_NEW: "blue",
}


def console(*, to_stderr: bool = False) -> Console:
    """User data is never read as markup."""
    stream = sys.stderr if to_stderr else sys.stdout
    width = None if stream.isatty() else _PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, emoji=False, highlight=False)


def print_json(value: Any) -> None:
    """One JSON value and a newline, as UTF-8 whatever the terminal's encoding."""
    stream = sys.stdout.buffer
    stream.write(encode_json(value) + b"\n")
    stream.flush()


def table(*columns: str, title: str = "") -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", title=title or None, title_justify="left")
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def section(title: str, columns: Iterable[str], rows: Iterable[Iterable[str | Text]], to: Console) -> None:
    """A titled table below what came before; nothing when there are no rows."""
    made = table(*columns)
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(safe(cell)) for cell in row))
    if made.row_count:
        to.print()
        to.print(Text(title, style="bold"))
        print_table(made, to)


def print_table(made: Table, to: Console) -> None:
    """Without the blanks that fill the last column, where nothing but a program could see them."""
    if to.is_terminal:
        to.print(made)
        return
    with to.capture() as captured:
        to.print(made)
    for line in captured.get().splitlines():
        to.print(Text(line.rstrip()))


def key_values(pairs: Iterable[tuple[str, str | Text]], to: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(name, value if isinstance(value, Text) else Text(safe(value)))
    print_table(grid, to)


def status_text(status: WorkflowExecutionStatus) -> Text:
    return Text(status, style=_STATUS_STYLES[status])


def warn(words: str, to: Console) -> None:
    to.print(Text(f"! {safe(words)}", style="yellow"))


def done(workflow_id: str, words: str, *, as_json: bool) -> None:
    """What a command has done to one workflow, in words or as JSON."""
    if as_json:
        print_json({"workflow_id": workflow_id})
    else:
        click.echo(safe(words))
