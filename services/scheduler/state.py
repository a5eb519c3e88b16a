"""What is kept of a schedule: one record of the control store, bounded by its limits, not by how often it has acted.

Theory of operation. ``cursor`` is the newest nominal time that was dealt with: nothing up to it is looked at again, and
nothing behind it is lost. An action is first of all *waiting* (``buffer``); the overlap policy turns it into a *run*,
which is written down, with its ids, before the workflow is started, and is confirmed behind the start. The ids are made
of what the action is, so a start that is made again finds its own run. Runs that the overlap policy must know are kept
until their end is heard of.
"""

from datetime import datetime
from enum import StrEnum
from functools import lru_cache

import msgspec
from stepwell.api.common import Memo, WorkflowExecution
from stepwell.api.enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.schedules import Schedule, ScheduleActionResult

from .spec import Search

KIND = "schedule"
"""Of the record in the control store, and of its wake-ups."""

KEPT_REQUESTS = 32
KEPT_ENDS = 16

MAX_KEPT_RESULT_BYTES = 32 * 1024
"""A last result that is larger is read from the run that had it, for as long as that is kept."""


class Origin(StrEnum):
    """Why an action is done."""

    TIME = "t"
    TRIGGER = "o"
    BACKFILL = "b"


class Waiting(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An action that was due and is not started. There may be a thousand of them in a record."""

    nominal: datetime
    origin: Origin = Origin.TIME
    order: int = 0
    """Which trigger or backfill of this schedule."""
    overlap_policy: ScheduleOverlapPolicy | None = None
    """None: the schedule's own, as it is when it is decided."""
    late: bool = False
    """It was due to start when the namespace had no starts left."""


class Stop(StrEnum):
    CANCEL = "cancel"
    TERMINATE = "terminate"


class Run(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A chain of runs that this schedule starts or has started; ``run_id`` is its first."""

    workflow_id: str
    run_id: str
    waiting: Waiting
    """What it was."""
    counts: bool = True
    """Others have to mind it: by their overlap policy, or the limit of runs at the same time."""
    started: bool = False
    """Known to have been started. Until then it is started again whenever somebody looks; again is the same."""
    stop: Stop | None = None
    """It is to end for the sake of another one."""
    stop_asked: bool = False
    """And has been told."""
    timed: bool = False
    """Nothing but time was to bring it about: how late it starts is told."""


class OpenBackfill(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """A backfill that is not all in the buffer yet."""

    order: int
    cursor: datetime
    """Exclusive."""
    end: datetime
    """Inclusive."""
    overlap_policy: ScheduleOverlapPolicy | None = None
    search: Search | None = None
    """For what is behind ``cursor``, when that takes more than one step."""


class ScheduleRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Mutable on purpose, as the engine's state is: a step changes its own copy; nobody else changes one. New fields
    have defaults: old records stay readable."""

    namespace: str
    schedule_id: str
    incarnation: str
    """Tells it from others of the same id, before and after."""
    schedule: Schedule
    memo: Memo = {}
    search_attributes: Memo = {}
    create_time: datetime
    update_time: datetime | None = None
    revision: int = 1
    """Of ``schedule`` (LC-41)."""

    cursor: datetime
    not_before: datetime
    """Times at which it would have acted up to here are none of this definition's."""
    resume_until: datetime | None = None
    """It was unpaused then: what was due up to here goes by ``catch_up_on_unpause``."""
    resume_policy: ScheduleCatchUpPolicy = ScheduleCatchUpPolicy.SKIP
    held: datetime | None = None
    """With ONE: the newest nominal time so far that may be the last one."""

    buffer: tuple[Waiting, ...] = ()
    backfills: tuple[OpenBackfill, ...] = ()
    runs: tuple[Run, ...] = ()
    orders: int = 0
    """Triggers and backfills so far."""

    action_count: int = 0
    missed_catchup_window: int = 0
    missed_paused: int = 0
    overlap_skipped: int = 0
    buffer_dropped: int = 0
    rate_delayed: int = 0
    start_refused: int = 0
    last_refusal: str = ""
    """Why the newest of those was."""
    recent_actions: tuple[ScheduleActionResult, ...] = ()
    last_activity: datetime | None = None
    """When it last acted, or was changed."""

    known_requests: tuple[str, ...] = ()
    """Digests of request ids, newest last."""
    heard: tuple[str, ...] = ()
    """Run ids of the newest ends that were heard of, of runs that are not kept here."""
    last_result: Payloads = ()
    last_result_of: WorkflowExecution | None = None
    """The run that has it, when it is too large to be here."""
    last_failure: Failure | None = None
    armed: datetime | None = None
    """The next wake-up, as far as records know."""
    search: Search | None = None
    """For what is behind ``cursor``, when that takes more than one step."""


_encoder = msgspec.msgpack.Encoder()


@lru_cache(maxsize=1)
def _decoder() -> msgspec.msgpack.Decoder[ScheduleRecord]:
    return msgspec.msgpack.Decoder(ScheduleRecord)


def encode(record: ScheduleRecord) -> bytes:
    return _encoder.encode(record)


def decode(value: bytes) -> ScheduleRecord:
    return _decoder().decode(value)


def conflict_token(record: ScheduleRecord) -> bytes:
    return f"{record.incarnation}:{record.revision}".encode()


def overlap_of(record: ScheduleRecord, waiting: Waiting) -> ScheduleOverlapPolicy:
    return waiting.overlap_policy or record.schedule.policies.overlap_policy


def counted(record: ScheduleRecord) -> list[Run]:
    """The runs that others have to mind."""
    return [run for run in record.runs if run.counts]
