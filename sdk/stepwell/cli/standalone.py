"""``stepwell activity start | result | describe | list | count | cancel | terminate | delete``: activities without a
workflow (AC-28). The other verbs of the group are in ``activity``, to which these are added."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.text import Text

from ..api import operations as o
from ..api import requests as r
from ..api.common import RetryPolicy
from ..api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from ..api.limits import MAX_LIST_PAGE
from ..api.operations import Operation
from ..client.lists import WorkflowExecutionCount, all_counted
from ..client.pacing import Pace
from .activity import activity
from .connection import Engine, Target, identity, run
from .counting import print_counted
from .inputs import read_inputs
from .options import DURATION, Whole, choice_of, input_options, run_id_option, target_options
from .output import console, key_values, print_json, print_table, status_text, table
from .text import distance_text, failure_text, payloads_text, safe, shorten, time_text, value_text
from .troubles import WorkflowFailed

__all__ = ["activity"]

_WAIT = timedelta(seconds=20)
_conflicts = [policy.value for policy in WorkflowIDConflictPolicy if policy is not policy.TERMINATE_EXISTING]
_query = click.option("--query", "-q", default="", help="Only what this finds, such as \"ActivityType = 'charge'\".")


def _argument(command: Any) -> Any:
    return click.argument("activity_id", metavar="ACTIVITY_ID")(run_id_option(command))


@activity.command(spare=("--activity-id", "--input"))
@click.option("--type", "activity_type", required=True, help="Name of the activity, as its worker registers it.")
@click.option("--task-queue", "-t", required=True, help="Task queue that a worker of this activity polls.")
@click.option("--activity-id", "-a", help="Business id, such as charge-17; a random one without it.")
@input_options
@click.option("--start-to-close-timeout", type=DURATION, help="Limit of one attempt, such as 30s.")
@click.option("--schedule-to-close-timeout", type=DURATION, help="Limit of all attempts; one of the two is needed.")
@click.option("--schedule-to-start-timeout", type=DURATION, help="Limit of waiting for a worker.")
@click.option("--heartbeat-timeout", type=DURATION, help="An attempt that is silent for so long counts as lost.")
@click.option("--maximum-attempts", type=Whole(min=0), help="Retry a failed attempt; 0 is without limit (default).")
@click.option("--retry-interval", type=DURATION, help="Wait before the first retry (default 1s), then doubling.")
@click.option(
    "--id-reuse-policy",
    type=choice_of(WorkflowIDReusePolicy),
    default=WorkflowIDReusePolicy.ALLOW_DUPLICATE.value,
    show_default=True,
    help="When the id's last run has ended.",
)
@click.option(
    "--id-conflict-policy",
    type=click.Choice(_conflicts, case_sensitive=False),
    default=WorkflowIDConflictPolicy.FAIL.value,
    show_default=True,
    help="When one of that id runs.",
)
@target_options
def start(
    target: Target,
    activity_id: str | None,
    inputs: tuple[str, ...],
    input_files: tuple[str, ...],
    maximum_attempts: int | None,
    retry_interval: timedelta | None,
    id_conflict_policy: str,
    **given: Any,
) -> None:
    """Start an activity that belongs to no workflow."""
    retries: dict[str, Any] = {"maximum_attempts": maximum_attempts, "initial_interval": retry_interval}
    retries = {name: value for name, value in retries.items() if value is not None}
    request = r.StartActivityRequest(
        namespace=target.namespace,
        activity_id=activity_id or str(uuid.uuid4()),
        input=read_inputs(inputs, input_files),
        retry_policy=RetryPolicy(**retries) if retries else None,
        id_conflict_policy=WorkflowIDConflictPolicy(id_conflict_policy),
        identity=identity(),
        request_id=uuid.uuid4().hex,
        **given,
    )

    async def command(engine: Engine) -> None:
        response = await engine.call(o.START_ACTIVITY, request)
        if target.as_json:
            print_json({"activity_id": request.activity_id, "run_id": response.run_id, "started": response.started})
        else:
            what = "Started" if response.started else "Already running:"
            click.echo(safe(f"{what} {request.activity_id} (run {response.run_id})."))

    run(target, command)


@activity.command()
@_argument
@target_options
def result(target: Target, activity_id: str, run_id: str) -> None:
    """Wait for the end of a stand-alone activity and print its result; exit code 1 when it did not succeed."""
    request = r.PollActivityRequest(namespace=target.namespace, activity_id=activity_id, run_id=run_id, timeout=_WAIT)

    async def command(engine: Engine) -> None:
        pace = Pace()
        while True:
            pace.asking()
            outcome = (await engine.call(o.POLL_ACTIVITY, request)).outcome
            if outcome is not None:
                break
            await pace.came_empty()
        if target.as_json:
            print_json(outcome)
        if outcome.failure is not None:
            raise WorkflowFailed(f"activity {activity_id}: {outcome.status}: {failure_text(outcome.failure)}")
        if not target.as_json:
            for payload in outcome.result:
                click.echo(value_text(payload))

    run(target, command, read_only=True)


@activity.command()
@_argument
@target_options
def describe(target: Target, activity_id: str, run_id: str) -> None:
    """Show where a stand-alone activity is, and what fails."""
    request = r.DescribeActivityRequest(namespace=target.namespace, activity_id=activity_id, run_id=run_id)

    async def command(engine: Engine) -> None:
        described = await engine.call(o.DESCRIBE_ACTIVITY, request)
        if target.as_json:
            print_json(described)
        else:
            _print(described, datetime.now(UTC))

    run(target, command, read_only=True)


def _print(described: r.DescribeActivityResponse, now: datetime) -> None:
    info = described.info
    state = "" if described.run_state is None else described.run_state.value
    failure = described.last_failure
    outcome = described.outcome
    key_values(
        [
            ("Activity id", info.activity_id),
            ("Run id", info.run_id),
            ("Type", info.activity_type),
            ("Task queue", info.task_queue),
            ("Status", status_text(info.status)),
            ("State", state),
            ("Attempt", str(described.attempt)),
            ("Scheduled", f"{time_text(info.schedule_time)}  {distance_text(info.schedule_time, now)}"),
            ("Closed", time_text(info.close_time) if info.close_time else ""),
            ("Next attempt", distance_text(described.next_attempt_schedule_time, now)),
            ("Worker", described.last_worker_identity),
            ("Heartbeat", shorten(payloads_text(described.heartbeat_details))),
            ("Cancel", f"requested: {described.cancel_reason}" if described.cancel_requested else ""),
            ("Paused", f"by {described.paused_by}: {described.pause_reason}" if described.paused_time else ""),
            ("Last failure", "" if failure is None else failure_text(failure)),
            ("Result", "" if outcome is None else shorten(payloads_text(outcome.result))),
            ("Failure", "" if outcome is None or outcome.failure is None else failure_text(outcome.failure)),
        ],
        console(),
    )


@activity.command(name="list", spare=("--query",))
@_query
@click.option("--limit", type=Whole(min=1), default=20, show_default=True, help="At most so many.")
@target_options
def list_(target: Target, query: str, limit: int) -> None:
    """List stand-alone activities, newest first."""

    async def command(engine: Engine) -> None:
        found: list[r.ActivityExecutionInfo] = []
        token = b""
        while len(found) < limit:
            request = r.ListActivitiesRequest(
                namespace=target.namespace,
                query=query,
                page_size=min(limit - len(found), MAX_LIST_PAGE),
                next_page_token=token,
            )
            page = await engine.call(o.LIST_ACTIVITIES, request)
            found += page.executions
            token = page.next_page_token
            if not token:
                break
        if target.as_json:
            print_json(found)
        else:
            _print_list(found, bool(token), limit)

    run(target, command, read_only=True)


def _print_list(found: list[r.ActivityExecutionInfo], more: bool, limit: int) -> None:
    if not found:
        click.echo("No stand-alone activities.", err=True)
        return
    now = datetime.now(UTC)
    rows = table("STATUS", "ACTIVITY ID", "TYPE", "TASK QUEUE", "SCHEDULED", "CLOSED", "RUN ID")
    for info in found:
        rows.add_row(
            status_text(info.status),
            Text(safe(info.activity_id)),
            Text(safe(info.activity_type)),
            Text(safe(info.task_queue)),
            Text(distance_text(info.schedule_time, now)),
            Text(distance_text(info.close_time, now)),
            Text(info.run_id, style="dim"),
        )
    print_table(rows, console())
    if more:
        click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)


@activity.command(spare=("--query",))
@_query
@target_options
def count(target: Target, query: str) -> None:
    """Count stand-alone activities, such as --query "GROUP BY ExecutionStatus"."""

    async def command(engine: Engine) -> None:
        async def page(token: bytes) -> r.CountActivitiesResponse:
            request = r.CountActivitiesRequest(namespace=target.namespace, query=query, next_page_token=token)
            return await engine.call(o.COUNT_ACTIVITIES, request)

        print_counted(target, WorkflowExecutionCount(*await all_counted(page)))

    run(target, command, read_only=True)


@activity.command()
@_argument
@click.option("--reason", default="", help="Shown by activity describe.")
@target_options
def cancel(target: Target, activity_id: str, run_id: str, reason: str) -> None:
    """Ask a stand-alone activity to stop."""
    named = _named(target, activity_id, run_id)
    request = r.CancelActivityRequest(**named, reason=reason, request_id=uuid.uuid4().hex)
    _carry_out(target, o.CANCEL_ACTIVITY, request, "Asked to stop")


@activity.command()
@_argument
@click.option("--reason", default="", help="Part of its failure.")
@target_options
def terminate(target: Target, activity_id: str, run_id: str, reason: str) -> None:
    """End a stand-alone activity at once."""
    named = _named(target, activity_id, run_id)
    _carry_out(target, o.TERMINATE_ACTIVITY, r.TerminateActivityRequest(**named, reason=reason), "Terminated")


@activity.command()
@_argument
@target_options
def delete(target: Target, activity_id: str, run_id: str) -> None:
    """Delete a stand-alone activity with its result; one that runs is terminated first."""
    _carry_out(target, o.DELETE_ACTIVITY, r.DeleteActivityRequest(**_named(target, activity_id, run_id)), "Deleted")


def _named(target: Target, activity_id: str, run_id: str) -> dict[str, Any]:
    return {"namespace": target.namespace, "activity_id": activity_id, "run_id": run_id, "identity": identity()}


def _carry_out(target: Target, operation: Operation[Any, Any], request: Any, words: str) -> None:
    async def command(engine: Engine) -> None:
        await engine.call(operation, request)
        if target.as_json:
            print_json({"activity_id": request.activity_id})
        else:
            click.echo(safe(f"{words}: {request.activity_id}."))

    run(target, command)
