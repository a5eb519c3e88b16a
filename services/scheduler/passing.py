"""Which times of a schedule have come: they wait now, or were missed (LC-29, LC-30, LC-34). Pure.

Theory of operation. Times are taken one by one, since each may have jitter, wait, or run. Those whose fate does not
depend on more than where they are (missed, or left out by the overlap policy behind others that came with them) are
counted by the day instead, but for the last two of each stage: a step costs the same after a minute as after years.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import assert_never

import msgspec
from stepwell.api import limits
from stepwell.api.enums import ScheduleCatchUpPolicy
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap

from .runs import acts_by_time
from .spec import LOOKS_AT_ONCE, Firing, leap, search_next
from .state import OpenBackfill, Origin, ScheduleRecord, Waiting
from .times import Looks

_MOST_TIMES = 1_000
"""Taken one by one by one step; it leaps over the rest."""

_BACKFILL_ROOM = limits.MAX_SCHEDULE_BUFFER // 2
"""A backfill fills the buffer up to here, so that it never pushes out what comes by time."""

_DECIDES = limits.MAX_SCHEDULE_CONCURRENCY + 2
"""When so many are looked at together, further ones are left out, whatever runs now, but for the newest."""

_BEHIND_A_LEAP = 3
"""A leap leaves two."""

_replace = msgspec.structs.replace


def upcoming(record: ScheduleRecord, looks: Looks) -> Firing | None:
    """None: there is none any more, or ``looks`` ran out; the record knows then how far they went."""
    firing, record.search = search_next(record.schedule.spec, record.cursor, record.schedule_id, looks, record.search)
    return firing


def pass_times(record: ScheduleRecord, now: datetime) -> bool:
    """Deals with all times up to now, as far as one step goes. True: there may be more."""
    if not acts_by_time(record):
        return False
    by_policy = leaves_out(record, record.schedule.policies.overlap_policy)
    left = _BACKFILL_ROOM if by_policy else _MOST_TIMES
    crowd = by_policy or len(record.buffer) >= limits.MAX_SCHEDULE_BUFFER
    looks, leaps = Looks(LOOKS_AT_ONCE), Looks(LOOKS_AT_ONCE)
    for until in _stages(record, now):
        if _leap_over_missed(record, until, now, leaps) and leaps.ran_out:
            return True
        while (firing := upcoming(record, looks)) is not None and firing.at <= until:
            if left == 0:
                if not crowd or not _leap_over_crowd(record, until, leaps):
                    return True
                left = _BEHIND_A_LEAP
                continue
            left -= 1
            _move(record, firing.nominal)
            _take(record, firing, now)
        if firing is None and looks.ran_out:
            return True
    _end_of_pause(record)
    return False


def _stages(record: ScheduleRecord, now: datetime) -> Iterator[datetime]:
    """Up to each of these, all times have the same fate."""
    marks = {record.not_before, now - _window(record)}
    if record.resume_until is not None:
        marks.add(record.resume_until)
    yield from sorted(mark for mark in marks if record.cursor < mark < now)
    yield now


def _window(record: ScheduleRecord) -> timedelta:
    said = record.schedule.policies.catchup_window
    return limits.DEFAULT_CATCHUP_WINDOW if said is None else said


def _leap_over_missed(record: ScheduleRecord, until: datetime, now: datetime, looks: Looks) -> bool:
    """Over the times of a stage that do nothing. False when it did not get on."""
    before = until <= record.not_before
    late = until <= now - _window(record)
    policy = record.resume_policy if record.resume_until is not None and until <= record.resume_until else None
    if not (before or late or policy in (ScheduleCatchUpPolicy.SKIP, ScheduleCatchUpPolicy.ONE)):
        return False
    count, cursor = leap(record.schedule.spec, record.cursor, until, looks)
    if count == 0:
        return False
    _move(record, cursor)
    if before:
        return True
    if policy is ScheduleCatchUpPolicy.ONE and record.held is not None:
        record.missed_paused += 1
        record.held = None
    if policy is ScheduleCatchUpPolicy.SKIP or (policy is ScheduleCatchUpPolicy.ONE and not late):
        record.missed_paused += count
    else:
        record.missed_catchup_window += count
    return True


def _leap_over_crowd(record: ScheduleRecord, until: datetime, looks: Looks) -> bool:
    """Over the times of a stage for which there is no place behind those that wait. False when it did not get on: by
    and by, one by one."""
    by_policy = leaves_out(record, record.schedule.policies.overlap_policy)
    if by_policy and sum(waiting.origin is Origin.TIME for waiting in record.buffer) < _DECIDES:
        return False
    count, cursor = leap(record.schedule.spec, record.cursor, until, looks)
    if count == 0:
        return False
    _move(record, cursor)
    if by_policy:
        record.overlap_skipped += count
    else:
        record.buffer_dropped += count
    return True


def leaves_out(record: ScheduleRecord, policy: Overlap) -> bool:
    """Whether it leaves out what does not find a place."""
    if policy is Overlap.ALLOW_ALL:
        return record.schedule.policies.concurrency_limit > 0
    return policy is not Overlap.BUFFER_ALL


def _move(record: ScheduleRecord, cursor: datetime) -> None:
    record.cursor = cursor
    record.search = None


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
    if now - firing.at > _window(record):
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
            if now - firing.at > _window(record):
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
    """From the open backfills, as far as there is room and one step goes."""
    room, looks = _BACKFILL_ROOM - len(record.buffer), Looks(LOOKS_AT_ONCE)
    added: list[Waiting] = []
    while record.backfills and len(added) < room:
        first = record.backfills[0]
        firing, search = search_next(record.schedule.spec, first.cursor, record.schedule_id, looks, first.search)
        if firing is not None and firing.nominal <= first.end:
            added.append(Waiting(firing.nominal, Origin.BACKFILL, first.order, first.overlap_policy))
            mine = sum(waiting.order == first.order for waiting in added) if len(added) >= _DECIDES else 0
            cursor = firing.nominal if mine != _DECIDES else _leap_in(record, first, firing.nominal, looks)
            first = _replace(first, cursor=cursor, search=None)
        elif firing is None and looks.ran_out and search is not None and search.reached < first.end:
            first = _replace(first, search=search)
        else:
            record.backfills = record.backfills[1:]
            continue
        record.backfills = (first, *record.backfills[1:])
        if looks.ran_out:
            break
    if added:
        record.buffer = (*record.buffer, *added)


def _leap_in(record: ScheduleRecord, backfill: OpenBackfill, after: datetime, looks: Looks) -> datetime:
    """Where it goes on, behind so many of its own that the policy can find no place for more but the newest."""
    if not leaves_out(record, backfill.overlap_policy or record.schedule.policies.overlap_policy):
        return after
    count, cursor = leap(record.schedule.spec, after, backfill.end, looks)
    record.overlap_skipped += count
    return cursor


def has_more_to_fill(record: ScheduleRecord) -> bool:
    return bool(record.backfills) and len(record.buffer) < _BACKFILL_ROOM
