"""Fires deadlines that come from the delay queue as messages.

A message is deleted only when its deadline needs no more. One that comes early (delays are whole seconds, and clocks
differ), that cannot be fired now, or whose write may still come goes back to the queue for a while; one that cannot be
fired for minutes is armed anew in the table, so that no limit of deliveries ends it.
"""

import logging

from ..common.clock import Clock
from . import buckets
from .buckets import TimerRow
from .due_firings import put_off
from .messages import BadMessage, decode
from .ports import DelayQueue, Fire, OnLag, TimerBuckets, ignore_lag

log = logging.getLogger(__name__)

TRIES = 8
"""Deliveries until a deadline that cannot be fired is put off: two to three minutes."""

KEPT_TRIES = 7
"""Deliveries, by whose pauses a minute is over, until one without a write is dropped that was armed by a slow clock."""

_LONGEST_PAUSE = 60


class Postponed(Exception):
    """The message comes again: it must not be deleted."""


class FiringFailed(Postponed):
    """For it could not be fired, which is nothing that happens in the course of work."""


class DueMessages:
    def __init__(
        self, rows: TimerBuckets, queue: DelayQueue, clock: Clock, fire: Fire, on_lag: OnLag = ignore_lag
    ) -> None:
        self._rows = rows
        self._queue = queue
        self._clock = clock
        self._fire = fire
        self._on_lag = on_lag

    async def handle(self, body: str, receipt: str, deliveries: int, message_id: str) -> None:
        """Returns when the message can be deleted. Raises Postponed, or what keeps it from being handled at all."""
        try:
            row = decode(body)
        except BadMessage as error:
            # The table has the deadline; whoever sent this knows what it was.
            log.error("Message %s of the timer queue is dropped: %s", message_id, error)
            return
        now_ms = buckets.to_ms(self._clock.now())
        if row.place_ms > now_ms:
            await self._again(row, receipt, -(-(row.place_ms - now_ms) // 1_000), "it came early")
        if deliveries == 1:
            self._on_lag((now_ms - row.place_ms) / 1_000)
        try:
            matched = await self._fire(row)
        except Exception as error:
            if deliveries < TRIES:
                log.warning("The deadline of %r is fired again in a moment", row.key, exc_info=error)
                await self._again(row, receipt, _pause(deliveries), "it could not be fired", FiringFailed)
            await self._rows.put(put_off(row, buckets.to_ms(self._clock.now())))
            log.error("The deadline of %r cannot be fired; it is tried again every few minutes", row.key)
            return
        now_ms = buckets.to_ms(self._clock.now())
        age_ms, may_come = now_ms - row.armed_ms, buckets.young_for(row.armed_ms, now_ms) > 0
        if not matched and (age_ms < buckets.YOUNG_MS or (may_come and deliveries < KEPT_TRIES)):
            await self._again(row, receipt, _pause(deliveries), "the write that it awaits is not there yet")

    async def _again(
        self, row: TimerRow, receipt: str, seconds: int, why: str, kind: type[Postponed] = Postponed
    ) -> None:
        await self._queue.postpone(receipt, seconds)
        raise kind(f"the deadline of {row.key!r} comes again in {seconds} s: {why}")


def _pause(deliveries: int) -> int:
    return int(min(2 ** min(deliveries - 1, 10), _LONGEST_PAUSE))
