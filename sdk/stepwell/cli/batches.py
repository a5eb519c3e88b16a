"""``--query`` of a verb makes it a batch (DX-05); ``stepwell batch`` looks at batches and ends them (DX-04)."""

import asyncio
import sys
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.batches import BatchDelete, BatchOperation, BatchOperationInfo, BatchReset, BatchUnpause
from ..api.common import WorkflowExecution
from ..api.enums import BatchOperationState
from ..api.limits import MAX_BATCH_RATE, MAX_LIST_PAGE
from ..client.lists import counted
from .connection import Engine, Target, identity, run
from .grammar import Group
from .options import Number, Whole, in_place_of, run_id_option, target_options
from .output import console, key_values, print_json, print_table, section, table
from .text import distance_text, safe, shorten, time_text
from .troubles import Refused, Usage, WorkflowFailed

F = TypeVar("F", bound=Callable[..., Any])

_LOOK_AGAIN = 0.5
"""Seconds between two looks at how far a batch is."""


@dataclass(frozen=True, slots=True)
class Many:
    """The workflows that a query finds, and how a batch of them is to go."""

    query: str
    sure: bool
    rate: float
    job_id: str
    detach: bool


def one_or_many(command: F) -> F:
    """The workflow's id, or ``--query``; given to the command as ``of``: a ``WorkflowExecution``, or :class:`Many`."""

    def wrapped(
        *args: Any,
        workflow_id: str | None,
        by_option: str | None,
        run_id: str,
        query: str | None,
        sure: bool,
        rate: float | None,
        job_id: str | None,
        detach: bool,
        **kwargs: Any,
    ) -> Any:
        ids = [text for text in (workflow_id, by_option) if text is not None]
        of: WorkflowExecution | Many
        if query is not None:
            _check_alone(ids, run_id, query, job_id)
            of = Many(query, sure, rate or 0.0, job_id or uuid.uuid4().hex, detach)
        elif len(ids) != 1:
            raise _wrong_ids(ids)
        elif sure or rate is not None or job_id is not None or detach:
            raise Usage("--yes, --rps, --job-id and --detach are for the batch that --query makes; leave them out")
        else:
            of = WorkflowExecution(workflow_id=ids[0], run_id=run_id)
        return command(*args, of=of, **kwargs)

    made = in_place_of(command, wrapped)
    for option in reversed(_MANY):
        made = option(made)
    return click.argument("workflow_id", required=False, metavar="WORKFLOW_ID")(made)


_MANY = (
    click.option("--workflow-id", "-w", "by_option", metavar="ID", help="In place of the argument."),
    run_id_option,
    click.option("--query", "-q", help="All that this finds, as a batch, such as \"WorkflowType = 'order'\"."),
    click.option("--yes", "-y", "sure", is_flag=True, help="With --query: do not ask."),
    click.option(
        "--rps",
        "rate",
        type=Number(min=0, min_open=True, max=MAX_BATCH_RATE),
        help=f"With --query: so many in a second (default and limit {MAX_BATCH_RATE}).",
    ),
    click.option("--job-id", help="With --query: the batch's id; a repeat with the same one does not start another."),
    click.option("--detach", is_flag=True, help="With --query: do not wait for the batch."),
)


def _check_alone(ids: list[str], run_id: str, query: str, job_id: str | None) -> None:
    if ids or run_id:
        raise Usage("a workflow and --query are both given; use one of them")
    if not query.strip():
        raise Usage("--query is empty (an unset variable?); say what to find, such as ExecutionStatus = 'Running'")
    if job_id == "":
        raise Usage("--job-id is empty (an unset variable?); leave it out for a new one")


def _wrong_ids(ids: list[str]) -> Exception:
    if not ids:
        return click.UsageError("Missing argument 'WORKFLOW_ID', or --query.", click.get_current_context())
    return Usage(f"the workflow's id is given as {ids[0]!r} and by --workflow-id as {ids[1]!r}; use one")


