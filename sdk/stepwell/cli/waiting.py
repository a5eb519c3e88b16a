"""``stepwell workflow result``: waits for the end of a workflow, and shows on a terminal that it does."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import click
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.events import CLOSE_EVENTS, HistoryEvent
from ..client.pacing import Pace
from .connection import Engine, Target, run
from .grammar import Command
from .options import run_id_option, target_options, workflow_id_argument
from .outcome import End, end_of, print_end
from .output import console
from .text import safe, span_text


@click.command(cls=Command)
@workflow_id_argument
@run_id_option
@target_options
def result(target: Target, workflow_id: str, run_id: str) -> None:
    """Wait for a workflow to close; print its result. Exit code 1 when it did not succeed.

    A run that was continued, retried or is repeated is followed to the end of the last one.
    """
    execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)

    async def command(engine: Engine) -> None:
        print_end(await ended(engine, execution), target)

    run(target, command, read_only=True)


async def ended(engine: Engine, execution: WorkflowExecution) -> End:
    """The end of the last run of the chain that ``execution`` is in."""
    waited, event = await _wait(engine, execution)
    while next_run_id := getattr(event.attributes, "new_execution_run_id", ""):
        waited, event = await _wait(engine, WorkflowExecution(workflow_id=execution.workflow_id, run_id=next_run_id))
    return end_of(waited, event)


async def _wait(engine: Engine, execution: WorkflowExecution) -> tuple[WorkflowExecution, HistoryEvent]:
    """The run that was waited for, and its close event."""
    described = await engine.call(
        o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(namespace=engine.target.namespace, execution=execution)
    )
    execution = described.info.execution
    token = b""
    with _Progress(execution.workflow_id) as progress:
        for queue in described.unpolled_task_queues:
            progress.note(f"no worker polls task queue {queue}")
        pace = Pace()
        while True:
            request = r.GetHistoryRequest(
                namespace=engine.target.namespace,
                execution=execution,
                next_page_token=token,
                wait_new_event=True,
                close_event_only=True,
            )
            pace.asking()
            page = await engine.call_through_outage(o.GET_HISTORY, request, progress.note)
            for event in page.events:
                if isinstance(event.attributes, CLOSE_EVENTS):
                    return execution, event
            token = page.next_page_token
            progress.note("")
            await pace.came_empty()


class _Progress:
    """A moving line on standard error, on terminals only: whom we wait for, how long, and what is the matter."""

    def __init__(self, workflow_id: str) -> None:
        self._workflow_id = safe(workflow_id)
        self._status = console(to_stderr=True).status(Text(""))
        self._words = ""
        self._ticking: asyncio.Task[None] | None = None

    def __enter__(self) -> "_Progress":
        if self._status.console.is_terminal:
            self._status.start()
            self._ticking = asyncio.get_running_loop().create_task(self._tick())
        return self

    def __exit__(self, *_: object) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._status.stop()

    def note(self, words: str) -> None:
        self._words = words

    async def _tick(self) -> None:
        clock: Callable[[], float] = asyncio.get_running_loop().time
        started = clock()
        while True:
            waited = span_text(timedelta(seconds=int(clock() - started)))
            note = f": {safe(self._words)}" if self._words else ""
            self._status.update(Text(f"waiting for {self._workflow_id} ({waited}){note}"))
            await asyncio.sleep(1)
