"""Sessions: several activities on one worker, while it is there (AC-29).

A session is held by an activity of the SDK's own that runs on one of the workers of the task queue for as long as the
session lasts: its slot bounds how many there are, its heartbeat shows that the worker lives, and its end is the
session's. It says by a signal which task queue is that worker's alone.
"""

import asyncio
from datetime import timedelta
from types import TracebackType

from ..common import RetryPolicy
from ..exceptions import ActivityError, SessionFailedError
from ..replay.machines.activity import ActivityHandle
from ..replay.runtime import current_runtime
from .activities import start_activity
from .session_names import SESSION_END, SESSION_HOLD, SESSION_SIGNAL, session_queue
from .signals import set_signal_handler
from .timers import wait_condition

_ONCE = RetryPolicy(maximum_attempts=1)
_END_WITHIN = timedelta(seconds=10)
"""For telling the worker that the session is over; else it learns so from a heartbeat."""


class Session:
    """``async with workflow.session() as session:``, and inside it activities with ``task_queue=session.task_queue``.

    When the session breaks, the body is cancelled where it waits, and the block raises ``SessionFailedError``.
    """

    def __init__(
        self,
        task_queue: str | None,
        execution_timeout: timedelta,
        creation_timeout: timedelta | None,
        heartbeat_timeout: timedelta,
    ) -> None:
        self._of = task_queue
        self._execution_timeout = execution_timeout
        self._creation_timeout = creation_timeout
        self._heartbeat_timeout = heartbeat_timeout
        self._queue = ""
        self._hold: ActivityHandle[None] | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelled_body = False
        self._ended = False

    @property
    def task_queue(self) -> str:
        """That of the session's worker alone. Raises ``RuntimeError`` before the session has begun."""
        if not self._queue:
            raise RuntimeError("the session has not begun; use it as `async with workflow.session() as session:`")
        return self._queue

    @property
    def is_broken(self) -> bool:
        """Whether the worker is gone, or the session's time is over."""
        return self._hold is not None and self._hold.done() and not self._ended

    async def __aenter__(self) -> "Session":
        if self._hold is not None:
            raise RuntimeError("a session is for one block; make another one")
        hold = self._hold = start_activity(
            SESSION_HOLD,
            result_type=type(None),
            task_queue=session_queue(self._of or current_runtime().default_task_queue),
            start_to_close_timeout=self._execution_timeout,
            schedule_to_start_timeout=self._creation_timeout,
            heartbeat_timeout=self._heartbeat_timeout,
            retry_policy=_ONCE,
        )
        hold.add_done_callback(self._hold_ended)
        signal = f"{SESSION_SIGNAL} {hold.id}"
        set_signal_handler(signal, self._begun)
        try:
            await wait_condition(lambda: bool(self._queue) or hold.done())
        except asyncio.CancelledError:
            hold.cancel()
            raise
        finally:
            set_signal_handler(signal, None)
        if hold.done():
            raise self._failure("could not begin")
        self._task = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        assert self._hold is not None
        if not self._hold.done():
            self._ended = True
            await self._end(self._hold)
        elif self._cancelled_body and task is not None and task.uncancel() == 0:
            if isinstance(error, asyncio.CancelledError | ActivityError):
                raise self._failure("broke") from error

    def _begun(self, task_queue: str) -> None:
        self._queue = task_queue

    def _hold_ended(self, hold: "asyncio.Future[None]") -> None:
        if not hold.cancelled():
            hold.exception()  # it is looked at where the block ends
        if self._task is not None:
            self._cancelled_body = self._task.cancel()

    async def _end(self, hold: "ActivityHandle[None]") -> None:
        """The slot is free at once. A worker that does not answer is told by the answer to its heartbeat."""
        end = start_activity(
            SESSION_END,
            hold.id,
            task_queue=self._queue,
            schedule_to_close_timeout=_END_WITHIN,
        )
        try:
            await end
        except ActivityError:
            hold.cancel()
        except asyncio.CancelledError:
            hold.cancel()
            raise

    def _failure(self, what: str) -> SessionFailedError:
        assert self._hold is not None
        cause = None if self._hold.cancelled() else self._hold.exception()
        why = f": {cause.cause or cause}" if isinstance(cause, ActivityError) else ""
        failure = SessionFailedError(f"The session {what}{why}")
        failure.__cause__ = cause
        return failure


def session(
    *,
    task_queue: str | None = None,
    execution_timeout: timedelta = timedelta(hours=24),
    creation_timeout: timedelta | None = timedelta(minutes=1),
    heartbeat_timeout: timedelta = timedelta(seconds=20),
) -> Session:
    """Activities on one worker: one with ``max_concurrent_sessions`` on ``task_queue``, the workflow's own by default.

    ``creation_timeout`` is how long to wait for one that has room, without limit when None; ``execution_timeout`` how
    long the session may last; within ``heartbeat_timeout`` it is noticed that its worker is gone. Beginning raises
    ``SessionFailedError`` when there is no such worker in time, and the block does when the session breaks: begin
    another one then, and do again what the lost worker kept.
    """
    return Session(task_queue, execution_timeout, creation_timeout, heartbeat_timeout)