def start_batch(target: Target, many: Many, operation: BatchOperation, reason: str, verb: str) -> None:
    """Counts, asks, starts the batch and waits for it. Raises :class:`WorkflowFailed` when it failed for some."""
    request = r.StartBatchOperationRequest(
        namespace=target.namespace,
        job_id=many.job_id,
        operation=operation,
        query=many.query,
        reason=reason,
        identity=identity(),
        max_operations_per_second=many.rate,
    )

    async def command(engine: Engine) -> None:
        # As it was typed first, so that positions in what is refused are those of what was typed.
        as_typed = r.ListWorkflowsRequest(namespace=target.namespace, query=many.query, page_size=1)
        await engine.call(o.LIST_WORKFLOWS, as_typed)
        count = (await counted(engine, target.namespace, _narrowed(operation, many.query))).count
        if not many.sure:
            await asyncio.to_thread(_ask, verb, count)
        await engine.call(o.START_BATCH_OPERATION, request)
        if many.detach:
            words = f"Batch {many.job_id} has begun; `stepwell batch describe {many.job_id}` shows how far it is."
            _say(target, {"job_id": many.job_id, "state": BatchOperationState.RUNNING}, words)
            return
        click.echo(safe(f"Batch {many.job_id} has begun; it goes on when this command is interrupted."), err=True)
        _print_end(target, await _finished(engine, many.job_id, count))

    run(target, command)


def _narrowed(operation: BatchOperation, query: str) -> str:
    """As the engine narrows it to what the operation is for."""
    if isinstance(operation, BatchDelete | BatchReset):
        return query
    states = "'Paused'" if isinstance(operation, BatchUnpause) else "'Running', 'Paused'"
    return f"({query}) AND ExecutionStatus IN ({states})"


def _ask(verb: str, count: int) -> None:
    found = f"The query finds {count} workflow{'' if count == 1 else 's'} now."
    if not sys.stdin.isatty():
        raise Usage(f"{found} Nobody is here to be asked; --yes goes on")
    if not click.confirm(f"{found} {verb} what it finds?", err=True):
        raise Refused("nothing was done")


async def _finished(engine: Engine, job_id: str, count: int) -> r.DescribeBatchOperationResponse:
    request = r.DescribeBatchOperationRequest(namespace=engine.target.namespace, job_id=job_id)
    shown = console(to_stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    moving = Progress(*columns, console=shown, transient=True) if shown.is_terminal else nullcontext()
    with moving as progress:
        task = None if progress is None else progress.add_task("batch", total=count)
        while True:
            described = await engine.call_through_outage(o.DESCRIBE_BATCH_OPERATION, request, _on_stderr)
            info = described.info
            if progress is not None and task is not None:
                done = info.complete_operation_count + info.failure_operation_count
                progress.update(task, completed=done, total=max(count, info.total_operation_count))
            if info.state is not BatchOperationState.RUNNING:
                return described
            await asyncio.sleep(_LOOK_AGAIN)


def _on_stderr(words: str) -> None:
    click.echo(words, err=True)


def _print_end(target: Target, described: r.DescribeBatchOperationResponse) -> None:
    info = described.info
    words = f"Batch {info.job_id} is {info.state}: {_counts(info)}."
    if target.as_json:
        print_json(described)
    elif info.state is BatchOperationState.COMPLETED and not info.failure_operation_count:
        click.echo(safe(words))
    if info.state is BatchOperationState.COMPLETED and not info.failure_operation_count:
        return
    why = [described.close_reason] if described.close_reason else []
    why += [f"{one.execution.workflow_id}: {one.message or one.code}" for one in described.failures]
    raise WorkflowFailed("\n  ".join(safe(line) for line in (words, *why)))


def _counts(info: BatchOperationInfo) -> str:
    return (
        f"{info.complete_operation_count} done, {info.failure_operation_count} failed, "
        f"of {info.total_operation_count} found{'' if _knows_all(info) else ' so far'}"
    )


def _knows_all(info: BatchOperationInfo) -> bool:
    """Whether what it found so far is all that there is."""
    return info.all_found or info.state is not BatchOperationState.RUNNING


@click.group(cls=Group, meant={"stop": "terminate JOB_ID", "cancel": "terminate JOB_ID"})
def batch() -> None:
    """Look at batch operations and end them; --query of a workflow command makes them."""


_JOB = click.argument("job_id", metavar="JOB_ID")


@batch.command(name="list")
@click.option("--limit", type=Whole(min=1), default=50, show_default=True, help="At most so many.")
@target_options
def list_(target: Target, limit: int) -> None:
    """List batch operations; those that are over are kept for a week."""

    async def command(engine: Engine) -> None:
        found: list[BatchOperationInfo] = []
        token = b""
        while len(found) < limit:
            size = min(limit - len(found), MAX_LIST_PAGE)
            request = r.ListBatchOperationsRequest(namespace=target.namespace, page_size=size, next_page_token=token)
            page = await engine.call(o.LIST_BATCH_OPERATIONS, request)
            found += page.operations
            token = page.next_page_token
            if not token:
                break
        if target.as_json:
            print_json(found)
            return
        _print_list(found)
        if token:
            click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)

    run(target, command)


