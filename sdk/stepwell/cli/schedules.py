"""``stepwell schedule``: make schedules, change them, order them about, read them (DX-03)."""

import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from ..api import operations as o
from ..api import requests as r
from ..api.enums import ScheduleOverlapPolicy
from ..api.limits import MAX_LIST_PAGE
from ..api.schedules import NewWorkflowExecutionInfo, Schedule, ScheduleAction, ScheduleListEntry, ScheduleSpec
from .connection import Engine, Target, identity, run
from .counting import count_schedules
from .grammar import Group
from .inputs import parse_attributes, parse_pairs
from .options import Whole, choice_of, target_options
from .output import console, print_json
from .schedule_options import (
    MOMENT,
    SPEC_NAMES,
    check_span,
    names_times,
    policies_of,
    rule_options,
    spec_of,
    spec_options,
    state_of,
)
from .schedule_text import print_schedule, print_schedules, zone_of
from .schedule_times import ask_for_backfill, span, times_of
from .starting import Asked, action_options
from .text import local_text, safe, time_text
from .troubles import Usage

_ID = click.argument("schedule_id", metavar="SCHEDULE_ID")
_overlap = click.option(
    "--overlap-policy", type=choice_of(ScheduleOverlapPolicy), help="In place of the schedule's own."
)


@click.group(cls=Group, meant={"pause": "toggle SCHEDULE_ID --pause", "unpause": "toggle SCHEDULE_ID --unpause"})
def schedule() -> None:
    """Start workflows by calendar."""


