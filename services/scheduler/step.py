"""What a schedule does: one pure function of its record, what comes to it, and the time (design section 9).

``step`` decides; the shell writes the record, does what the step names, and tells the outcome by another step. Whatever
comes twice, late or never: starts and stops are named again until their outcome is told, and both may be done again.
"""

import copy
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import assert_never

import msgspec
from stepwell.api import limits
from stepwell.api.errors import ConflictTokenMismatch, InvalidArgument, ResourceExhausted
from stepwell.api.requests_schedules import BackfillRequest, SchedulePatch, TriggerImmediatelyRequest

from . import overlap, passing
from .requests import Attempted, Creation, Look, Patch, Request, RunEnd, Step, Update
from .runs import acts_by_time, attempted, change_state, cut, hear, is_exhausted, mark_timed, stop_asked
from .spec import LOOKS_AT_ONCE, before_latest, count_times
from .state import KEPT_REQUESTS, OpenBackfill, Origin, Run, ScheduleRecord, Waiting, conflict_token, counted
from .times import Looks

_replace = msgspec.structs.replace

RETRY = timedelta(seconds=10)
"""Until what was asked for, and not told of, is asked for again."""

_LOOK = timedelta(days=1)
"""Until a run that others wait for, and that was not heard of, is looked at."""

PAUSE = timedelta(seconds=1)
"""At least so long until a namespace that has no starts left has some again."""

_INSTANT = timedelta(milliseconds=1)


def create(creation: Creation, now: datetime, allowance: int) -> Step:
    """``allowance`` 0: whoever calls looks again at once."""
    record = ScheduleRecord(
        namespace=creation.namespace,
        schedule_id=creation.schedule_id,
        incarnation=creation.incarnation,
        schedule=creation.schedule,
        memo=creation.memo,
        search_attributes=creation.search_attributes,
        create_time=now,
        cursor=now,
        not_before=now,
        last_activity=now,
    )
    remember(record, creation.request_id)
    if creation.initial_patch is not None:
        _order(record, creation.initial_patch, now)
    return _settle(record, now, allowance, counts_late=allowance > 0)


def step(record: ScheduleRecord, request: Request, now: datetime, allowance: int, pause: timedelta = PAUSE) -> Step:
    """``allowance``: how many runs the namespace may start now; ``pause``: until those that are left over may hope for
    more. Raises ConflictTokenMismatch, InvalidArgument, ResourceExhausted; then nothing has changed."""
    before, record = record, copy.copy(record)
    match request:
        case Look():
            _hear(record, request.ends, now)
        case Attempted():
            for run_id, outcome in request.starts:
                attempted(record, run_id, outcome, now)
            record.last_refusal = cut(request.refusal) or record.last_refusal
            for run_id in request.stopped:
                stop_asked(record, run_id)
            _hear(record, request.ends, now)
        case Patch():
            # First what was due before: by the definition that was in force then.
            passing.pass_times(record, now)
            if remember(record, request.request_id):
                _patch(record, request.patch, now)
        case Update():
            passing.pass_times(record, now)
            if not is_known(record, request.request_id):
                _update(record, request, now)
                remember(record, request.request_id)
        case _:
            assert_never(request)
    decided = _settle(record, now, allowance, pause)
    return decided if record.runs is before.runs else _timed(decided, before)


def _timed(decided: Step, before: ScheduleRecord) -> Step:
    mark_timed(decided.record, before)
    return _replace(decided, starts=_starts(decided.record))


def is_known(record: ScheduleRecord, request_id: str) -> bool:
    return bool(request_id) and _digest(request_id) in record.known_requests


def remember(record: ScheduleRecord, request_id: str) -> bool:
    """False when it is known."""
    if is_known(record, request_id):
        return False
    if request_id:
        record.known_requests = (*record.known_requests, _digest(request_id))[-KEPT_REQUESTS:]
    return True


def _digest(request_id: str) -> str:
    return blake2b(request_id.encode(), digest_size=8).hexdigest()


def _hear(record: ScheduleRecord, ends: tuple[RunEnd, ...], now: datetime) -> None:
    for end in ends:
        hear(record, end, now)


# --- orders ---


def _patch(record: ScheduleRecord, patch: SchedulePatch, now: datetime) -> None:
    _order(record, patch, now)
    state = record.schedule.state
    if patch.pause is not None:
        change_state(record, _replace(state, paused=True, note=patch.pause))
    if patch.unpause is not None:
        change_state(record, _replace(state, paused=False, note=patch.unpause))
        if state.paused:
            _resume(record, now)
    record.last_activity = now


def _order(record: ScheduleRecord, patch: SchedulePatch, now: datetime) -> None:
    if patch.trigger_immediately is not None:
        _trigger(record, patch.trigger_immediately, now)
    if len(record.backfills) + len(patch.backfill) > limits.MAX_BACKFILLS_PER_PATCH:
        raise ResourceExhausted(
            f"schedule {record.schedule_id!r} has {len(record.backfills)} backfills under way; at most "
            f"{limits.MAX_BACKFILLS_PER_PATCH} are taken. Ask again when some are done, or for longer ranges."
        )
    for backfill in patch.backfill:
        _admit(record, backfill)
        _backfill(record, backfill)