def _print_list(found: list[BatchOperationInfo]) -> None:
    if not found:
        click.echo("No batches.", err=True)
        return
    now = datetime.now(UTC)
    rows = table("STATE", "JOB ID", "OPERATION", "STARTED", "CLOSED", "DONE", "FAILED", "FOUND")
    for info in found:
        found_text = f"{info.total_operation_count}{'' if _knows_all(info) else '+'}"
        counts = (info.complete_operation_count, info.failure_operation_count, found_text)
        times = (distance_text(info.start_time, now), distance_text(info.close_time, now))
        cells = (str(info.state), info.job_id, str(info.operation_type), *times, *map(str, counts))
        rows.add_row(*(Text(safe(cell)) for cell in cells))
    print_table(rows, console())


@batch.command()
@_JOB
@target_options
def describe(target: Target, job_id: str) -> None:
    """Show how far a batch operation is, and why it failed where it did."""
    request = r.DescribeBatchOperationRequest(namespace=target.namespace, job_id=job_id)

    async def command(engine: Engine) -> None:
        described = await engine.call(o.DESCRIBE_BATCH_OPERATION, request)
        if target.as_json:
            print_json(described)
            return
        info, shown = described.info, console()
        key_values(
            (
                ("Job id", info.job_id),
                ("Operation", str(info.operation_type)),
                ("State", str(info.state)),
                ("Query", described.query),
                ("Reason", described.reason),
                ("By", described.identity),
                ("Started", time_text(info.start_time)),
                ("Closed", time_text(info.close_time)),
                ("Because", described.close_reason),
                ("Workflows", _counts(info)),
            ),
            shown,
        )
        rows = ((one.execution.workflow_id, one.execution.run_id, shorten(one.message)) for one in described.failures)
        section("Failures", ("WORKFLOW ID", "RUN ID", "WHY"), rows, shown)

    run(target, command)


@batch.command(spare=("--reason",))
@_JOB
@click.option("--reason", default="", help="Shown by describe.")
@target_options
def terminate(target: Target, job_id: str, reason: str) -> None:
    """End a batch operation; what is done stays done."""
    look = r.DescribeBatchOperationRequest(namespace=target.namespace, job_id=job_id)
    request = r.StopBatchOperationRequest(namespace=target.namespace, job_id=job_id, reason=reason, identity=identity())

    async def command(engine: Engine) -> None:
        info = (await engine.call(o.DESCRIBE_BATCH_OPERATION, look)).info
        if info.state is not BatchOperationState.RUNNING:
            raise Refused(f"batch {job_id} is over: it is {info.state}, {_counts(info)}; nothing was done")
        await engine.call(o.STOP_BATCH_OPERATION, request)
        _say(target, {"job_id": job_id}, f"Batch {job_id} ends; what is done stays done.")

    run(target, command)


def _say(target: Target, said: dict[str, Any], words: str) -> None:
    if target.as_json:
        print_json(said)
    else:
        click.echo(safe(words))
