"""What is known of schedules: one described, many listed (LC-36)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..api import requests as r
from ..api import schedules as wire
from ..api.enums import WorkflowExecutionStatus
from ..api.payloads import Payload
from ..converter import DataConverter
from ..search_attributes import TypedSearchAttributes
from .arguments import UNSET
from .schedule_definition import Schedule
from .schedule_spec import ScheduleSpec


class ScheduleActionExecution:
    """There is one kind, :class:`ScheduleActionExecutionStartWorkflow`."""


@dataclass(frozen=True)
class ScheduleActionExecutionStartWorkflow(ScheduleActionExecution):
    """A run that a schedule started."""

    workflow_id: str
    first_execution_run_id: str


@dataclass(frozen=True)
class ScheduleActionResult:
    """One action that was done."""

    scheduled_at: datetime
    """The time of the spec, without jitter."""
    started_at: datetime
    """When it was done."""
    action: ScheduleActionExecution | None
    """None when nothing could be started."""
    status: WorkflowExecutionStatus | None = None
    """Of the run, as far as the schedule knows."""


@dataclass(frozen=True)
class ScheduleInfo:
    """What a schedule has done, does and will do."""

    num_actions: int
    """Done, whether by time, by trigger or by backfill."""
    num_actions_missed_catchup_window: int
    """Times that were found too late."""
    num_actions_missed_paused: int
    """Times that passed while it was paused, and are not made up for."""
    num_actions_skipped_overlap: int
    """Times that the overlap policy left out."""
    num_actions_dropped: int
    """Those that found the buffer full."""
    buffer_size: int
    """How many wait."""
    state_size_bytes: int
    running_actions: Sequence[ScheduleActionExecution]
    recent_actions: Sequence[ScheduleActionResult]
    """The last 10, oldest first."""
    next_action_times: Sequence[datetime]
    """The next 10, with jitter, as if it was not paused."""
    created_at: datetime
    last_updated_at: datetime | None
    num_actions_refused: int = 0
    """Those whose start was refused for good, by a limit of the namespace, say; ``last_refusal`` says why the newest
    was."""
    last_refusal: str | None = None
    num_actions_delayed: int = 0
    """Those that waited since the namespace had no starts left for a while."""


class _Described:
    """Memo and search attributes."""

    id: str

    def __init__(
        self, id: str, memo: Mapping[str, Payload], attributes: Mapping[str, Payload], converter: DataConverter
    ) -> None:
        self.id = id
        self._memo = memo
        self._attributes = attributes
        self._converter = converter

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    async def memo(self) -> dict[str, Any]:
        """The decoded memo."""
        return {name: self._decoded(payload) for name, payload in self._memo.items()}

    async def memo_value(self, key: str, default: Any = UNSET, *, type_hint: Any = None) -> Any:
        """One value of the memo. Raises ``KeyError`` when there is none, and no ``default``."""
        if key not in self._memo and default is not UNSET:
            return default
        return self._decoded(self._memo[key], type_hint)

    def _decoded(self, payload: Payload, type_hint: Any = None) -> Any:
        return self._converter.payload_converter.from_payload(payload, Any if type_hint is None else type_hint)

    @property
    def typed_search_attributes(self) -> TypedSearchAttributes:
        """By what it can be found."""
        return TypedSearchAttributes.of_payloads(self._attributes)


class ScheduleDescription(_Described):
    """All of one schedule."""

    def __init__(self, id: str, raw: r.DescribeScheduleResponse, converter: DataConverter) -> None:
        super().__init__(id, raw.memo, raw.search_attributes, converter)
        self.raw_description = raw
        self.schedule = Schedule._from_record(raw.schedule, converter)
        """As it is now: what was paused or counted down since it was made shows in its state. To be changed and given
        to a :class:`ScheduleUpdate`."""
        self.info = _info(raw.info)


@dataclass(frozen=True)
class ScheduleListAction:
    """There is one kind, :class:`ScheduleListActionStartWorkflow`."""


@dataclass(frozen=True)
class ScheduleListActionStartWorkflow(ScheduleListAction):
    workflow: str


@dataclass(frozen=True)
class ScheduleListState:
    note: str | None
    paused: bool


@dataclass(frozen=True)
class ScheduleListSchedule:
    """What a list shows of a definition."""

    action: ScheduleListAction
    spec: ScheduleSpec
    state: ScheduleListState


@dataclass(frozen=True)
class ScheduleListInfo:
    recent_actions: Sequence[ScheduleActionResult]
    """The last 5, oldest first."""
    next_action_times: Sequence[datetime]
    """The next 5."""


class ScheduleListDescription(_Described):
    """One row of a list."""

    def __init__(self, raw: wire.ScheduleListEntry, converter: DataConverter) -> None:
        super().__init__(raw.schedule_id, raw.memo, raw.search_attributes, converter)
        self.raw_entry = raw
        info = raw.info
        self.schedule = ScheduleListSchedule(
            action=ScheduleListActionStartWorkflow(info.workflow_type),
            spec=ScheduleSpec._from_record(info.spec),
            state=ScheduleListState(note=info.note or None, paused=info.paused),
        )
        self.info = ScheduleListInfo(
            recent_actions=[_result(each) for each in info.recent_actions],
            next_action_times=info.future_action_times,
        )


def _info(record: wire.ScheduleInfo) -> ScheduleInfo:
    return ScheduleInfo(
        num_actions=record.action_count,
        num_actions_missed_catchup_window=record.missed_catchup_window,
        num_actions_missed_paused=record.missed_paused,
        num_actions_skipped_overlap=record.overlap_skipped,
        num_actions_dropped=record.buffer_dropped,
        buffer_size=record.buffer_size,
        state_size_bytes=record.state_size_bytes,
        running_actions=[
            ScheduleActionExecutionStartWorkflow(run.workflow_id, run.run_id) for run in record.running_workflows
        ],
        recent_actions=[_result(each) for each in record.recent_actions],
        next_action_times=record.future_action_times,
        created_at=record.create_time,
        last_updated_at=record.update_time,
        num_actions_refused=record.start_refused,
        last_refusal=record.last_refusal or None,
        num_actions_delayed=record.rate_delayed,
    )


def _result(record: wire.ScheduleActionResult) -> ScheduleActionResult:
    run = record.start_workflow_result
    return ScheduleActionResult(
        scheduled_at=record.schedule_time,
        started_at=record.actual_time,
        action=None if run is None else ScheduleActionExecutionStartWorkflow(run.workflow_id, run.run_id),
        status=record.start_workflow_status,
    )
