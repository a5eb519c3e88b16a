"""``stepwell task-queue`` and ``stepwell system``: who works for a queue, and what engine this is."""

from datetime import UTC, datetime

import click
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.enums import TaskQueueKind
from .connection import Engine, Target, run
from .grammar import Command, Group
from .options import target_options
from .output import console, key_values, print_json, section, warn
from .text import distance_text, safe


@click.group(cls=Group, name="task-queue")
def task_queue() -> None:
    """Look at task queues."""


@task_queue.command(spare=("--task-queue",))
@click.argument("name", metavar="TASK_QUEUE")
@target_options
def describe(target: Target, name: str) -> None:
    """Show which workers poll a task queue, and how many tasks wait."""

    async def command(engine: Engine) -> None:
        found = {
            kind: await engine.call(
                o.DESCRIBE_TASK_QUEUE,
                r.DescribeTaskQueueRequest(namespace=target.namespace, task_queue=name, kind=kind),
            )
            for kind in TaskQueueKind
        }
        if target.as_json:
            print_json({"task_queue": name, **{kind.value.lower(): each for kind, each in found.items()}})
        else:
            _print(name, found)

    run(target, command)


def _print(name: str, found: dict[TaskQueueKind, r.DescribeTaskQueueResponse]) -> None:
    shown = console()
    now = datetime.now(UTC)
    waiting = ((f"{kind.value.capitalize()} tasks", f"{each.backlog_count} waiting") for kind, each in found.items())
    key_values((("Task queue", name), *waiting), shown)
    if not any(each.pollers for each in found.values()):
        shown.print()
        warn(f"No worker polls {name}; start one, or check the name.", shown)
    for kind, each in found.items():
        rows = ((poller.identity, distance_text(poller.last_access_time, now)) for poller in each.pollers)
        section(f"Workers for {kind.value.lower()} tasks", ("IDENTITY", "LAST POLL"), rows, shown)


@click.command(cls=Command)
@target_options
def system(target: Target) -> None:
    """Show version and place of the engine; exit code 4 when it cannot be reached."""

    async def command(engine: Engine) -> None:
        found = await engine.call(o.GET_SYSTEM_INFO, r.GetSystemInfoRequest())
        if target.as_json:
            print_json({"address": target.address, "server_version": found.server_version, "database": found.database})
            return
        key_values(
            (
                ("Address", target.address),
                ("Version", Text(safe(found.server_version))),
                ("Database", found.database),
                ("Namespace", target.namespace),
            ),
            console(),
        )

    run(target, command, read_only=True)
