"""Schedules through a client: made, found again, listed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..search_attributes import SearchAttributes
from . import schedule_inputs as i
from .interceptors import OutboundInterceptor
from .lists import ScheduleCount, schedules_counted
from .schedule_definition import Schedule, ScheduleBackfill
from .schedule_handle import ScheduleHandle
from .schedule_list import ScheduleAsyncIterator

if TYPE_CHECKING:
    from .client import Client


class ScheduleCalls:
    """Of :class:`Client`."""

    outbound: OutboundInterceptor

    async def create_schedule(
        self,
        id: str,
        schedule: Schedule,
        *,
        trigger_immediately: bool = False,
        backfill: Sequence[ScheduleBackfill] = (),
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
    ) -> ScheduleHandle:
        """Make a schedule. Returning means recorded. ``trigger_immediately`` acts once at once, ``backfill`` for times
        that have passed. Memo and search attributes are the schedule's own, not of the runs that it starts.

        Raises :class:`ScheduleAlreadyRunningError` when the id is taken, ``ArgumentError`` when the arguments do not
        fit the workflow's, and :class:`RPCError` for what the engine refuses: a cron string that cannot be read, times
        that never come, a zone that it does not have, with the field and the place in it.
        """
        if not isinstance(schedule, Schedule):
            raise TypeError(f"schedule is a Schedule(action=…, spec=…), not {schedule!r}")
        return await self.outbound.create_schedule(
            i.CreateScheduleInput(
                id=id,
                schedule=schedule,
                trigger_immediately=trigger_immediately,
                backfill=backfill,
                memo=memo,
                search_attributes=search_attributes,
            )
        )

    def get_schedule_handle(self, id: str) -> ScheduleHandle:
        """A handle for a schedule, whether there is one or not."""
        return ScheduleHandle(cast("Client", self), id)

    async def list_schedules(
        self,
        query: str | None = None,
        *,
        page_size: int = 100,
        next_page_token: bytes | None = None,
    ) -> ScheduleAsyncIterator:
        """Schedules of the namespace, in the order of their ids:
        ``async for each in await client.list_schedules(): …``. A ``query`` in the filter language goes by their own
        search attributes, ``ScheduleId``, ``StepwellSchedulePaused`` and the ``WorkflowType`` that they start."""
        return self.outbound.list_schedules(
            i.ListSchedulesInput(query=query, page_size=page_size, next_page_token=next_page_token)
        )

    async def count_schedules(self, query: str | None = None) -> ScheduleCount:
        """How many schedules a query finds, with GROUP BY by the values of one attribute, such as
        ``GROUP BY WorkflowType``."""
        client = cast("Client", self)
        return await schedules_counted(client._root, client.namespace, query or "")
