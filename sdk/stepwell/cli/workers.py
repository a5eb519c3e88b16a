"""``stepwell worker``: which workers poll, of one task queue or of the namespace."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.text import Text

from ..api import requests as r
from ..api.limits import MAX_LIST_PAGE
from ..client.workers import all_workers
from .connection import Engine, Target, run
from .grammar import Command, Group
from .options import Whole, in_place_of, target_options
from .output import console, key_values, print_json, print_table, table
from .text import distance_text, safe
from .troubles import Refused

F = TypeVar("F", bound=Callable[..., Any])

LIST_LIMIT = 50


@click.group(cls=Group, name="worker")
def worker() -> None:
    """Look at workers."""


_queue_option = click.option("--task-queue", "-t", default="", help="Only those of this task queue.")


def _which(command: F) -> F:
    """The filters, given to the command as one request ``asked``."""

    def wrapped(target: Target, task_queue: str, identity: str, identity_prefix: str, **kwargs: Any) -> Any:
        asked = r.ListWorkersRequest(
            namespace=target.namespace,
            task_queue=task_queue,
            identity=identity,
            identity_prefix=identity_prefix,
            page_size=MAX_LIST_PAGE,
        )
        return command(target=target, asked=asked, **kwargs)

    wrapped = in_place_of(command, wrapped)
    wrapped = click.option("--identity-prefix", default="", help="Only those whose identity begins so.")(wrapped)
    wrapped = click.option("--identity", default="", help="Only the worker of this identity.")(wrapped)
    return _queue_option(wrapped)


@worker.command(cls=Command, name="list", spare=("--task-queue",))
@click.option("--limit", type=Whole(min=1), default=LIST_LIMIT, show_default=True, help="At most so many.")
@target_options
@_which
def list_(target: Target, asked: r.ListWorkersRequest, limit: int) -> None:
    """List the workers that poll now or did in the last five minutes.

    A worker of several task queues comes once for each. A control plane on AWS wants to be told the task queue.
    """

    async def command(engine: Engine) -> None:
        found: list[r.WorkerListEntry] = []
        async for entry in all_workers(engine, asked):
            found.append(entry)
            if len(found) > limit:
                break
        if target.as_json:
            print_json(found[:limit])
        else:
            _print(found, limit)

    run(target, command)


@worker.command(cls=Command, spare=("--task-queue",))
@target_options
@_which
def count(target: Target, asked: r.ListWorkersRequest) -> None:
    """Count the workers that `stepwell worker list` would list."""

    async def command(engine: Engine) -> None:
        found = len([entry async for entry in all_workers(engine, asked)])
        if target.as_json:
            print_json({"count": found})
        else:
            click.echo(str(found))

    run(target, command)


@worker.command(cls=Command, spare=("--task-queue",))
@click.argument("identity", metavar="IDENTITY")
@_queue_option
@target_options
def describe(target: Target, identity: str, task_queue: str) -> None:
    """Show a worker: what it polls, when it last did, and its build."""
    if not identity:
        raise click.UsageError("IDENTITY is empty; `stepwell worker list` has those there are")
    asked = r.ListWorkersRequest(
        namespace=target.namespace, task_queue=task_queue, identity=identity, page_size=MAX_LIST_PAGE
    )

    async def command(engine: Engine) -> None:
        found = [entry async for entry in all_workers(engine, asked)]
        if not found:
            where = f"task queue {task_queue}" if task_queue else f"namespace {target.namespace}"
            raise Refused(
                f"no worker {safe(identity)} has polled in {safe(where)} in the last five minutes; "
                "`stepwell worker list` has those that did"
            )
        if target.as_json:
            print_json(found)
            return
        for entry in found:
            _print_one(entry)

    run(target, command)


def _print(found: list[r.WorkerListEntry], limit: int) -> None:
    if not found:
        click.echo("No workers.", err=True)
        return
    now = datetime.now(UTC)
    rows = table("IDENTITY", "TASK QUEUE", "TASKS", "LAST POLL", "BUILD ID")
    for entry in found[:limit]:
        rows.add_row(
            Text(safe(entry.identity)),
            Text(safe(entry.task_queue)),
            Text(_kinds(entry)),
            Text(distance_text(entry.last_poll_time, now)),
            Text(safe(entry.build_id)),
        )
    print_table(rows, console())
    if len(found) > limit:
        click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)


def _print_one(entry: r.WorkerListEntry) -> None:
    shown = console()
    key_values(
        (
            ("Worker", entry.identity),
            ("Task queue", entry.task_queue),
            ("Tasks", _kinds(entry)),
            ("Last poll", distance_text(entry.last_poll_time, datetime.now(UTC))),
            ("Build", entry.build_id),
            ("Key", entry.worker_key),
        ),
        shown,
    )


def _kinds(entry: r.WorkerListEntry) -> str:
    return ", ".join(kind.value.lower() for kind in entry.kinds)
