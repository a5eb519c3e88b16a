"""One schedule, as its client sees it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

from ..api.enums import ScheduleOverlapPolicy
from . import schedule_inputs as i
from .schedule_definition import ScheduleBackfill, ScheduleUpdate, ScheduleUpdateInput
from .schedule_descriptions import ScheduleDescription
from .schedule_spec import ScheduleSpec

if TYPE_CHECKING:
    from .client import Client

_Updated = ScheduleUpdate | None


class ScheduleHandle:
    """Made by ``Client.create_schedule`` and ``Client.get_schedule_handle``. All methods raise :class:`RPCError` when
    the engine refuses the call or is out of reach, with code ``NOT_FOUND`` when there is no such schedule."""

    def __init__(self, client: "Client", id: str) -> None:
        self._client = client
        self._id = id

    def __repr__(self) -> str:
        return f"<ScheduleHandle {self._id!r}>"

    @property
    def id(self) -> str:
        return self._id

    async def describe(self) -> ScheduleDescription:
        """Its definition, what it has done and what it will do."""
        return await self._client.outbound.describe_schedule(i.DescribeScheduleInput(id=self._id))

    async def update(self, updater: Callable[[ScheduleUpdateInput], _Updated | Awaitable[_Updated]]) -> None:
        """Change the definition: ``updater`` gets the description, and returns a :class:`ScheduleUpdate`, or None to
        leave it. It is called again, with the newer description, when somebody else's update came between: so nobody's
        is lost (LC-41)."""
        await self._client.outbound.update_schedule(i.UpdateScheduleInput(id=self._id, updater=updater))

    async def trigger(
        self, *, overlap: ScheduleOverlapPolicy | None = None, scheduled_at: datetime | None = None
    ) -> None:
        """Act once now, also when it is paused or has no actions left. ``overlap``: another policy than the schedule's
        own; ``scheduled_at``: what the run is told as its time instead of now."""
        await self._client.outbound.trigger_schedule(
            i.TriggerScheduleInput(id=self._id, overlap=overlap, scheduled_at=scheduled_at)
        )

    async def backfill(self, *backfill: ScheduleBackfill) -> None:
        """Act now as if the times of these ranges had just come, also when it is paused or has no actions left."""
        if not backfill:
            raise ValueError("backfill needs at least one ScheduleBackfill")
        await self._client.outbound.backfill_schedule(i.BackfillScheduleInput(id=self._id, backfills=backfill))

    async def pause(self, *, note: str | None = None) -> None:
        """Nothing is done by time until it is unpaused. The note replaces the one that is there."""
        await self._client.outbound.pause_schedule(i.PauseScheduleInput(id=self._id, note=note))

    async def unpause(self, *, note: str | None = None) -> None:
        """Go on. What becomes of the times in between is for ``SchedulePolicy.catch_up_on_unpause`` to say."""
        await self._client.outbound.unpause_schedule(i.UnpauseScheduleInput(id=self._id, note=note))

    async def delete(self) -> None:
        """Runs that it has started go on."""
        await self._client.outbound.delete_schedule(i.DeleteScheduleInput(id=self._id))

    def matching_times(
        self, start_at: datetime, end_at: datetime, *, spec: ScheduleSpec | None = None
    ) -> AsyncIterator[datetime]:
        """The times of its spec, or of this other one, from ``start_at`` to ``end_at``, both counted, without jitter
        (LC-39). Nothing is done; with a ``spec`` there need be no such schedule."""
        return self._client.outbound.list_schedule_matching_times(
            i.ListScheduleMatchingTimesInput(id=self._id, start_at=start_at, end_at=end_at, spec=spec)
        )
