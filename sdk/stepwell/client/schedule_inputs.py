"""What interceptors of a client see of calls about schedules."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..api.enums import ScheduleOverlapPolicy
from ..search_attributes import SearchAttributes

if TYPE_CHECKING:
    from .schedule_definition import Schedule, ScheduleBackfill, ScheduleUpdate, ScheduleUpdateInput
    from .schedule_descriptions import ScheduleDescription
    from .schedule_handle import ScheduleHandle
    from .schedule_list import ScheduleAsyncIterator
    from .schedule_spec import ScheduleSpec


@dataclass
class CreateScheduleInput:
    id: str
    schedule: "Schedule"
    trigger_immediately: bool
    backfill: Sequence["ScheduleBackfill"]
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | None


@dataclass
class ListSchedulesInput:
    query: str | None
    page_size: int
    next_page_token: bytes | None


@dataclass
class DescribeScheduleInput:
    id: str


@dataclass
class UpdateScheduleInput:
    id: str
    updater: Callable[["ScheduleUpdateInput"], "ScheduleUpdate | Awaitable[ScheduleUpdate | None] | None"]


@dataclass
class TriggerScheduleInput:
    id: str
    overlap: ScheduleOverlapPolicy | None
    scheduled_at: datetime | None = None


@dataclass
class BackfillScheduleInput:
    id: str
    backfills: Sequence["ScheduleBackfill"]


@dataclass
class PauseScheduleInput:
    id: str
    note: str | None


@dataclass
class UnpauseScheduleInput:
    id: str
    note: str | None


@dataclass
class DeleteScheduleInput:
    id: str


@dataclass
class ListScheduleMatchingTimesInput:
    id: str
    start_at: datetime
    end_at: datetime
    spec: "ScheduleSpec | None"


class ScheduleOutboundInterceptor:
    """The part of :class:`OutboundInterceptor` that is about schedules."""

    next: "ScheduleOutboundInterceptor"

    async def create_schedule(self, input: CreateScheduleInput) -> "ScheduleHandle":
        return await self.next.create_schedule(input)

    def list_schedules(self, input: ListSchedulesInput) -> "ScheduleAsyncIterator":
        return self.next.list_schedules(input)

    async def describe_schedule(self, input: DescribeScheduleInput) -> "ScheduleDescription":
        return await self.next.describe_schedule(input)

    async def update_schedule(self, input: UpdateScheduleInput) -> None:
        await self.next.update_schedule(input)

    async def trigger_schedule(self, input: TriggerScheduleInput) -> None:
        await self.next.trigger_schedule(input)

    async def backfill_schedule(self, input: BackfillScheduleInput) -> None:
        await self.next.backfill_schedule(input)

    async def pause_schedule(self, input: PauseScheduleInput) -> None:
        await self.next.pause_schedule(input)

    async def unpause_schedule(self, input: UnpauseScheduleInput) -> None:
        await self.next.unpause_schedule(input)

    async def delete_schedule(self, input: DeleteScheduleInput) -> None:
        await self.next.delete_schedule(input)

    def list_schedule_matching_times(self, input: ListScheduleMatchingTimesInput) -> AsyncIterator[datetime]:
        return self.next.list_schedule_matching_times(input)
