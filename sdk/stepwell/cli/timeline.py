"""``stepwell workflow timeline``: what a run did when, as bars; ``trace``: the same, live, with its children."""

import asyncio
import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.enums import WorkflowExecutionStatus
from ..api.errors import NotFound, Unavailable
from .connection import Engine, Target, run
from .grammar import Command
from .inspection import pages_of
from .options import Whole, choice_of, run_id_option, target_options, workflow_id_argument
from .output import console, print_json, status_text
from .text import safe, span_text, time_text
from .timeline_bars import Bar, Kind, RunBars, Status
from .timeline_text import ASCII, MINIMUM_WIDTH, UNICODE, Frame, Row, Signs, drawn, legend, remarks

F = TypeVar("F", bound=Callable[..., Any])

_PIPED_WIDTH = 100
_REFRESH = 0.5
"""Seconds between two pictures of a run that goes on."""

_DESCRIBE_EVERY = 4
"""Pictures: attempts of open activities are not in the history, and have to be asked for."""

MAX_RUNS = 100
"""Runs that are looked into, at most."""

_AROUND = 8
"""Lines of a live picture that are no bars."""


@dataclass(frozen=True, slots=True)
class _Look:
    limit: int
    width: int
    signs: Signs
    fold: frozenset[WorkflowExecutionStatus] = frozenset()
    """Children that are one line, whatever they did."""


AT_A_TIME = 10
"""Histories that are read at the same time, unless they are followed."""


class _Node:
    """A run, as far as its history has been read, and its children, as far as they are looked into."""

    def __init__(self, described: r.DescribeWorkflowResponse) -> None:
        self.described = described
        self.execution = described.info.execution
        self.bars = RunBars()
        self.children: dict[str, _Node] = {}
        """By run id."""

    @property
    def status(self) -> WorkflowExecutionStatus:
        run = self.bars.run
        return self.described.info.status if run.end is None else _STATUSES[run.status]


class _Tree:
    """Reads a run and its children, down to ``depth``; with ``follow`` until the run at the top closes. Children that
    have closed as ``fold`` says are not read."""

    def __init__(
        self, engine: Engine, depth: int, follow: bool, fold: frozenset[WorkflowExecutionStatus] = frozenset()
    ) -> None:
        self._engine, self._depth, self._follow, self._fold = engine, depth, follow, fold
        self._room = asyncio.Semaphore(MAX_RUNS if follow else AT_A_TIME)
        self._nodes: list[_Node] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self, execution: WorkflowExecution) -> _Node:
        node = _Node(await self._describe(execution))
        self._nodes.append(node)
        return node

    async def read(self, root: _Node) -> None:
        try:
            await self._events(root, 0)
            for task in self._tasks:  # which may add others
                if task.done() or not self._follow:  # else it may go on behind its parent's end
                    await task
        finally:
            for task in self._tasks:
                task.cancel()

    async def refresh(self) -> None:
        """What describe knows of runs that are open."""
        for node in self._nodes:
            if not node.bars.closed:
                node.described = await self._describe(node.execution)
                node.bars.pending(node.described)

    async def _describe(self, execution: WorkflowExecution) -> r.DescribeWorkflowResponse:
        request = r.DescribeWorkflowRequest(namespace=self._engine.target.namespace, execution=execution)
        return await self._engine.call(o.DESCRIBE_WORKFLOW, request)

    async def _events(self, node: _Node, depth: int) -> None:
        async for page in pages_of(self._engine, node.execution, self._follow):
            for event in page:
                node.bars.feed(event)
            started, node.bars.children = node.bars.children, []
            for child in started:
                if depth < self._depth and len(self._tasks) < MAX_RUNS:
                    self._tasks.append(asyncio.create_task(self._child(node, child, depth + 1)))

    async def _child(self, parent: _Node, execution: WorkflowExecution, depth: int) -> None:
        try:
            async with self._room:
                node = _Node(await self._describe(execution))
                if node.described.info.status in self._fold:
                    return
                self._nodes.append(node)
                parent.children[execution.run_id] = node
                await self._events(node, depth)
        except NotFound:
            return  # its retention is over, which may be shorter than its parent's life


_STATUSES = {
    Status.DONE: WorkflowExecutionStatus.COMPLETED,
    Status.FAILED: WorkflowExecutionStatus.FAILED,
    Status.TIMED_OUT: WorkflowExecutionStatus.TIMED_OUT,
    Status.CANCELED: WorkflowExecutionStatus.CANCELED,
    Status.TERMINATED: WorkflowExecutionStatus.TERMINATED,
    Status.CONTINUED: WorkflowExecutionStatus.CONTINUED_AS_NEW,
}
"""The history may be ahead of what was described."""


def rows_of(
    node: _Node, limit: int, depth: int = 0, fold: frozenset[WorkflowExecutionStatus] = frozenset()
) -> Iterator[Row]:
    if depth == 0:
        yield Row(node.bars.run)
    shown, more = node.bars.shown(limit)
    for bar in shown:
        yield Row(bar, depth + 1)
        child = node.children.get(bar.child.run_id) if bar.child is not None else None
        if child is not None and child.status not in fold:
            yield from rows_of(child, limit, depth + 1, fold)
    if more:
        yield Row(Bar(Kind.WORKFLOW, "", node.bars.run.start), depth + 1, left_out=more)


