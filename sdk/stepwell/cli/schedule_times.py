"""Times of schedules: how many there are, which, and whether to do what they name."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import click

from ..api import operations as o
from ..api import requests as r
from ..api.enums import ScheduleOverlapPolicy
from ..api.limits import MAX_BACKFILL_ACTIONS
from ..api.schedules import ScheduleSpec
from .connection import Engine
from .schedule_options import check_span
from .text import safe
from .troubles import Refused, Usage

_A_WEEK = timedelta(days=7)
_INSTANT = timedelta(microseconds=1)


def span(begin: datetime | None, until: datetime | None, start_time: datetime | None) -> tuple[datetime, datetime]:
    """From where to where a list of times looks when only a part of that is said."""
    now = datetime.now(UTC)
    first = begin or max(now, start_time or now)
    last = until or first + min(_A_WEEK, datetime.max.replace(tzinfo=UTC) - first)
    check_span(first, last, "--from", "--until")
    return first, last


async def times_of(
    engine: Engine, schedule_id: str, spec: ScheduleSpec | None, begin: datetime, until: datetime, limit: int
) -> tuple[list[datetime], bool]:
    found: list[datetime] = []
    following: datetime | None = begin
    while following is not None and len(found) <= limit:
        page = await engine.call(
            o.LIST_SCHEDULE_MATCHING_TIMES,
            r.ListScheduleMatchingTimesRequest(
                namespace=engine.target.namespace,
                schedule_id=schedule_id,
                start_time=following,
                end_time=until,
                spec=spec,
            ),
        )
        found += page.start_times
        following = page.next_start_time
    return found[:limit], len(found) > limit


async def _count(engine: Engine, schedule_id: str, wanted: r.BackfillRequest) -> int:
    count = 0
    begin: datetime | None = wanted.start_time + _INSTANT
    while begin is not None:
        request = r.ListScheduleMatchingTimesRequest(
            namespace=engine.target.namespace,
            schedule_id=schedule_id,
            start_time=begin,
            end_time=wanted.end_time,
            count_only=True,
        )
        page = await engine.call(o.LIST_SCHEDULE_MATCHING_TIMES, request)
        count += page.count
        begin = page.next_start_time
    return count


async def ask_for_backfill(engine: Engine, schedule_id: str, wanted: r.BackfillRequest) -> None:
    """Raises Refused: nothing is to be done."""
    described = await engine.call(
        o.DESCRIBE_SCHEDULE, r.DescribeScheduleRequest(namespace=engine.target.namespace, schedule_id=schedule_id)
    )
    count = 0 if wanted.start_time >= wanted.end_time else await _count(engine, schedule_id, wanted)
    if count == 0:
        raise Refused(f"schedule {schedule_id} names no time then; nothing was done")
    policies = described.schedule.policies
    policy = wanted.overlap_policy or policies.overlap_policy
    starts_all = policy is ScheduleOverlapPolicy.BUFFER_ALL or (
        policy is ScheduleOverlapPolicy.ALLOW_ALL and not policies.concurrency_limit
    )
    if starts_all and count > MAX_BACKFILL_ACTIONS:
        return  # the engine says what to do instead
    times = f"Schedule {schedule_id} names {count:,} time{'' if count == 1 else 's'} then; "
    fate = "each of them starts a run" if starts_all else "those that overlap are left out"
    found = safe(f"{times}{fate} ({policy}).")
    if not sys.stdin.isatty():
        raise Usage(f"{found} Nobody is here to be asked; --yes goes on")
    if not await asyncio.to_thread(click.confirm, f"{found} Do them?", err=True):
        raise Refused("nothing was done")
