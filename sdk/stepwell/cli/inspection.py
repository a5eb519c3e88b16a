"""``stepwell workflow list | describe | show``: the commands that only look.

On a ``sqlite://`` address they read the file beside whoever owns it, and start nothing.
"""

import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import click
import msgspec
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.events import CLOSE_EVENTS, HistoryEvent, WorkflowExecutionStarted
from ..api.limits import HISTORY_PAGE_EVENTS, MAX_LIST_PAGE
from ..client.pacing import Pace
from .connection import Engine, Target, run
from .description import print_description
from .filtering import filter_options
from .grammar import Command
from .options import Whole, run_id_option, target_options, workflow_id_argument
from .output import console, print_json, print_table, status_text, table
from .text import SHORT, attributes, distance_text, safe, time_text
from .troubles import Usage

LIST_LIMIT = 50


@click.command(cls=Command, name="list", spare=("--type",))
@filter_options
@click.option("--limit", type=Whole(min=1), default=LIST_LIMIT, show_default=True, help="At most so many.")
@click.option("--archived", is_flag=True, help="Those in the archive, newest close first.")
@target_options
def list_(target: Target, query: str, limit: int, archived: bool) -> None:
    """List workflows, newest first unless the query has an ORDER BY.

    Of options that are repeated one value must fit; all that are different must hold.
    """

    async def page(engine: Engine, size: int, token: bytes) -> _ListPage:
        more: dict[str, Any] = {"namespace": target.namespace, "page_size": size, "next_page_token": token}
        if archived:
            return await engine.call(o.LIST_ARCHIVED_WORKFLOWS, r.ListArchivedWorkflowsRequest(query=query, **more))
        return await engine.call(o.LIST_WORKFLOWS, r.ListWorkflowsRequest(query=query, **more))

    async def command(engine: Engine) -> None:
        found, more = await _list(partial(page, engine), limit)
        if target.as_json:
            print_json(found)
        else:
            _print_list(found, more, limit)

    run(target, command, read_only=True)


_ListPage = r.ListWorkflowsResponse | r.ListArchivedWorkflowsResponse


async def _list(
    ask: Callable[[int, bytes], Awaitable[_ListPage]], limit: int
) -> tuple[list[r.WorkflowExecutionInfo], bool]:
    found: list[r.WorkflowExecutionInfo] = []
    token = b""
    while len(found) < limit:
        size = min(limit - len(found), MAX_LIST_PAGE)
        page = await ask(size, token)
        found += page.executions
        token = page.next_page_token
        if not token:
            break
    return found, bool(token)


def _print_list(found: list[r.WorkflowExecutionInfo], more: bool, limit: int) -> None:
    shown = console()
    if not found:
        click.echo("No workflows.", err=True)
        return
    now = datetime.now(UTC)
    rows = table("STATUS", "WORKFLOW ID", "TYPE", "TASK QUEUE", "STARTED", "CLOSED", "RUN ID")
    for info in found:
        rows.add_row(
            status_text(info.status),
            Text(safe(info.execution.workflow_id)),
            Text(safe(info.workflow_type)),
            Text(safe(info.task_queue)),
            Text(distance_text(info.start_time, now)),
            Text(distance_text(info.close_time, now)),
            Text(info.execution.run_id, style="dim"),
        )
    print_table(rows, shown)
    if more:
        click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@target_options
def describe(target: Target, workflow_id: str, run_id: str) -> None:
    """Show where a workflow is, what it waits for, and what fails."""
    request = r.DescribeWorkflowRequest(
        namespace=target.namespace, execution=WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.DESCRIBE_WORKFLOW, request)
        if target.as_json:
            print_json(response)
        else:
            print_description(response, datetime.now(UTC), console())

    run(target, command, read_only=True)


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@click.option("--follow", "-f", is_flag=True, help="Go on with new events until the workflow closes.")
@click.option("--limit", type=Whole(min=1), help="Stop after so many events.")
@click.option("--reverse", is_flag=True, help="The newest event first.")
@click.option("--tail", type=Whole(min=1), help="Only the last so many; with --follow, then what comes.")
@click.option("--failed", is_flag=True, help="Only what failed, timed out or was terminated.")
@click.option("--full", is_flag=True, help="Print every attribute, and long values whole.")
@target_options
def show(
    target: Target,
    workflow_id: str,
    run_id: str,
    follow: bool,
    limit: int | None,
    reverse: bool,
    tail: int | None,
    failed: bool,
    full: bool,
) -> None:
    """Print the history of a workflow.

    With --output json: an array of events as the API has them; with --follow one event a line.
    """
    _check_order(follow, limit, reverse, tail)
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)

    async def command(engine: Engine) -> None:
        if tail is None:
            pages = _picked(pages_of(engine, execution, follow, limit, reverse), failed)
        elif follow:
            pages = _last_and_next(engine, execution, tail, failed)
        else:
            pages = _last(engine, execution, tail, failed)
        if not target.as_json:
            await _show_lines(pages, 0 if full else SHORT)
        elif follow:
            async for page in pages:
                for event in page:
                    print_json(event)
        else:
            await _show_array(pages)

    run(target, command, read_only=True)


def _check_order(follow: bool, limit: int | None, reverse: bool, tail: int | None) -> None:
    if tail is not None and limit is not None:
        raise Usage("--limit is for the first events and --tail for the last; use one of them")
    if reverse and follow:
        raise Usage("--reverse shows the events that there are, newest first, and cannot --follow new ones; use one")
    if reverse and tail is not None:
        raise Usage("--tail keeps the order of events; for the newest ones first use --reverse with --limit")


