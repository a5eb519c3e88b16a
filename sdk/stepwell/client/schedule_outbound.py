"""End of the chain of client interceptors, of calls about schedules: makes the requests and reads the answers."""

import asyncio
import inspect
import random
import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..api import operations as op
from ..api import requests as r
from ..api.errors import ApiError, ConflictTokenMismatch, ScheduleAlreadyExists
from ..search_attributes import first_of
from . import schedule_inputs as i
from .checked import checked
from .errors import RPCError, ScheduleAlreadyRunningError
from .schedule_definition import ScheduleUpdate, ScheduleUpdateInput, patch_of
from .schedule_descriptions import ScheduleDescription
from .schedule_handle import ScheduleHandle
from .schedule_list import ScheduleAsyncIterator
from .texts import memo_of

if TYPE_CHECKING:
    from .client import Client

_UPDATE_TRIES = 10
"""How often an update is made anew from what others have changed meanwhile."""


class ScheduleOutbound(i.ScheduleOutboundInterceptor):
    """Raises :class:`RPCError` for refusals."""

    _client: "Client"

    async def _schedule_call(self, operation: op.Operation[Any, Any], request: Any) -> Any:
        try:
            return await self._client.transport.call(operation, checked(request))
        except ApiError as error:
            raise RPCError(error) from error

    async def create_schedule(self, input: i.CreateScheduleInput) -> ScheduleHandle:
        client = self._client
        patch = None
        if input.trigger_immediately or input.backfill:
            trigger = r.TriggerImmediatelyRequest() if input.trigger_immediately else None
            patch = patch_of(trigger=trigger, backfill=input.backfill)
        request = r.CreateScheduleRequest(
            namespace=client.namespace,
            schedule_id=input.id,
            schedule=input.schedule._to_record(client.data_converter),
            initial_patch=patch,
            memo=memo_of(client.data_converter, input.memo),
            search_attributes=first_of("search_attributes", input.search_attributes),
            identity=client.identity,
            request_id=uuid.uuid4().hex,
        )
        try:
            await client.transport.call(op.CREATE_SCHEDULE, checked(request))
        except ScheduleAlreadyExists as error:
            raise ScheduleAlreadyRunningError(input.id) from error
        except ApiError as error:
            raise RPCError(error) from error
        return ScheduleHandle(client, input.id)

    def list_schedules(self, input: i.ListSchedulesInput) -> ScheduleAsyncIterator:
        async def fetch(token: bytes) -> r.ListSchedulesResponse:
            request = r.ListSchedulesRequest(
                namespace=self._client.namespace,
                page_size=input.page_size,
                next_page_token=token,
                query=input.query or "",
            )
            response: r.ListSchedulesResponse = await self._schedule_call(op.LIST_SCHEDULES, request)
            return response

        return ScheduleAsyncIterator(fetch, input.next_page_token, self._client.data_converter)

    async def describe_schedule(self, input: i.DescribeScheduleInput) -> ScheduleDescription:
        request = r.DescribeScheduleRequest(namespace=self._client.namespace, schedule_id=input.id)
        response = await self._schedule_call(op.DESCRIBE_SCHEDULE, request)
        return ScheduleDescription(input.id, response, self._client.data_converter)

    async def update_schedule(self, input: i.UpdateScheduleInput) -> None:
        for attempt in range(1, _UPDATE_TRIES + 1):
            described = await self.describe_schedule(i.DescribeScheduleInput(id=input.id))
            update = input.updater(ScheduleUpdateInput(description=described))
            if inspect.isawaitable(update):
                update = await update
            if update is None:
                return
            request = self._update_request(input.id, update, described.raw_description.conflict_token)
            try:
                await self._client.transport.call(op.UPDATE_SCHEDULE, checked(request))
                return
            except ConflictTokenMismatch as error:
                if attempt == _UPDATE_TRIES:
                    raise RPCError(error) from error
            except ApiError as error:
                raise RPCError(error) from error
            await asyncio.sleep(random.uniform(0.0, 0.02 * attempt))

    def _update_request(self, id: str, update: ScheduleUpdate, conflict_token: bytes) -> r.UpdateScheduleRequest:
        if not isinstance(update, ScheduleUpdate):
            raise TypeError(f"the updater must return a ScheduleUpdate or None, not {type(update).__name__}")
        attributes = update.search_attributes
        return r.UpdateScheduleRequest(
            namespace=self._client.namespace,
            schedule_id=id,
            schedule=update.schedule._to_record(self._client.data_converter),
            conflict_token=conflict_token,
            search_attributes=None if attributes is None else first_of("search_attributes", attributes),
            identity=self._client.identity,
            request_id=uuid.uuid4().hex,
        )

    async def trigger_schedule(self, input: i.TriggerScheduleInput) -> None:
        trigger = r.TriggerImmediatelyRequest(overlap_policy=input.overlap, scheduled_time=input.scheduled_at)
        await self._patch(input.id, patch_of(trigger=trigger))

    async def backfill_schedule(self, input: i.BackfillScheduleInput) -> None:
        await self._patch(input.id, patch_of(backfill=input.backfills))

    async def pause_schedule(self, input: i.PauseScheduleInput) -> None:
        await self._patch(input.id, patch_of(pause="Paused by a client" if input.note is None else input.note))

    async def unpause_schedule(self, input: i.UnpauseScheduleInput) -> None:
        await self._patch(input.id, patch_of(unpause="Unpaused by a client" if input.note is None else input.note))

    async def _patch(self, id: str, patch: r.SchedulePatch) -> None:
        request = r.PatchScheduleRequest(
            namespace=self._client.namespace,
            schedule_id=id,
            patch=patch,
            identity=self._client.identity,
            request_id=uuid.uuid4().hex,
        )
        await self._schedule_call(op.PATCH_SCHEDULE, request)

    async def delete_schedule(self, input: i.DeleteScheduleInput) -> None:
        request = r.DeleteScheduleRequest(
            namespace=self._client.namespace, schedule_id=input.id, identity=self._client.identity
        )
        await self._schedule_call(op.DELETE_SCHEDULE, request)

    async def list_schedule_matching_times(self, input: i.ListScheduleMatchingTimesInput) -> AsyncIterator[datetime]:
        start: datetime | None = input.start_at
        while start is not None:
            request = r.ListScheduleMatchingTimesRequest(
                namespace=self._client.namespace,
                schedule_id=input.id,
                start_time=start,
                end_time=input.end_at,
                spec=None if input.spec is None else input.spec._to_record(),
            )
            response = await self._schedule_call(op.LIST_SCHEDULE_MATCHING_TIMES, request)
            for time in response.start_times:
                yield time
            start = response.next_start_time
