"""``stepwell export``: histories of closed runs written as objects by the engine (LC-47)."""

import asyncio
import uuid
from datetime import UTC, datetime

import click

from ..api import operations as o
from ..api import requests as r
from ..api.enums import ExportFormat, ExportState
from ..api.exports import ExportInfo
from ..api.limits import MAX_LIST_PAGE
from .connection import Engine, Target, identity, run
from .grammar import Group
from .options import Whole, target_options
from .output import console, key_values, print_json, print_table, section, table
from .schedule_options import MOMENT
from .text import distance_text, safe, shorten, time_text
from .troubles import Usage, WorkflowFailed

_LOOK_AGAIN = 0.5
_FORMATS = {"jsonl.gz": ExportFormat.JSON_LINES_GZIP, "json": ExportFormat.JSON}
_JOB = click.argument("job_id", metavar="JOB_ID")


@click.group(cls=Group, meant={"terminate": "stop JOB_ID", "cancel": "stop JOB_ID"})
def export() -> None:
    """Write histories of closed runs to files, or to S3 on AWS, in the background."""


@export.command(spare=("--destination",))
@click.option("--destination", "-d", required=True, help="A folder below the place that the engine has for exports.")
@click.option("--query", "-q", default="", help="Which runs, such as \"WorkflowType = 'order'\" (default: all).")
@click.option("--closed-after", type=MOMENT, help="Those that closed then or later.")
@click.option("--closed-before", type=MOMENT, help="Those that closed before (default: now).")
@click.option("--continuous", is_flag=True, help="Go on with what closes later, until it is stopped.")
@click.option("--format", "form", type=click.Choice(list(_FORMATS)), default="jsonl.gz", show_default=True)
@click.option("--job-id", help="The export's id; a repeat with the same one does not start another.")
@click.option("--wait", is_flag=True, help="Until it is over.")
@target_options
def start(
    target: Target,
    destination: str,
    query: str,
    closed_after: datetime | None,
    closed_before: datetime | None,
    continuous: bool,
    form: str,
    job_id: str | None,
    wait: bool,
) -> None:
    """Write the history of each closed run, and a list of all. `workflow import` reads them."""
    if job_id == "":
        raise Usage("--job-id is empty (an unset variable?); leave it out for a new one")
    if wait and continuous:
        raise Usage("--wait would never end: with --continuous an export goes on until it is stopped; use one of them")
    request = r.StartExportRequest(
        namespace=target.namespace,
        job_id=job_id or uuid.uuid4().hex,
        destination=destination,
        query=query,
        closed_after=closed_after,
        closed_before=closed_before,
        continuous=continuous,
        format=_FORMATS[form],
        identity=identity(),
    )

    async def command(engine: Engine) -> None:
        started = await engine.call(o.START_EXPORT, request)
        if wait:
            _print_end(target, await _finished(engine, request.job_id))
        elif target.as_json:
            print_json({"job_id": request.job_id, "location": started.location})
        else:
            words = f"Export {request.job_id} has begun, to {started.location}"
            click.echo(safe(f"{words}; `stepwell export describe {request.job_id}` shows how far it is."))

    run(target, command)


async def _finished(engine: Engine, job_id: str) -> r.DescribeExportResponse:
    request = r.DescribeExportRequest(namespace=engine.target.namespace, job_id=job_id)
    while True:
        described = await engine.call_through_outage(o.DESCRIBE_EXPORT, request, _on_stderr)
        if described.info.state is not ExportState.RUNNING:
            return described
        await asyncio.sleep(_LOOK_AGAIN)


def _on_stderr(words: str) -> None:
    click.echo(words, err=True)


def _print_end(target: Target, described: r.DescribeExportResponse) -> None:
    info = described.info
    words = f"Export {info.job_id} is {info.state}: {_counts(info)}, in {info.location}"
    good = info.state is ExportState.COMPLETED and not info.failure_count
    if target.as_json:
        print_json(described)
    elif good:
        click.echo(safe(words))
    if not good:
        why = [described.close_reason] if described.close_reason else []
        why += [f"{one.execution.workflow_id}: {one.message or one.code}" for one in described.failures]
        raise WorkflowFailed("\n  ".join(safe(line) for line in (words, *why)))


def _counts(info: ExportInfo) -> str:
    return f"{info.exported_count} exported ({info.exported_bytes} bytes), {info.failure_count} failed"


@export.command(name="list")
@click.option("--limit", type=Whole(min=1), default=50, show_default=True, help="At most so many.")
@target_options
def list_(target: Target, limit: int) -> None:
    """List exports; those that are over are kept for a week."""

    async def command(engine: Engine) -> None:
        found: list[ExportInfo] = []
        token = b""
        while len(found) < limit:
            size = min(limit - len(found), MAX_LIST_PAGE)
            request = r.ListExportsRequest(namespace=target.namespace, page_size=size, next_page_token=token)
            page = await engine.call(o.LIST_EXPORTS, request)
            found += page.exports
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


def _print_list(found: list[ExportInfo]) -> None:
    if not found:
        click.echo("No exports.", err=True)
        return
    now = datetime.now(UTC)
    rows = table("STATE", "JOB ID", "STARTED", "UNTIL", "EXPORTED", "FAILED", "WHERE")
    for info in found:
        rows.add_row(
            str(info.state),
            safe(info.job_id),
            distance_text(info.start_time, now),
            time_text(info.exported_until),
            str(info.exported_count),
            str(info.failure_count),
            safe(info.location),
        )
    print_table(rows, console())


@export.command()
@_JOB
@target_options
def describe(target: Target, job_id: str) -> None:
    """Show how far an export is, and what is wrong."""
    request = r.DescribeExportRequest(namespace=target.namespace, job_id=job_id)

    async def command(engine: Engine) -> None:
        described = await engine.call(o.DESCRIBE_EXPORT, request)
        if target.as_json:
            print_json(described)
            return
        info, shown = described.info, console()
        before = "it is stopped" if described.continuous else time_text(described.closed_before)
        key_values(
            (
                ("Job id", info.job_id),
                ("State", str(info.state)),
                ("Where", info.location),
                ("Query", described.query),
                ("Closed from", time_text(described.closed_after)),
                ("Closed until", before),
                ("Format", str(described.format)),
                ("By", described.identity),
                ("Started", time_text(info.start_time)),
                ("Closed", time_text(info.close_time)),
                ("Because", described.close_reason),
                ("Trouble", described.trouble),
                ("Written until", time_text(info.exported_until)),
                ("Runs", _counts(info)),
            ),
            shown,
        )
        rows = ((one.execution.workflow_id, one.execution.run_id, shorten(one.message)) for one in described.failures)
        section("Failures", ("WORKFLOW ID", "RUN ID", "WHY"), rows, shown)

    run(target, command)


@export.command(spare=("--reason",))
@_JOB
@click.option("--reason", default="", help="Shown by describe.")
@target_options
def stop(target: Target, job_id: str, reason: str) -> None:
    """Write no more; what is written stays."""
    request = r.StopExportRequest(namespace=target.namespace, job_id=job_id, reason=reason, identity=identity())

    async def command(engine: Engine) -> None:
        await engine.call(o.STOP_EXPORT, request)
        if target.as_json:
            print_json({"job_id": job_id})
        else:
            click.echo(safe(f"Export {job_id} ends; what is written stays."))

    run(target, command)