async def pages_of(
    engine: Engine,
    execution: WorkflowExecution,
    follow: bool,
    limit: int | None = None,
    reverse: bool = False,
    token: bytes = b"",
) -> AsyncIterator[tuple[HistoryEvent, ...]]:
    """Pages of events, one in memory at a time; from where ``token`` says."""
    left, pace = limit, Pace()
    while left is None or left > 0:
        pace.asking()
        request = r.GetHistoryRequest(
            namespace=engine.target.namespace,
            execution=execution,
            maximum_page_size=HISTORY_PAGE_EVENTS if left is None else min(left, HISTORY_PAGE_EVENTS),
            next_page_token=token,
            wait_new_event=follow,
            reverse=reverse,
        )
        if follow:
            page = await engine.call_through_outage(o.GET_HISTORY, request, _note_on_stderr)
        else:
            page = await engine.call(o.GET_HISTORY, request)
        events = page.events if left is None else page.events[:left]
        if left is not None:
            left -= len(events)
        if events:
            yield events
        token = page.next_page_token
        execution = WorkflowExecution(workflow_id=execution.workflow_id, run_id=page.run_id)
        if not token or (not reverse and events and isinstance(events[-1].attributes, CLOSE_EVENTS)):
            return
        if not events:
            await pace.came_empty()


async def _last(
    engine: Engine, execution: WorkflowExecution, tail: int, failed: bool
) -> AsyncIterator[tuple[HistoryEvent, ...]]:
    """The last ``tail`` events; read from the end, and no further than there are so many."""
    last: deque[HistoryEvent] = deque()
    limit = None if failed else tail
    async for page in _picked(pages_of(engine, execution, False, limit, reverse=True), failed):
        last.extendleft(page[: tail - len(last)])
        if len(last) == tail:
            break
    if last:
        yield tuple(last)


async def _last_and_next(
    engine: Engine, execution: WorkflowExecution, tail: int, failed: bool
) -> AsyncIterator[tuple[HistoryEvent, ...]]:
    """The last ``tail`` events that there are now, read from the end, and those that come behind them."""
    request = r.GetHistoryRequest(
        namespace=engine.target.namespace, execution=execution, maximum_page_size=1, reverse=True
    )
    newest = await engine.call(o.GET_HISTORY, request)
    shown = newest.events[0].event_id if newest.events else 0
    run = WorkflowExecution(workflow_id=execution.workflow_id, run_id=newest.run_id)
    async for page in _last(engine, run, tail, failed):
        earlier = tuple(event for event in page if event.event_id <= shown)
        if earlier:
            yield earlier
    if newest.events and isinstance(newest.events[0].attributes, CLOSE_EVENTS):
        return
    later = pages_of(engine, run, True, token=newest.following_token)
    async for page in _picked(later, failed):
        # An engine of an earlier release names no place to go on from, and the history comes from its beginning.
        new = tuple(event for event in page if event.event_id > shown)
        if new:
            yield new


async def _picked(
    pages: AsyncIterator[tuple[HistoryEvent, ...]], failed: bool
) -> AsyncIterator[tuple[HistoryEvent, ...]]:
    async for page in pages:
        picked = tuple(event for event in page if not failed or _is_bad(event))
        if picked:
            yield picked


def _is_bad(event: HistoryEvent) -> bool:
    return event.event_type.endswith(("Failed", "TimedOut", "Terminated"))


async def _show_lines(pages: AsyncIterator[tuple[HistoryEvent, ...]], value_limit: int) -> None:
    shown = console()
    async for page in pages:
        for event in page:
            shown.print(_line(event, value_limit), soft_wrap=True)


async def _show_array(pages: AsyncIterator[tuple[HistoryEvent, ...]]) -> None:
    """The array is written page by page, so that a long history needs no memory."""
    stream = sys.stdout.buffer
    encoder = msgspec.json.Encoder()
    separator = b"["
    async for page in pages:
        for event in page:
            stream.write(separator + encoder.encode(event))
            separator = b",\n"
    stream.write(b"]\n" if separator != b"[" else b"[]\n")
    stream.flush()


_EVENT_STYLES = (
    ("Failed", "red"),
    ("TimedOut", "red"),
    ("Terminated", "magenta"),
    ("Cancel", "yellow"),
    ("Completed", "green"),
)


_BOOKKEEPING = frozenset(
    {
        "first_execution_run_id",
        "history_size_bytes",
        "original_execution_run_id",
        "request_id",
        "sdk_metadata",
        "workflow_task_completed_event_id",
    }
)
"""Attributes that only --full shows; of a run's start also its own workflow id, which other events have for others."""


def _line(event: HistoryEvent, value_limit: int) -> Text:
    kind = event.event_type
    style = next((style for word, style in _EVENT_STYLES if word in kind), "cyan")
    line = Text(f"{event.event_id:>5}  ")
    line.append(f"{time_text(event.event_time)}  ", style="dim")
    line.append(f"{kind:<32}", style=style)
    hidden = _BOOKKEEPING if value_limit else frozenset()
    if hidden and isinstance(event.attributes, WorkflowExecutionStarted):
        hidden = hidden | {"workflow_id"}
    for name, value in attributes(event.attributes, value_limit, hidden):
        line.append(f"  {name}=", style="dim")
        line.append(value)
    return line


def _note_on_stderr(words: str) -> None:
    click.echo(words, err=True)
