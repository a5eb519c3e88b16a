"""A timer: ``StartTimer`` -> TimerStarted -> TimerFired, or ``CancelTimer`` -> TimerCanceled."""

import asyncio
from datetime import timedelta

from ...api.commands import CancelTimer, StartTimer
from ...api.common import UserMetadata
from ...api.events import EventAttributes, TimerCanceled, TimerStarted
from .command import Ask


class TimerMachine(Ask):
    """Lives from ``start`` until it fires or is cancelled."""

    __slots__ = ("dropped", "handle", "length", "recorded", "timer_id", "user_metadata")

    def __init__(
        self, timer_id: str, length: timedelta, handle: asyncio.TimerHandle, user_metadata: UserMetadata | None = None
    ) -> None:
        self.timer_id = timer_id
        self.length = length
        self.handle = handle
        self.user_metadata = user_metadata
        self.recorded = False
        self.dropped = False

    def command(self) -> StartTimer:
        return StartTimer(timer_id=self.timer_id, start_to_fire_timeout=self.length, user_metadata=self.user_metadata)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is TimerStarted and recorded.timer_id == self.timer_id

    def describe(self) -> str:
        return f"StartTimer (timer_id {self.timer_id!r})"

    def sent(self, event_id: int) -> None:
        self.recorded = True


class TimerCancellation(Ask):
    """Of a timer that was started in an earlier workflow task."""

    __slots__ = ("timer_id",)

    def __init__(self, timer_id: str) -> None:
        self.timer_id = timer_id

    def command(self) -> CancelTimer:
        return CancelTimer(timer_id=self.timer_id)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is TimerCanceled and recorded.timer_id == self.timer_id

    def describe(self) -> str:
        return f"CancelTimer (timer_id {self.timer_id!r})"
