"""An activity: ``ScheduleActivityTask`` -> ActivityTaskScheduled -> (Started) -> Completed, Failed, TimedOut or Canceled.

The handle that workflow code awaits is the machine itself. Cancelling it (also by cancelling the task that awaits it) asks the
activity to stop, as its cancellation type says (AC-18); the awaiting code gets ``asyncio.CancelledError``.
"""

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...api.commands import RequestCancelActivityTask, ScheduleActivityTask
from ...api.events import ActivityTaskCancelRequested, ActivityTaskScheduled, EventAttributes
from ...api.payloads import Payloads
from ...converter.signatures import CallableSignature
from .command import Ask

if TYPE_CHECKING:
    from ..runtime import WorkflowRuntime

R = TypeVar("R")


class ActivityCancellationType(Enum):
    """What cancelling an activity does (AC-18)."""

    TRY_CANCEL = 0
    """Ask it to stop, and raise ``asyncio.CancelledError`` in the workflow at once."""
    WAIT_CANCELLATION_COMPLETED = 1
    """Ask it to stop, wait until it has ended, then raise ``asyncio.CancelledError``; the handle has how it ended."""
    ABANDON = 2
    """Let it run on, and raise ``asyncio.CancelledError`` in the workflow at once."""


class ActivityHandle(asyncio.Future[R], Ask, Generic[R]):
    """An activity that was asked for. Await it for its result; raises ``ActivityError`` when it failed."""

    def __init__(
        self,
        runtime: "WorkflowRuntime",
        command: ScheduleActivityTask,
        signature: CallableSignature,
        cancellation_type: ActivityCancellationType,
    ) -> None:
        super().__init__(loop=runtime.loop)
        self._runtime = runtime
        self._command = command
        self._signature = signature
        self._cancellation_type = cancellation_type
        self._cancel_requested = False
        self._cancellation: ActivityCancellation | None = None
        self._scheduled_event_id = 0
        self._hash = runtime.loop.next_hash()
        self.dropped = False

    def __hash__(self) -> int:
        return self._hash

    @property
    def id(self) -> str:
        """The activity id, unique among the run's pending activities."""
        return self._command.activity_id

    @property
    def activity_type(self) -> str:
        return self._command.activity_type

    @property
    def scheduled_event_id(self) -> int:
        """Event id of its ActivityTaskScheduled; 0 until the workflow task that asked for it is recorded."""
        return self._scheduled_event_id

    def cancel(self, msg: Any | None = None) -> bool:
        """Ask the activity to stop. Returns False when it has ended, or when its end is waited for."""
        if self.done():
            return False
        if self._runtime.evicting:
            return super().cancel(msg=msg)
        if self._scheduled_event_id == 0:
            self._runtime.drop(self)
            return super().cancel(msg=msg)
        waits = self._cancellation_type is ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
        if not self._cancel_requested and self._cancellation_type is not ActivityCancellationType.ABANDON:
            self._cancel_requested = True
            self._cancellation = ActivityCancellation(self._scheduled_event_id)
            self._runtime.ask(self._cancellation)
        return False if waits else super().cancel(msg=msg)

    def end_is_recorded(self) -> None:
        """Its end came in: asking it to stop in the same workflow task (a cancelled run is told first) is too late."""
        if self._cancellation is not None:
            self._cancellation.dropped = True

    def ended_canceled(self) -> None:
        """It ended by cancellation."""
        if not self.done():
            super().cancel()

    def ended(self, payloads: Any) -> None:
        """It ended well."""
        if self.done():
            return
        try:
            self.set_result(self._signature.decode_result(self._runtime.payload_converter, payloads))
        except Exception as error:  # also of a user's own converter; raised where the result is awaited
            self.set_exception(error)

    def failed(self, error: BaseException) -> None:
        """It ended badly."""
        if not self.done():
            self.set_exception(error)
            if self._cancel_requested:
                self._log_traceback = False

    # --- as a command ----------------------------------------------------------------------------------------------

    def command(self) -> ScheduleActivityTask:
        return self._command

    def arguments(self) -> Payloads | None:
        return self._command.input

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is ActivityTaskScheduled
            and recorded.activity_type == self._command.activity_type
            and recorded.activity_id == self._command.activity_id
        )

    def describe(self) -> str:
        command = self._command
        return f"ScheduleActivityTask (activity_type {command.activity_type!r}, activity_id {command.activity_id!r})"

    def sent(self, event_id: int) -> None:
        self._scheduled_event_id = event_id
        self._runtime.activities[event_id] = self


class ActivityCancellation(Ask):
    """Asks an activity that was scheduled in an earlier workflow task to stop."""

    __slots__ = ("dropped", "scheduled_event_id")

    def __init__(self, scheduled_event_id: int) -> None:
        self.scheduled_event_id = scheduled_event_id
        self.dropped = False

    def command(self) -> RequestCancelActivityTask:
        return RequestCancelActivityTask(scheduled_event_id=self.scheduled_event_id)

    def matches(self, recorded: EventAttributes) -> bool:
        return type(recorded) is ActivityTaskCancelRequested and recorded.scheduled_event_id == self.scheduled_event_id

    def describe(self) -> str:
        return f"RequestCancelActivityTask (scheduled_event_id {self.scheduled_event_id})"