@schedule.command(spare=("--workflow-id", "--input"))
@_ID
@spec_options
@action_options(required=True)
@rule_options
@click.option("--paused", is_flag=True, help="It begins paused.")
@click.option("--trigger-immediately", is_flag=True, help="Act once now as well.")
@click.option("--schedule-memo", multiple=True, metavar="NAME=JSON", help="A note kept with the schedule.")
@click.option(
    "--schedule-search-attribute", "schedule_attributes", multiple=True, metavar="NAME=JSON", help="Of the schedule."
)
@target_options
def create(
    target: Target,
    schedule_id: str,
    asked: Asked,
    paused: bool,
    trigger_immediately: bool,
    schedule_memo: tuple[str, ...],
    schedule_attributes: tuple[str, ...],
    **given: Any,
) -> None:
    """Create a schedule: when, by --cron, --interval or --calendar, and which workflow to start then."""
    state = msgspec.structs.replace(state_of(given), paused=paused)
    made = Schedule(
        spec=spec_of(given), action=_action(asked, target, schedule_id), policies=policies_of(given), state=state
    )
    patch = r.SchedulePatch(trigger_immediately=r.TriggerImmediatelyRequest()) if trigger_immediately else None
    request = r.CreateScheduleRequest(
        namespace=target.namespace,
        schedule_id=schedule_id,
        schedule=made,
        initial_patch=patch,
        memo=parse_pairs(schedule_memo, "--schedule-memo"),
        search_attributes=parse_attributes(schedule_attributes, "--schedule-search-attribute"),
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        await engine.call(o.CREATE_SCHEDULE, request)
        if not names_times(made.spec):
            click.echo("It acts only when it is triggered: no --cron, --interval or --calendar is given.", err=True)
        _say(target, schedule_id, f"Schedule {schedule_id} is created.")

    run(target, command)


@schedule.command(spare=("--workflow-id", "--input"))
@_ID
@spec_options
@action_options(required=False)
@rule_options
@target_options
def update(target: Target, schedule_id: str, asked: Asked, **given: Any) -> None:
    """Change a schedule; what is left out stays. New times take the place of all that it had."""

    async def command(engine: Engine) -> None:
        before = await _described(engine, schedule_id)
        old = before.schedule
        changed = Schedule(
            spec=spec_of(given, old.spec),
            action=_action(asked, target, schedule_id, old.action.start_workflow),
            policies=policies_of(given, old.policies),
            state=state_of(given, old.state),
        )
        if changed == old:
            raise Usage("no option says what to change; see --help")
        request = r.UpdateScheduleRequest(
            namespace=target.namespace,
            schedule_id=schedule_id,
            schedule=changed,
            conflict_token=before.conflict_token,
            identity=identity(),
            request_id=uuid.uuid4().hex,
        )
        await engine.call(o.UPDATE_SCHEDULE, request)
        _say(target, schedule_id, f"Schedule {schedule_id} is changed.")

    run(target, command)


@schedule.command()
@_ID
@click.option("--pause/--unpause", "paused", default=None, help="What it is to be.")
@click.option("--reason", default="", help="The schedule's new note.")
@target_options
def toggle(target: Target, schedule_id: str, paused: bool | None, reason: str) -> None:
    """Pause a schedule, or let it go on."""
    if paused is None:
        raise Usage("say which: --pause or --unpause")
    reason = reason or f"{'paused' if paused else 'unpaused'} by {identity()}"
    patch = r.SchedulePatch(pause=reason) if paused else r.SchedulePatch(unpause=reason)
    _patch(target, schedule_id, patch, f"Schedule {schedule_id} {'is paused' if paused else 'goes on'}.")


@schedule.command()
@_ID
@_overlap
@target_options
def trigger(target: Target, schedule_id: str, overlap_policy: str | None) -> None:
    """Let a schedule act once, now, also while it is paused."""
    asked = r.TriggerImmediatelyRequest(overlap_policy=_overlap_policy(overlap_policy))
    _patch(target, schedule_id, r.SchedulePatch(trigger_immediately=asked), f"Schedule {schedule_id} is triggered.")


_start_time = click.option("--start-time", type=MOMENT, required=True, help="Such as 2026-12-24T18:00:00Z, or -2d.")
_end_time = click.option("--end-time", type=MOMENT, required=True, help="Such as now.")


@schedule.command()
@_ID
@_start_time
@_end_time
@_overlap
@click.option("--yes", "-y", "sure", is_flag=True, help="Do not ask.")
@target_options
def backfill(
    target: Target, schedule_id: str, start_time: datetime, end_time: datetime, overlap_policy: str | None, sure: bool
) -> None:
    """Do all actions of a time at once: those behind --start-time up to --end-time, which counts."""
    check_span(start_time, end_time)
    wanted = r.BackfillRequest(start_time=start_time, end_time=end_time, overlap_policy=_overlap_policy(overlap_policy))
    words = f"Schedule {schedule_id} makes up for {time_text(start_time)} to {time_text(end_time)}."

    async def ask(engine: Engine) -> None:
        if not sure:
            await ask_for_backfill(engine, schedule_id, wanted)

    _patch(target, schedule_id, r.SchedulePatch(backfill=(wanted,)), words, ask)


@schedule.command(name="list-matching-times")
@click.argument("schedule_id", metavar="[SCHEDULE_ID]", required=False)
@click.option("--from", "begin", type=MOMENT, help="The first moment that counts (default now, or --start-time).")
@click.option("--until", type=MOMENT, help="The last one (default 7d behind the first).")
@click.option("--limit", type=Whole(min=1), default=100, show_default=True, help="At most so many.")
@spec_options
@target_options
def list_matching_times(
    target: Target, schedule_id: str | None, begin: datetime | None, until: datetime | None, limit: int, **given: Any
) -> None:
    """List when a schedule acts, without jitter; with --cron, --interval or --calendar, when it would."""
    first, last = span(begin, until, given["start_time"])
    preview = any(given[name] for name in SPEC_NAMES)
    if schedule_id is None and not preview:
        raise Usage("give the id of a schedule, or times by --cron, --interval or --calendar")

    async def command(engine: Engine) -> None:
        stored = (await _described(engine, schedule_id)).schedule.spec if schedule_id else ScheduleSpec()
        spec = spec_of(given, stored) if preview else None
        zone = zone_of(spec or stored)
        found, more = await times_of(engine, schedule_id or "preview", spec, first, last, limit)
        if target.as_json:
            print_json(found)
            return
        for at in found:
            click.echo(local_text(at, zone))
        if more:
            click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)
        elif not found:
            looked = f"from {time_text(first)} to {time_text(last)}"
            click.echo(f"None {looked}; --from and --until look elsewhere.", err=True)

    run(target, command)


@schedule.command()
@_ID
@target_options
def describe(target: Target, schedule_id: str) -> None:
    """Show a schedule: when it acts, what it did last and does next."""

    async def command(engine: Engine) -> None:
        described = await _described(engine, schedule_id)
        if target.as_json:
            print_json(described)
        else:
            print_schedule(schedule_id, described, datetime.now(UTC), console())

    run(target, command)


