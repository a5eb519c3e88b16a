"""The operations on schedules, over their shell (LC-25 to LC-42)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta

from stepwell.api import limits
from stepwell.api import requests_schedules as r
from stepwell.api.common import Memo
from stepwell.api.errors import NotFound, ResourceExhausted, ScheduleAlreadyExists, Unavailable
from stepwell.api.schedules import Schedule, ScheduleListEntry, ScheduleSpec

from ..common.clock import Clock, IdSource
from ..common.control import ControlConflict, ControlRecord, ControlStore, ControlTooLarge
from ..history.attribute_types import AttributeTypes
from ..history.executions import unavailable
from ..history.ports import StoreUnavailable
from ..visibility.attributes import ValueType
from . import describing, finding, spec, state, step
from .requests import Creation, Look, Patch, Update
from .scheduler import Key, Scheduler, arm_at, log
from .state import KIND, ScheduleRecord
from .times import Looks

_DELETE_ATTEMPTS = 10
_DEFAULT_PAGE = 100
_READ_FOR_A_PAGE = 1_000
_READ_AT_ONCE = 101
_PAGE_BYTES = 2_000_000
"""Of records that a page looks at: each may have hundreds of kilobytes."""

_READ_FOR_A_COUNT = 10_000
_COUNT_BYTES = 10_000_000
"""The same of one call of a count."""


_INSTANT = timedelta(microseconds=1)
_FIRST = datetime.min.replace(tzinfo=UTC)


class Schedules:
    """Raises ``stepwell.api.errors``. What it is given has been checked."""

    def __init__(
        self, store: ControlStore, scheduler: Scheduler, types: AttributeTypes, clock: Clock, ids: IdSource
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._types = types
        self._clock = clock
        self._ids = ids

    async def create(self, request: r.CreateScheduleRequest) -> r.CreateScheduleResponse:
        key = Key(request.namespace, request.schedule_id)
        await self._admit(request.namespace, request.schedule, request.search_attributes)
        now = self._clock.now()
        creation = Creation(
            namespace=request.namespace,
            schedule_id=request.schedule_id,
            incarnation=self._ids.run_id(),
            schedule=request.schedule,
            initial_patch=request.initial_patch,
            memo=request.memo,
            search_attributes=request.search_attributes,
            request_id=request.request_id and f"create:{request.request_id}",
        )
        # Without starts: those are left to the shell, which counts them.
        record = step.create(creation, now, 0)
        record.record.armed = arm = arm_at(None, record.wake_at, now)
        try:
            await self._store.put(ControlRecord(KIND, *key, version=1, value=state.encode(record.record)), arm=arm)
        except ControlConflict as conflict:
            return self._existing(conflict, creation)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        except ControlTooLarge as large:
            raise ResourceExhausted(str(large)) from large
        if record.record.buffer:
            await self._begin(key)
        return r.CreateScheduleResponse(conflict_token=state.conflict_token(record.record))

    def _existing(self, conflict: ControlConflict, creation: Creation) -> r.CreateScheduleResponse:
        existing = None if conflict.existing is None else state.decode(conflict.existing.value)
        if existing is not None and step.is_known(existing, creation.request_id):
            return r.CreateScheduleResponse(conflict_token=state.conflict_token(existing))
        raise ScheduleAlreadyExists(
            f"there is a schedule {creation.schedule_id!r} in namespace {creation.namespace!r}; update it, delete it "
            "first, or use another id"
        )

    async def _begin(self, key: Key) -> None:
        try:
            await self._scheduler.work(key, Look())
        except Unavailable as error:
            log.info("Schedule %r begins later: %s", key.schedule_id, error)

    async def _admit(self, namespace: str, schedule: Schedule, search_attributes: Memo) -> None:
        """What is of another type than the namespace knows is refused here, and not when it acts (VI-07)."""
        action = schedule.action.start_workflow
        for values in (search_attributes, action.search_attributes if action is not None else {}):
            if values:
                await self._types.admit(namespace, values)

    async def describe(self, request: r.DescribeScheduleRequest) -> r.DescribeScheduleResponse:
        stored = await self._stored(Key(request.namespace, request.schedule_id))
        return describing.described(state.decode(stored.value), len(stored.value), self._clock.now())

    async def update(self, request: r.UpdateScheduleRequest) -> r.UpdateScheduleResponse:
        await self._admit(request.namespace, request.schedule, request.search_attributes or {})
        update = Update(
            schedule=request.schedule,
            conflict_token=request.conflict_token,
            memo=request.memo,
            search_attributes=request.search_attributes,
            request_id=request.request_id and f"update:{request.request_id}",
        )
        record = await self._worked(Key(request.namespace, request.schedule_id), update, looks=False)
        return r.UpdateScheduleResponse(conflict_token=state.conflict_token(record))

    async def patch(self, request: r.PatchScheduleRequest) -> r.PatchScheduleResponse:
        patch = Patch(patch=request.patch, request_id=request.request_id and f"patch:{request.request_id}")
        acts = request.patch.trigger_immediately is not None or bool(request.patch.backfill)
        record = await self._worked(Key(request.namespace, request.schedule_id), patch, looks=acts)
        return r.PatchScheduleResponse(conflict_token=state.conflict_token(record))

    async def _worked(self, key: Key, request: Update | Patch, *, looks: bool) -> ScheduleRecord:
        record = await self._scheduler.work(key, request, looks=looks)
        if record is None:
            raise _not_found(key)
        return record

    async def delete(self, request: r.DeleteScheduleRequest) -> r.DeleteScheduleResponse:
        key = Key(request.namespace, request.schedule_id)
        stored: ControlRecord | None = None
        for _ in range(_DELETE_ATTEMPTS):
            try:
                async with self._scheduler.alone(key):
                    stored = stored or await self._stored(key)
                    await self._store.delete(stored)
            except ControlConflict as conflict:
                stored = conflict.existing  # never one that was made anew: that is no conflict
                continue
            except StoreUnavailable as error:
                raise unavailable(error) from error
            return r.DeleteScheduleResponse()
        raise Unavailable(f"schedule {key.schedule_id!r} is being changed by others too fast; call again in a moment")

    async def list(self, request: r.ListSchedulesRequest) -> r.ListSchedulesResponse:
        """With a query, or of large schedules, a page may have fewer, or none, while there are more: it reads so much
        and no more."""
        size = request.page_size or _DEFAULT_PAGE
        left, room = max(size, _READ_FOR_A_PAGE) if request.query else size, _PAGE_BYTES
        after, more = request.next_page_token.decode(), False
        found: list[ScheduleListEntry] = []
        now = self._clock.now()
        try:
            meant = finding.filter_of(request.query, await self._known(request.namespace))
            async for stored in self._behind(request.namespace, after, min(left + 1, _READ_AT_ONCE)):
                record = state.decode(stored.value)
                is_meant = finding.is_meant(meant, record)
                more = left == 0 or room <= 0 or (is_meant and len(found) == size)
                if more:
                    break
                if is_meant:
                    found.append(describing.listed(record, now))
                after, left, room = stored.id, left - 1, room - len(stored.value)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return r.ListSchedulesResponse(schedules=tuple(found), next_page_token=after.encode() if more else b"")

    async def count(self, request: r.CountSchedulesRequest) -> r.CountSchedulesResponse:
        """Of so many schedules at a time; the token goes on."""
        left, room = _READ_FOR_A_COUNT, _COUNT_BYTES
        after, more = request.next_page_token.decode(), False
        counting = finding.Counting(request.query, await self._known(request.namespace))
        try:
            async for stored in self._behind(request.namespace, after, _READ_AT_ONCE):
                more = left == 0 or room <= 0
                if more:
                    break
                counting.add(stored.value)
                after, left, room = stored.id, left - 1, room - len(stored.value)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return r.CountSchedulesResponse(
            count=counting.count, groups=counting.groups, next_page_token=after.encode() if more else b""
        )

    async def _known(self, namespace: str) -> Mapping[str, ValueType]:
        try:
            return await self._types.known(namespace)
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def _behind(self, namespace: str, after: str, at_once: int) -> AsyncIterator[ControlRecord]:
        while True:
            records = await self._store.list(KIND, namespace, after=after, limit=at_once)
            for stored in records:
                yield stored
            if len(records) < at_once:
                return
            after = records[-1].id

    async def matching_times(self, request: r.ListScheduleMatchingTimesRequest) -> r.ListScheduleMatchingTimesResponse:
        which = request.spec or await self._spec(Key(request.namespace, request.schedule_id))
        if request.count_only:
            # So that both ends count.
            after = request.start_time - min(_INSTANT, request.start_time - _FIRST)
            count, reached = spec.count_times(which, after, request.end_time, Looks(spec.LOOKS_AT_ONCE))
            following = None if reached is None else reached + _INSTANT
            return r.ListScheduleMatchingTimesResponse(count=count, next_start_time=following)
        times: list[datetime] = []
        for time in spec.times_and_rests(which, request.start_time, request.end_time):
            if time is None:
                await asyncio.sleep(0)
            elif len(times) == limits.MAX_MATCHING_TIMES:
                return r.ListScheduleMatchingTimesResponse(start_times=tuple(times), next_start_time=time)
            else:
                times.append(time)
        return r.ListScheduleMatchingTimesResponse(start_times=tuple(times))

    async def _spec(self, key: Key) -> ScheduleSpec:
        return state.decode((await self._stored(key)).value).schedule.spec

    async def _stored(self, key: Key) -> ControlRecord:
        stored = await self._scheduler.read(key)
        if stored is None:
            raise _not_found(key)
        return stored


def _not_found(key: Key) -> NotFound:
    return NotFound(
        f"there is no such schedule as {key.schedule_id!r} in namespace {key.namespace!r}; check both, or create it "
        "first. One that has no actions left is deleted after a week."
    )
