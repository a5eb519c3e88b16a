"""Which times of a schedule have come: they wait now, or were missed (LC-29, LC-30, LC-34). Pure."""

from datetime import datetime
from typing import assert_never

import msgspec
from stepwell.api import limits
from stepwell.api.enums import ScheduleCatchUpPolicy

from .runs import acts_by_time
from .spec import Firing, next_time
from .state import Origin, ScheduleRecord, Waiting

_MOST_TIMES = 1_000
"""Looked at by one step; the next one goes on."""

_BACKFILL_ROOM = limits.MAX_SCHEDULE_BUFFER // 2
"""A backfill fills the buffer up to here, so that it never pushes out what comes by time."""


def upcoming(record: ScheduleRecord) -> Firing | None:
    return next_time(record.schedule.spec, record.cursor, record.schedule_id)


def pass_times(record: ScheduleRecord, now: datetime) -> bool:
    """Deals with all times up to now. True: there may be more."""
    if not acts_by_time(record):
        return False
    for _ in range(_MOST_TIMES):
        firing = upcoming(record)
        if firing is None or firing.at > now:
            _end_of_pause(record)
            return False
        record.cursor = firing.nominal
        _take(record, firing, now)
    return True


def _take(record: ScheduleRecord, firing: Firing, now: datetime) -> None:
    if firing.at <= record.not_before:
        return
    until = record.resume_until
    if until is not None and firing.at <= until:
        _take_paused(record, firing, now)
        return
    _end_of_pause(record)
    _take_due(record, firing, now)


def _take_due(record: ScheduleRecord, firing: Firing, now: datetime) -> None:
    if now - firing.at > record.schedule.policies.catchup_window:
        record.missed_catchup_window += 1
    else:
        wait(record, Waiting(firing.nominal))


def _take_paused(record: ScheduleRecord, firing: Firing, now: datetime) -> None:
    match record.resume_policy:
        case ScheduleCatchUpPolicy.SKIP:
            record.missed_paused += 1
        case ScheduleCatchUpPolicy.ALL:
            _take_due(record, firing, now)
        case ScheduleCatchUpPolicy.ONE:
            if record.held is not None:
                record.missed_paused += 1
                record.held = None
            if now - firing.at > record.schedule.policies.catchup_window:
                record.missed_catchup_window += 1
            else:
                record.held = firing.nominal
        case _:
            assert_never(record.resume_policy)


def _end_of_pause(record: ScheduleRecord) -> None:
    """All times of the pause are dealt with."""
    record.resume_until = None
    if record.held is not None:
        wait(record, Waiting(record.held))
        record.held = None


def wait(record: ScheduleRecord, waiting: Waiting) -> None:
    if len(record.buffer) >= limits.MAX_SCHEDULE_BUFFER:
        record.buffer_dropped += 1
    else:
        record.buffer = (*record.buffer, waiting)


def fill(record: ScheduleRecord) -> None:
    """From the open backfills, as far as there is room."""
    added: list[Waiting] = []
    room = _BACKFILL_ROOM - len(record.buffer)
    while record.backfills and len(added) < room:
        first = record.backfills[0]
        firing = next_time(record.schedule.spec, first.cursor, record.schedule_id)
        if firing is None or firing.nominal > first.end:
            record.backfills = record.backfills[1:]
            continue
        added.append(Waiting(firing.nominal, Origin.BACKFILL, first.order, first.overlap_policy))
        record.backfills = (msgspec.structs.replace(first, cursor=firing.nominal), *record.backfills[1:])
    if added:
        record.buffer = (*record.buffer, *added)


def has_more_to_fill(record: ScheduleRecord) -> bool:
    return bool(record.backfills) and len(record.buffer) < _BACKFILL_ROOM
