"""Tells the callbacks of a chain of runs how it ended, at least once (LC-10).

Theory of operation. The close of the chain's last run owes the news, as to a parent (``machines/parent_close``), under
the id of a wake-up. ``ended`` takes the news in: it writes a record of the control store with all that is to be posted,
and its first wake-up; only then the run owes nothing more. A wake-up posts what is due, records what came of it and
arms the next. A death between a post and its record means that it is posted again; receivers know it by its id.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from stepwell.api.callbacks import CallbackInfo
from stepwell.api.enums import CallbackForm

from ..common.clock import Clock
from ..common.control import ControlConflict, ControlRecord, ControlStore
from . import callback_records as records
from .answers import ChildClosed
from .callback_addresses import Address, is_allowed
from .callback_nexus import Message, message
from .callback_records import KIND, Attempt, Delivery
from .commit import ExecutionKey
from .executions import unavailable
from .outside_runs import OutsideRuns
from .ports import StoreUnavailable

log = logging.getLogger(__name__)

AT_ONCE = 32
"""Wake-ups of one process that post at the same time: slow receivers must not hold up other deadlines."""

_IN_A_MOMENT = timedelta(seconds=1)
ID_HEADER = "Stepwell-Callback-Id"


class SendFailed(Exception):
    """There was no answer."""


class Sender(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer; redirects are not followed. Raises SendFailed, within some seconds."""
        ...


class Callbacks:
    """``retention``: of a namespace."""

    def __init__(
        self,
        store: ControlStore,
        runs: OutsideRuns,
        sender: Sender,
        addresses: Sequence[Address],
        clock: Clock,
        retention: Callable[[str], timedelta],
    ) -> None:
        self._store = store
        self._runs = runs
        self._sender = sender
        self._addresses = addresses
        self._clock = clock
        self._retention = retention
        self._posting = 0

    async def ended(self, namespace: str, id: str, ends: Sequence[ChildClosed]) -> None:
        """News of the run ``id``. What it raises leaves them owed."""
        try:
            for end in ends:
                if await self._store.get(KIND, namespace, id) is not None:
                    return
                state = await self._runs.run_state(ExecutionKey(namespace, end.workflow_id), id)
                if state is None or not state.callbacks:
                    return
                now = self._clock.now()
                value = records.encode(records.owed(state, end.close, now))
                await self._store.put(ControlRecord(KIND, namespace, id, 1, value), arm=now)
        except ControlConflict:
            return  # another process has taken them in
        except StoreUnavailable as error:
            raise unavailable(error) from error

    async def woken(self, namespace: str, id: str, due_at: datetime) -> None:
        record = await self._store.get(KIND, namespace, id)
        if record is None:
            return
        delivery, now = records.decode(record.value), max(self._clock.now(), due_at)
        try:
            if delivery.kept_until is not None:
                if now >= delivery.kept_until:
                    await self._store.delete(record)
            elif records.due(delivery, now):
                await self._post(record, delivery, now)
        except ControlConflict:
            log.info("Another process posts the callbacks of run %s as well", id)  # and has armed its next wake-up

    async def infos(self, namespace: str, run_id: str) -> tuple[CallbackInfo, ...]:
        """Of a run that has ended; empty when they are not taken in yet, or kept no longer. Raises Unavailable."""
        try:
            record = await self._store.get(KIND, namespace, run_id)
        except StoreUnavailable as error:
            raise unavailable(error) from error
        return () if record is None else records.infos(records.decode(record.value).told)

    async def _post(self, record: ControlRecord, delivery: Delivery, now: datetime) -> None:
        """Raises ControlConflict."""
        if self._posting >= AT_ONCE:
            later = record._replace(version=record.version + 1)
            await self._store.put(later, arm=now + _IN_A_MOMENT)
            return
        self._posting += 1
        try:
            due = records.due(delivery, now)
            attempts = await asyncio.gather(*[self._attempt(record.id, delivery, index) for index in due])
        finally:
            self._posting -= 1
        now = max(now, self._clock.now())
        after = records.attempted(
            delivery, dict(zip(due, attempts, strict=True)), now, self._retention(record.namespace)
        )
        changed = record._replace(version=record.version + 1, value=records.encode(after))
        await self._store.put(changed, arm=records.wakes_at(after))

    async def _attempt(self, run_id: str, delivery: Delivery, index: int) -> Attempt:
        callback = delivery.told[index].callback
        if not is_allowed(callback.url, self._addresses):
            return Attempt(
                failure="its address is not among those that this installation lets callbacks to", final=True
            )
        made: Message | None = Message({"Content-Type": "application/json"}, delivery.body)
        if callback.form is CallbackForm.NEXUS:
            made = message(records.body_of(delivery.body))
        if made is None:
            return Attempt(
                failure="how the run ended is too large to be told, and Nexus has no other way to say it; read the run",
                final=True,
            )
        headers = {**callback.headers, **made.headers, ID_HEADER: f"{run_id}/{index}"}
        try:
            return Attempt(status=await self._sender.post(callback.url, headers, made.body))
        except SendFailed as failed:
            return Attempt(failure=str(failed))
