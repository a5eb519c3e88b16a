"""Heartbeats of one attempt: throttled (AC-08), last details never lost (WC-07), answers turned into cancellation
(AC-19)."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from ..activity import ActivityCancellationDetails
from ..api.errors import ApiError, NotFound
from ..api.operations import RECORD_ACTIVITY_HEARTBEAT
from ..api.payloads import Payloads
from ..api.requests import RecordActivityHeartbeatRequest
from .engine_calls import EngineCalls

_RETRY_AFTER = 1.0
"""Seconds to the next try of a heartbeat that did not get through."""

_log = logging.getLogger("stepwell.worker")


class HeartbeatPolicy:
    """How far apart heartbeats are sent. ``default`` is for activities without a heartbeat timeout."""

    def __init__(self, maximum: timedelta, default: timedelta) -> None:
        self._maximum = maximum.total_seconds()
        self._default = default.total_seconds()

    def interval(self, heartbeat_timeout: timedelta | None) -> float:
        """Seconds: 0.8 of the timeout, never over the maximum."""
        wanted = heartbeat_timeout.total_seconds() * 0.8 if heartbeat_timeout else self._default
        return min(self._maximum, wanted)


class Heartbeats:
    """Made when an attempt reports for the first time. ``record`` may be called from any thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        calls: EngineCalls,
        request: Callable[[Payloads], RecordActivityHeartbeatRequest],
        cancel: Callable[[ActivityCancellationDetails], None],
        interval: float,
    ) -> None:
        self._loop = loop
        self._calls = calls
        self._request = request
        self._cancel = cancel
        self._interval = interval
        self.last: Payloads | None = None
        """What was reported last, sent or not."""
        self._unsent = False
        self._wake_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def record(self, details: Payloads, *, from_loop: bool) -> None:
        self.last = details
        self._unsent = True
        if from_loop:
            self._send_if_due()
        elif not self._wake_scheduled:
            self._wake_scheduled = True
            self._loop.call_soon_threadsafe(self._woken)

    def close(self) -> None:
        """The attempt ended; its outcome carries the last details. One that is on its way may still arrive."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _woken(self) -> None:
        self._wake_scheduled = False
        self._send_if_due()

    def _send_if_due(self) -> None:
        if self._closed or not self._unsent or self._timer is not None or self._sending is not None:
            return
        self._unsent = False
        self._sending = self._loop.create_task(self._send(self.last or ()))

    async def _send(self, details: Payloads) -> None:
        pause = self._interval
        try:
            answer = await self._calls.once(RECORD_ACTIVITY_HEARTBEAT, self._request(details))
        except NotFound:
            self._cancel(ActivityCancellationDetails(not_found=True))
            return
        except ApiError as error:
            self._unsent = True
            pause = min(pause, _RETRY_AFTER)
            _log.debug("Heartbeat not recorded, the next one will be tried: %s", error)
        else:
            if answer.cancel_requested or answer.paused or answer.reset:
                self._cancel(
                    ActivityCancellationDetails(
                        cancel_requested=answer.cancel_requested, paused=answer.paused, reset=answer.reset
                    )
                )
        self._sending = None
        if not self._closed:
            self._timer = self._loop.call_later(pause, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._send_if_due()
