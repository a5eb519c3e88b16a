"""An activity: ``ScheduleActivityTask`` -> ActivityTaskScheduled -> (Started) -> Completed, Failed, TimedOut or
Canceled.

Workflow code holds the handle. Cancelling it (also by cancelling the task that awaits it) asks the activity to stop, as
its cancellation type says (AC-18); the awaiting code gets ``asyncio.CancelledError``.
"""

import asyncio
from abc import ABC, abstractmethod
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from ...api.commands import RequestCancelActivityTask, ScheduleActivityTask
from ...api.events import ActivityTaskCancelRequested, ActivityTaskScheduled, EventAttributes
from ...api.payloads import Payloads
from ...converter.signatures import CallableSignature
from .command import Ask

if TYPE_CHECKING:
    from ..loop import DeterministicLoop
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


class ActivityHandle(asyncio.Future[R]):
    """An activity that was asked for. Await it for its result; raises ``ActivityError`` when it failed."""

    def __init__(self, machine: "AwaitedActivity", loop: "DeterministicLoop") -> None:
        super().__init__(loop=loop)
        self._machine = machine
        self._hash = loop.next_hash()

    def __hash__(self) -> int:
        return self._hash

    @property
    def id(self) -> str:
        """The activity id, unique among the run's pending activities."""
        return self._machine.activity_id

    @property
    def activity_type(self) -> str:
        """The name it was asked for by."""
        return self._machine.activity_type

    def cancel(self, msg: Any | None = None) -> bool:
        """Ask the activity to stop. Returns False when it has ended, or when its end is waited for."""
        if self.done() or not self._machine.cancel():
            return False
        return super().cancel(msg=msg)

    def _end_canceled(self) -> None:
        super().cancel()


class AwaitedActivity(ABC):
    """What workflow code waits for by a handle, wherever it runs."""

    __slots__ = ("_runtime", "_signature", "activity_id", "activity_type", "handle")

    def __init__(
        self, runtime: "WorkflowRuntime", activity_id: str, activity_type: str, signature: CallableSignature
    ) -> None:
        self._runtime = runtime
        self._signature = signature
        self.activity_id = activity_id
        self.activity_type = activity_type
        self.handle: ActivityHandle[Any] = ActivityHandle(self, runtime.loop)

    @abstractmethod
    def cancel(self) -> bool:
        """Ask it to stop, once. True when the awaiting code is not to wait for its end."""

    @property
    @abstractmethod
    def asked_to_stop(self) -> bool: ...

    def canceled(self) -> None:
        """It ended by cancellation."""
        if not self.handle.done():
            self.handle._end_canceled()

    def completed(self, payloads: Payloads) -> None:
        """It ended well. A result that does not fit is raised where it is awaited."""
        if self.handle.done():
            return
        try:
            self.handle.set_result(self._signature.decode_result(self._runtime.payload_converter, payloads))
        except Exception as error:  # also of a user's own converter
            self.handle.set_exception(error)

    def failed(self, error: BaseException) -> None:
        """It ended badly."""
        if not self.handle.done():
            self.handle.set_exception(error)
            if self.asked_to_stop:
                self.handle._log_traceback = False

    def release(self) -> None:
        """It has ended: let go of the handle, so that the two are freed without waiting for the garbage collector."""
        del self.handle


class ActivityMachine(AwaitedActivity, Ask):
    """What is known of one activity."""

    __slots__ = ("_cancellation", "_cancellation_type", "dropped", "scheduled_event_id", "scheduling")

    def __init__(
        self,
        runtime: "WorkflowRuntime",
        scheduling: ScheduleActivityTask,
        signature: CallableSignature,
        cancellation_type: ActivityCancellationType,
    ) -> None:
        super().__init__(runtime, scheduling.activity_id, scheduling.activity_type, signature)
        self.scheduling = scheduling
        self._cancellation_type = cancellation_type
        self._cancellation: ActivityCancellation | None = None
        self.scheduled_event_id = 0
        """Of its ActivityTaskScheduled; 0 until the workflow task that asked for it is recorded."""
        self.dropped = False

    def cancel(self) -> bool:
        if self._runtime.evicting:
            return True
        if self.scheduled_event_id == 0:
            self._runtime.drop(self)
            return True
        if self._cancellation is None and self._cancellation_type is not ActivityCancellationType.ABANDON:
            self._cancellation = ActivityCancellation(self.scheduled_event_id)
            self._runtime.ask(self._cancellation)
        return self._cancellation_type is not ActivityCancellationType.WAIT_CANCELLATION_COMPLETED

    @property
    def asked_to_stop(self) -> bool:
        return self._cancellation is not None

    def end_is_recorded(self) -> None:
        """Its end came in: asking it to stop in the same workflow task is too late."""
        if self._cancellation is not None:
            self._cancellation.dropped = True

    # --- as a command ----------------------------------------------------------------------------------------------

    def command(self) -> ScheduleActivityTask:
        return self.scheduling

    def arguments(self) -> Payloads | None:
        return self.scheduling.input

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is ActivityTaskScheduled
            and recorded.activity_type == self.scheduling.activity_type
            and recorded.activity_id == self.scheduling.activity_id
        )

    def describe(self) -> str:
        asked = self.scheduling
        return f"ScheduleActivityTask (activity_type {asked.activity_type!r}, activity_id {asked.activity_id!r})"

    def sent(self, event_id: int) -> None:
        self.scheduled_event_id = event_id
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