def picture(node: _Node, look: _Look, now: datetime) -> Iterator[Text]:
    """All lines, for people."""
    info, run_bar = node.described.info, node.bars.run
    end = run_bar.end or max(now, run_bar.start)
    head = Text(safe(info.execution.workflow_id), style="bold").append(f"  {safe(info.workflow_type)}  ", style="")
    head.append_text(status_text(node.status))
    so_far = "" if run_bar.end is not None else " so far"
    head.append(f"  since {time_text(run_bar.start)}, {span_text(end - run_bar.start)}{so_far}", style="dim")
    yield head
    before = node.described.continued_execution_run_id
    for words, run_id in (("goes on from run", before), ("goes on as run", node.bars.next_run_id)):
        if run_id:
            yield Text(f"{words} {run_id}", style="dim")
    yield Text()
    rows = list(rows_of(node, look.limit, fold=look.fold))
    yield from drawn(rows, Frame(run_bar.start, end, look.width, look.signs))
    yield Text()
    yield from remarks(rows, look.signs)
    yield legend(look.signs)


def _look_options(command: F) -> F:
    for option in (
        click.option("--ascii", "plain", is_flag=True, help="Plain characters only, as without UTF-8."),
        click.option("--width", type=Whole(min=MINIMUM_WIDTH), help="Columns; else those of the terminal."),
        click.option(
            "--limit",
            type=Whole(min=1),
            default=100,
            show_default=True,
            help="Bars of each run, at most: first what is open or failed, then what is newest.",
        ),
        click.option(
            "--fold",
            "folded",
            multiple=True,
            type=choice_of(WorkflowExecutionStatus),
            help="Do not look into children with this status, such as completed; repeatable.",
        ),
    ):
        command = option(command)
    return command


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@click.option("--depth", type=Whole(min=0), default=0, help="Look into children, so many levels down.")
@_look_options
@target_options
def timeline(target: Target, workflow_id: str, run_id: str, depth: int, **look: Any) -> None:
    """Show what a workflow did when: activities, timers, children and messages as bars over time."""
    _show(target, WorkflowExecution(workflow_id=workflow_id, run_id=run_id), depth, False, **look)


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@click.option("--depth", type=Whole(min=0), default=3, show_default=True, help="Levels of children.")
@_look_options
@target_options
def trace(target: Target, workflow_id: str, run_id: str, depth: int, **look: Any) -> None:
    """Follow a workflow and its children as a timeline until it closes; on a terminal the picture moves."""
    _show(target, WorkflowExecution(workflow_id=workflow_id, run_id=run_id), depth, True, **look)


def _show(
    target: Target,
    execution: WorkflowExecution,
    depth: int,
    follow: bool,
    *,
    limit: int,
    width: int | None,
    plain: bool,
    folded: tuple[WorkflowExecutionStatus, ...],
) -> None:
    shown = console()
    signs = ASCII if plain or shown.options.ascii_only else UNICODE
    columns = width or (shutil.get_terminal_size((_PIPED_WIDTH, 24)).columns if shown.is_terminal else _PIPED_WIDTH)
    fold = frozenset(map(WorkflowExecutionStatus, folded))
    look = _Look(limit, max(columns, MINIMUM_WIDTH), signs, fold)

    async def command(engine: Engine) -> None:
        tree = _Tree(engine, depth, follow, fold)
        root = await tree.open(execution)
        if follow and shown.is_terminal and not target.as_json:
            await _watch(tree, root, look, shown)
        else:
            await tree.read(root)
        await tree.refresh()
        if target.as_json:
            print_json(_as_json(root))
            return
        for line in picture(root, look, datetime.now(UTC)):
            shown.print(line, soft_wrap=True)

    run(target, command, read_only=True)


async def _watch(tree: _Tree, root: _Node, look: _Look, shown: Console) -> None:
    with Live(console=shown, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        drawing = asyncio.create_task(_draw(tree, root, look, live))
        try:
            await tree.read(root)
        except asyncio.CancelledError:  # Ctrl-C: nothing is printed behind it, so what was seen stays
            live.transient = False
            raise
        finally:
            drawing.cancel()
            with suppress(asyncio.CancelledError):
                await drawing


async def _draw(tree: _Tree, root: _Node, look: _Look, live: Live) -> None:
    """For ever, a picture that fits on the screen."""
    for number in itertools.count():
        if number % _DESCRIBE_EVERY == 0:
            with suppress(Unavailable):
                await tree.refresh()
        room = max(live.console.size.height - _AROUND, 1)
        fitting = replace(look, limit=min(look.limit, room), width=max(live.console.size.width, MINIMUM_WIDTH))
        if root.bars.run.name:
            live.update(Group(*picture(root, fitting, datetime.now(UTC))), refresh=True)
        await asyncio.sleep(_REFRESH)


def _as_json(node: _Node) -> dict[str, Any]:
    return {
        "workflow_id": node.execution.workflow_id,
        "run_id": node.execution.run_id,
        "workflow": _bar_json(node, node.bars.run),
        "bars": [_bar_json(node, bar) for bar in node.bars.bars],
    }


def _bar_json(node: _Node, bar: Bar) -> dict[str, Any]:
    said: dict[str, Any] = {"kind": bar.kind, "name": bar.name, "start": bar.start, "status": bar.status}
    if bar.marks:
        said["times"] = bar.marks
    else:
        said |= {"end": bar.end, "attempt": bar.attempt, "attempt_start": bar.attempt_start}
    if bar.note:
        said["note"] = bar.note
    child = node.children.get(bar.child.run_id) if bar.child is not None else None
    if child is not None:
        said["child"] = _as_json(child)
    return said