def _trigger(record: ScheduleRecord, asked: TriggerImmediatelyRequest, now: datetime) -> None:
    record.orders += 1
    nominal = asked.scheduled_time or now.replace(microsecond=now.microsecond // 1000 * 1000)
    passing.wait(record, Waiting(nominal, Origin.TRIGGER, record.orders, asked.overlap_policy))


def _admit(record: ScheduleRecord, asked: BackfillRequest) -> None:
    """Raises InvalidArgument. What overlap policies leave out costs nothing; the rest are runs, each of them."""
    policy = asked.overlap_policy or record.schedule.policies.overlap_policy
    if passing.leaves_out(record, policy):
        return
    count, reached = count_times(record.schedule.spec, asked.start_time, asked.end_time, Looks(LOOKS_AT_ONCE))
    if count > limits.MAX_BACKFILL_ACTIONS:
        first, last = (f"{moment:%Y-%m-%d %H:%M:%S%z}" for moment in (asked.start_time, asked.end_time))
        raise InvalidArgument(
            f"the backfill from {first} to {last} would start {count:,}{'' if reached is None else ' or more'} runs, "
            f"since {policy.value} starts each of them; at most {limits.MAX_BACKFILL_ACTIONS:,} are taken. Ask for "
            "shorter ranges, or with an overlap_policy that leaves out what does not find a place, such as SKIP or "
            "BUFFER_ONE.",
            field="patch.backfill",
        )


def _backfill(record: ScheduleRecord, asked: BackfillRequest) -> None:
    record.orders += 1
    backfill = OpenBackfill(
        order=record.orders, cursor=asked.start_time, end=asked.end_time, overlap_policy=asked.overlap_policy
    )
    record.backfills = (*record.backfills, backfill)


def _resume(record: ScheduleRecord, now: datetime) -> None:
    record.resume_until = now
    record.resume_policy = record.schedule.policies.catch_up_on_unpause


def _update(record: ScheduleRecord, request: Update, now: datetime) -> None:
    if request.conflict_token and request.conflict_token != conflict_token(record):
        raise ConflictTokenMismatch(
            f"schedule {record.schedule_id!r} was changed since it was described. Describe it again, make the change "
            "in that, and update with its conflict_token."
        )
    old, was_exhausted = record.schedule, is_exhausted(record)
    record.schedule = request.schedule
    if request.schedule.spec != old.spec or (was_exhausted and not is_exhausted(record)):
        # Times behind now by the new definition, and those that were and whose jitter has not passed (WC-17).
        record.not_before = now
        spec = request.schedule.spec
        record.cursor = before_latest(spec, max(record.cursor, now - spec.jitter - _INSTANT), now, Looks(LOOKS_AT_ONCE))
        record.search = None
        record.backfills = tuple([_replace(each, search=None) for each in record.backfills])
        record.held = None
    if old.state.paused and not request.schedule.state.paused:
        _resume(record, now)
    if request.memo is not None:
        record.memo = request.memo
    if request.search_attributes is not None:
        record.search_attributes = request.search_attributes
    record.revision += 1
    record.update_time = record.last_activity = now


# --- what follows ---


def _settle(
    record: ScheduleRecord, now: datetime, allowance: int, pause: timedelta = PAUSE, *, counts_late: bool = True
) -> Step:
    more = passing.pass_times(record, now)
    passing.fill(record)
    starved = overlap.decide(record, allowance, counts_late=counts_late)
    more = more or passing.has_more_to_fill(record)
    wake_at, exhausted = _next(record, now, more=more, pause=pause if starved else None)
    return Step(
        record=record,
        starts=_starts(record),
        # Of a run that may not be there yet nobody could tell whether it was stopped, or is still to come.
        stops=tuple([run for run in record.runs if run.started and run.stop is not None and not run.stop_asked]),
        wake_at=wake_at,
        exhausted=exhausted,
        starved=starved,
    )


def _starts(record: ScheduleRecord) -> tuple[Run, ...]:
    return tuple([run for run in record.runs if not run.started])


def _next(
    record: ScheduleRecord, now: datetime, *, more: bool, pause: timedelta | None
) -> tuple[datetime | None, bool]:
    wake_at: list[datetime] = []
    if more:
        wake_at.append(now)
    if pause is not None:
        wake_at.append(now + pause)
    if any(not run.started or (run.stop is not None and not run.stop_asked) for run in record.runs):
        wake_at.append(now + RETRY)
    if acts_by_time(record) and not more:
        looks = Looks(LOOKS_AT_ONCE)
        upcoming = passing.upcoming(record, looks)
        if upcoming is not None or looks.ran_out:
            wake_at.append(now if upcoming is None else upcoming.at)
    waits_for_end = bool(counted(record)) and (bool(record.buffer) or not record.schedule.state.paused)
    if waits_for_end and (record.buffer or not wake_at):
        wake_at.append(now + _LOOK)
    if wake_at or record.schedule.state.paused:
        return max(min(wake_at), now) if wake_at else None, False
    over = (record.last_activity or record.create_time) + limits.EXHAUSTED_SCHEDULE_RETENTION
    return (None, True) if over <= now else (over, False)


def has_to_look(record: ScheduleRecord) -> bool:
    """Whether it matters now whether runs are still open that are thought to be."""
    return any(run.started for run in counted(record))
