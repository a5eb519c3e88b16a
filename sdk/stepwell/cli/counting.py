"""``stepwell workflow count`` and ``stepwell schedule count``: how many a query finds."""

import click
from rich.text import Text

from ..client.lists import ScheduleCount, WorkflowExecutionCount, counted, schedules_counted
from .connection import Engine, Target, run
from .filtering import filter_options
from .grammar import Command
from .options import target_options
from .output import console, print_json, print_table, table
from .text import safe


@click.command(cls=Command, spare=("--query",))
@filter_options
@target_options
def count(target: Target, query: str) -> None:
    """Count workflows, such as --query "GROUP BY ExecutionStatus" for counts by the values of an attribute."""

    async def command(engine: Engine) -> None:
        print_counted(target, await counted(engine, target.namespace, query))

    run(target, command, read_only=True)


@click.command(cls=Command, name="count", spare=("--query",))
@click.option("--query", "-q", default="", help="Only what this finds; GROUP BY counts by the values of an attribute.")
@target_options
def count_schedules(target: Target, query: str) -> None:
    """Count schedules, such as --query "StepwellSchedulePaused = true"."""

    async def command(engine: Engine) -> None:
        print_counted(target, await schedules_counted(engine, target.namespace, query))

    run(target, command)


def print_counted(target: Target, found: WorkflowExecutionCount | ScheduleCount) -> None:
    if target.as_json:
        groups = [{"value": group.group_values[0], "count": group.count} for group in found.groups]
        print_json({"count": found.count, "groups": groups})
        return
    if found.groups:
        rows = table("COUNT", "VALUE")
        for group in found.groups:
            (value,) = group.group_values
            rows.add_row(Text(str(group.count)), Text("(none)" if value is None else safe(value)))
        print_table(rows, console())
    click.echo(f"{found.count} in all" if found.groups else str(found.count))