@schedule.command(name="list")
@click.option("--query", "-q", default="", help="Only what this finds, such as \"ScheduleId STARTS_WITH 'night'\".")
@click.option("--limit", type=Whole(min=1), default=50, show_default=True, help="At most so many.")
@target_options
def list_(target: Target, query: str, limit: int) -> None:
    """List schedules by id."""

    async def command(engine: Engine) -> None:
        found, more = await _listed(engine, query, limit)
        if target.as_json:
            print_json(found)
        elif not found:
            click.echo("No schedules.", err=True)
        else:
            print_schedules(found, datetime.now(UTC), console())
            if more:
                click.echo(f"There are more than {limit}; see them with --limit {limit * 2}.", err=True)

    run(target, command)


schedule.add_command(count_schedules)


async def _listed(engine: Engine, query: str, limit: int) -> tuple[list[ScheduleListEntry], bool]:
    found: list[ScheduleListEntry] = []
    token = b""
    while True:
        request = r.ListSchedulesRequest(
            namespace=engine.target.namespace,
            query=query,
            page_size=min(limit - len(found), MAX_LIST_PAGE),
            next_page_token=token,
        )
        page = await engine.call(o.LIST_SCHEDULES, request)
        found += page.schedules
        token = page.next_page_token
        if not token or len(found) >= limit:
            return found, bool(token)


@schedule.command()
@_ID
@target_options
def delete(target: Target, schedule_id: str) -> None:
    """Delete a schedule; runs that it has started go on."""
    request = r.DeleteScheduleRequest(namespace=target.namespace, schedule_id=schedule_id, identity=identity())

    async def command(engine: Engine) -> None:
        await engine.call(o.DELETE_SCHEDULE, request)
        _say(target, schedule_id, f"Schedule {schedule_id} is deleted.")

    run(target, command)


_FIELDS = {
    "workflow_type": "workflow_type",
    "task_queue": "task_queue",
    "workflow_id": "workflow_id",
    "inputs": "input",
    "input_files": "input",
    "execution_timeout": "workflow_execution_timeout",
    "run_timeout": "workflow_run_timeout",
    "task_timeout": "workflow_task_timeout",
    "maximum_attempts": "retry_policy",
    "retry_interval": "retry_policy",
    "priority_key": "priority",
    "fairness_key": "priority",
    "fairness_weight": "priority",
    "memo": "memo",
    "attributes": "search_attributes",
    "static_summary": "user_metadata",
    "static_details": "user_metadata",
}
"""What each option says of the workflow that is started."""


def _action(
    asked: Asked, target: Target, schedule_id: str, before: NewWorkflowExecutionInfo | None = None
) -> ScheduleAction:
    """``before``, or a workflow with the schedule's id, with what is given."""
    given = {field for option, field in _FIELDS.items() if asked.keywords[option] not in (None, (), "")}
    request = asked(target)
    base = before or NewWorkflowExecutionInfo(workflow_id=schedule_id, workflow_type="", task_queue="")
    return ScheduleAction(
        start_workflow=msgspec.structs.replace(base, **{field: getattr(request, field) for field in given})
    )


async def _described(engine: Engine, schedule_id: str) -> r.DescribeScheduleResponse:
    request = r.DescribeScheduleRequest(namespace=engine.target.namespace, schedule_id=schedule_id)
    return await engine.call(o.DESCRIBE_SCHEDULE, request)


def _overlap_policy(text: str | None) -> ScheduleOverlapPolicy | None:
    return None if text is None else ScheduleOverlapPolicy(text)


def _patch(
    target: Target,
    schedule_id: str,
    patch: r.SchedulePatch,
    words: str,
    before: Callable[[Engine], Awaitable[None]] | None = None,
) -> None:
    request = r.PatchScheduleRequest(
        namespace=target.namespace,
        schedule_id=schedule_id,
        patch=patch,
        identity=identity(),
        request_id=uuid.uuid4().hex,
    )

    async def command(engine: Engine) -> None:
        if before is not None:
            await before(engine)
        await engine.call(o.PATCH_SCHEDULE, request)
        _say(target, schedule_id, words)

    run(target, command)


def _say(target: Target, schedule_id: str, words: str) -> None:
    if target.as_json:
        print_json({"schedule_id": schedule_id})
    else:
        click.echo(safe(words))
