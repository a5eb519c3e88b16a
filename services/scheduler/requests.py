"""Everything that can come to a schedule. ``step`` is total over this union."""

from datetime import datetime
from enum import StrEnum

import msgspec
from stepwell.api.common import Memo
from stepwell.api.enums import WorkflowExecutionStatus
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payloads
from stepwell.api.requests_schedules import SchedulePatch
from stepwell.api.schedules import Schedule

from .state import Run, ScheduleRecord


class RunEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a chain of runs ended, its retries included."""

    run_id: str
    """The first of the chain."""
    status: WorkflowExecutionStatus | None = None
    """None: nobody knows any more."""
    result: Payloads = ()
    failure: Failure | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody looks: a wake-up, or the end of runs that it has started. ``ends`` may be empty, or known already."""

    ends: tuple[RunEnd, ...] = ()


class Outcome(StrEnum):
    STARTED = "started"
    TAKEN = "taken"
    """Another workflow has the id."""
    REFUSED = "refused"
    """The action cannot be done, now or later."""


class Attempted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of starts and stops that a step has asked for. What is not named is still to be done."""

    starts: tuple[tuple[str, Outcome], ...] = ()
    """By run id."""
    stopped: tuple[str, ...] = ()
    """Run ids of those that were told to end."""
    ends: tuple[RunEnd, ...] = ()
    refusal: str = ""
    """Why the last of those that are REFUSED is."""


class Patch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    patch: SchedulePatch
    request_id: str = ""


class Update(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    schedule: Schedule
    conflict_token: bytes = b""
    memo: Memo | None = None
    search_attributes: Memo | None = None
    request_id: str = ""


class Creation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    namespace: str
    schedule_id: str
    incarnation: str
    schedule: Schedule
    initial_patch: SchedulePatch | None = None
    memo: Memo = {}
    search_attributes: Memo = {}
    request_id: str = ""


Request = Look | Attempted | Patch | Update


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a step decided. First the record is written, then the rest is done and told in :class:`Attempted`."""

    record: ScheduleRecord
    starts: tuple[Run, ...] = ()
    stops: tuple[Run, ...] = ()
    wake_at: datetime | None = None
    """None: nothing will happen by itself."""
    exhausted: bool = False
    """It can never act again, and has been kept long enough: delete it."""
    starved: int = 0
    """Actions that would be started if the namespace had starts left."""
