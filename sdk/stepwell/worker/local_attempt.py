"""One attempt of a local activity: an attempt as any other, but that nobody outside of this worker knows of it."""

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..activity import ActivityDefinition, Info
from ..api.payloads import Payloads
from ..api.requests import ActivityOutcome, ActivityTask
from ..replay.machines.local_activity import LocalActivityCall
from .attempt import Attempt
from .cached_run import CachedRun
from .heartbeats import Heartbeats

if TYPE_CHECKING:
    from .activity_worker import ActivityWorker


class LocalAttempt(Attempt):
    """Its caller keeps the time limits, and takes the outcome."""

    __slots__ = ()
    is_local = True

    def __init__(self, worker: "ActivityWorker", task: ActivityTask, definition: ActivityDefinition) -> None:
        super().__init__(worker, task, definition, _nobody)

    def info(self) -> Info:
        return replace(super().info(), is_local=True)

    def heartbeats(self) -> Heartbeats:
        if self._heartbeats is None:
            self._heartbeats = _KeptHere(self.worker.loop, self.worker.calls, self._heartbeat_request, self.cancel, 0)
        return self._heartbeats

    def _start_timer(self) -> None:
        """See the class."""


class _KeptHere(Heartbeats):
    """A local activity does not heartbeat: there is nobody to tell. Saying so would break code that runs both ways."""

    def record(self, details: Payloads, *, from_loop: bool) -> None:
        self.last = details


async def _nobody(_: ActivityOutcome) -> Attempt | None:
    return None


def local_task(
    cached: CachedRun, call: LocalActivityCall, attempt: int, task_queue: str, now: datetime
) -> ActivityTask:
    """What a poll would have given for it."""
    return ActivityTask(
        task_token=b"",
        execution=cached.execution,
        workflow_type=cached.workflow_type,
        activity_id=call.activity_id,
        activity_type=call.activity_type,
        task_queue=task_queue,
        headers=call.headers,
        input=call.input,
        attempt=attempt,
        scheduled_time=call.scheduled_time,
        current_attempt_scheduled_time=now,
        started_time=now,
        schedule_to_close_timeout=call.schedule_to_close_timeout,
        start_to_close_timeout=call.start_to_close_timeout,
        retry_policy=call.retry_policy,
    )
