"""Make schedules, change them, order them about, read them (LC-25 to LC-42)."""

from datetime import datetime

from ._struct import Record
from .common import Memo
from .enums import ScheduleOverlapPolicy
from .requests_reading import CountGroup
from .schedules import Schedule, ScheduleInfo, ScheduleListEntry, ScheduleSpec


class TriggerImmediatelyRequest(Record, frozen=True, kw_only=True):
    """One action now, also while the schedule is paused or has no actions left (LC-33)."""

    overlap_policy: ScheduleOverlapPolicy | None = None
    """None: the schedule's own."""
    scheduled_time: datetime | None = None
    """What is recorded as its nominal time; None: now."""


class BackfillRequest(Record, frozen=True, kw_only=True):
    """All nominal times behind ``start_time`` up to ``end_time``, which counts, at once, by the spec as it is now; also
    while the schedule is paused or has no actions left (LC-34). Jitter neither adds nor removes any."""

    start_time: datetime
    end_time: datetime
    overlap_policy: ScheduleOverlapPolicy | None = None
    """None: the schedule's own."""


class SchedulePatch(Record, frozen=True, kw_only=True):
    """Orders that leave the definition as it is, but for note and ``paused``. Done in the order of the fields."""

    trigger_immediately: TriggerImmediatelyRequest | None = None
    backfill: tuple[BackfillRequest, ...] = ()
    pause: str | None = None
    """The new note of a schedule that is to be paused."""
    unpause: str | None = None
    """The new note of a schedule that is to go on. Not with ``pause``."""


class CreateScheduleRequest(Record, frozen=True, kw_only=True):
    """A repeat with the same ``request_id`` gets the answer of the first call; else an id that is taken is refused with
    ScheduleAlreadyExists."""

    namespace: str = "default"
    schedule_id: str
    schedule: Schedule
    initial_patch: SchedulePatch | None = None
    memo: Memo = {}
    search_attributes: Memo = {}
    identity: str = ""
    request_id: str = ""


class CreateScheduleResponse(Record, frozen=True, kw_only=True):
    conflict_token: bytes = b""


class DescribeScheduleRequest(Record, frozen=True, kw_only=True):
    namespace: str = "default"
    schedule_id: str


class DescribeScheduleResponse(Record, frozen=True, kw_only=True):
    schedule: Schedule
    """As it is now: ``paused``, ``note`` and ``remaining_actions`` have moved with it."""
    info: ScheduleInfo
    memo: Memo = {}
    search_attributes: Memo = {}
    conflict_token: bytes = b""
    """For an update that is refused when somebody else's came between (LC-41)."""


class UpdateScheduleRequest(Record, frozen=True, kw_only=True):
    """Replaces the whole definition. What runs, waits and was counted stays."""

    namespace: str = "default"
    schedule_id: str
    schedule: Schedule
    conflict_token: bytes = b""
    """Of what the change was made from; if the definition is another by now, ConflictTokenMismatch. Empty: whatever
    there is is replaced."""
    memo: Memo | None = None
    """None: as it is."""
    search_attributes: Memo | None = None
    """None: as they are."""
    identity: str = ""
    request_id: str = ""


class UpdateScheduleResponse(Record, frozen=True, kw_only=True):
    conflict_token: bytes = b""


class PatchScheduleRequest(Record, frozen=True, kw_only=True):
    """A repeat with the same ``request_id`` does nothing more."""

    namespace: str = "default"
    schedule_id: str
    patch: SchedulePatch
    identity: str = ""
    request_id: str = ""


class PatchScheduleResponse(Record, frozen=True, kw_only=True):
    conflict_token: bytes = b""


class DeleteScheduleRequest(Record, frozen=True, kw_only=True):
    """Runs that it has started go on."""

    namespace: str = "default"
    schedule_id: str
    identity: str = ""


class DeleteScheduleResponse(Record, frozen=True, kw_only=True):
    pass


class ListSchedulesRequest(Record, frozen=True, kw_only=True):
    """In the order of their ids."""

    namespace: str = "default"
    page_size: int = 0
    next_page_token: bytes = b""
    query: str = ""


class ListSchedulesResponse(Record, frozen=True, kw_only=True):
    schedules: tuple[ScheduleListEntry, ...] = ()
    next_page_token: bytes = b""


class CountSchedulesRequest(Record, frozen=True, kw_only=True):
    """How many schedules satisfy ``query``, in all or by value of one attribute (GROUP BY)."""

    namespace: str = "default"
    query: str = ""
    next_page_token: bytes = b""


class CountSchedulesResponse(Record, frozen=True, kw_only=True):
    """With a token, these are the ones counted so far: ask again with it, and add what comes."""

    count: int
    groups: tuple[CountGroup, ...] = ()
    next_page_token: bytes = b""


class ListScheduleMatchingTimesRequest(Record, frozen=True, kw_only=True):
    """The times of a schedule from ``start_time`` to ``end_time``, both counted, nothing done (LC-39)."""

    namespace: str = "default"
    schedule_id: str
    start_time: datetime
    end_time: datetime
    spec: ScheduleSpec | None = None
    """What would be if this was the spec; then there need be no such schedule."""
    count_only: bool = False
    """Tells how many they are, in place of the times: so millions of them are no more than a few."""


class ListScheduleMatchingTimesResponse(Record, frozen=True, kw_only=True):
    start_times: tuple[datetime, ...] = ()
    """Nominal times, without jitter; at most ``limits.MAX_MATCHING_TIMES``."""
    next_start_time: datetime | None = None
    """Where the next request has to begin, when there may be more."""
    count: int = 0
    """With ``count_only``: how many there are before ``next_start_time``, or in all."""
