"""A schedule as its author writes it, and what is asked of one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ..api import requests as r
from ..api import schedules as wire
from ..api.enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy
from ..api.limits import DEFAULT_CATCHUP_WINDOW
from ..converter import DataConverter
from ..search_attributes import SearchAttributes
from .schedule_action import ScheduleAction, ScheduleActionStartWorkflow
from .schedule_spec import ScheduleSpec, listed

if TYPE_CHECKING:
    from .schedule_descriptions import ScheduleDescription


@dataclass
class SchedulePolicy:
    """By which rules a schedule acts."""

    overlap: ScheduleOverlapPolicy = ScheduleOverlapPolicy.SKIP
    """What becomes of a time at which the last run is still open."""
    catchup_window: timedelta = DEFAULT_CATCHUP_WINDOW
    """Times that are found later than this, after an outage, are left out and counted. At least 10 s."""
    pause_on_failure: bool = False
    """A run that fails or times out, with its retries, pauses the schedule."""
    concurrency_limit: int = 0
    """How many runs may be open before ``overlap`` decides; 0 is one. With ALLOW_ALL 0 is any number, and what is over
    a limit is skipped."""
    catch_up_on_unpause: ScheduleCatchUpPolicy = ScheduleCatchUpPolicy.SKIP
    """What becomes of the times at which it was paused: none is made up for, the last one, or all that are within the
    catch-up window."""
    keep_original_workflow_id: bool = False
    """Runs have the action's id as it is, without the time."""

    def _to_record(self) -> wire.SchedulePolicies:
        return wire.SchedulePolicies(
            overlap_policy=self.overlap,
            concurrency_limit=self.concurrency_limit,
            catchup_window=None if self.catchup_window == DEFAULT_CATCHUP_WINDOW else self.catchup_window,
            pause_on_failure=self.pause_on_failure,
            catch_up_on_unpause=self.catch_up_on_unpause,
            keep_original_workflow_id=self.keep_original_workflow_id,
        )

    @classmethod
    def _from_record(cls, record: wire.SchedulePolicies) -> "SchedulePolicy":
        return cls(
            overlap=record.overlap_policy,
            catchup_window=DEFAULT_CATCHUP_WINDOW if record.catchup_window is None else record.catchup_window,
            pause_on_failure=record.pause_on_failure,
            concurrency_limit=record.concurrency_limit,
            catch_up_on_unpause=record.catch_up_on_unpause,
            keep_original_workflow_id=record.keep_original_workflow_id,
        )


@dataclass
class ScheduleState:
    note: str | None = None
    """For people; pausing and unpausing overwrite it."""
    paused: bool = False
    limited_actions: bool = False
    """``remaining_actions`` counts down; at 0 only a trigger or a backfill acts."""
    remaining_actions: int = 0

    def _to_record(self) -> wire.ScheduleState:
        return wire.ScheduleState(
            note=self.note or "",
            paused=self.paused,
            limited_actions=self.limited_actions,
            remaining_actions=self.remaining_actions,
        )

    @classmethod
    def _from_record(cls, record: wire.ScheduleState) -> "ScheduleState":
        return cls(
            note=record.note or None,
            paused=record.paused,
            limited_actions=record.limited_actions,
            remaining_actions=record.remaining_actions,
        )


@dataclass
class Schedule:
    """What is done, when, by which rules."""

    action: ScheduleAction
    spec: ScheduleSpec
    policy: SchedulePolicy = field(default_factory=SchedulePolicy)
    state: ScheduleState = field(default_factory=ScheduleState)

    def _to_record(self, converter: DataConverter) -> wire.Schedule:
        for name, kind in (
            ("action", ScheduleAction),
            ("spec", ScheduleSpec),
            ("policy", SchedulePolicy),
            ("state", ScheduleState),
        ):
            said = getattr(self, name)
            if not isinstance(said, kind):
                raise TypeError(f"{name} of a Schedule is a {kind.__name__}, not {said!r}")
        return wire.Schedule(
            spec=self.spec._to_record(),
            action=self.action._to_record(converter),
            policies=self.policy._to_record(),
            state=self.state._to_record(),
        )

    @classmethod
    def _from_record(cls, record: wire.Schedule, converter: DataConverter) -> "Schedule":
        return cls(
            action=ScheduleActionStartWorkflow._from_record(record.action, converter),
            spec=ScheduleSpec._from_record(record.spec),
            policy=SchedulePolicy._from_record(record.policies),
            state=ScheduleState._from_record(record.state),
        )


@dataclass
class ScheduleBackfill:
    """All times behind ``start_at`` up to ``end_at``, which counts, at once, by the spec as it is now."""

    start_at: datetime
    end_at: datetime
    overlap: ScheduleOverlapPolicy | None = None
    """None: as the schedule says."""

    def _to_record(self) -> r.BackfillRequest:
        return r.BackfillRequest(start_time=self.start_at, end_time=self.end_at, overlap_policy=self.overlap)


@dataclass
class ScheduleUpdateInput:
    """What the function given to :meth:`ScheduleHandle.update` gets."""

    description: "ScheduleDescription"


@dataclass
class ScheduleUpdate:
    """What it returns: the definition as it shall be."""

    schedule: Schedule
    search_attributes: SearchAttributes | None = None
    """None: as they are."""


def patch_of(
    *,
    trigger: r.TriggerImmediatelyRequest | None = None,
    backfill: Sequence[ScheduleBackfill] = (),
    pause: str | None = None,
    unpause: str | None = None,
) -> r.SchedulePatch:
    """Orders, as they travel."""
    return r.SchedulePatch(
        trigger_immediately=trigger,
        backfill=tuple(each._to_record() for each in listed("backfill", backfill, ScheduleBackfill)),
        pause=pause,
        unpause=unpause,
    )
