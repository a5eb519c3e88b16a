"""The worker's half of sessions (AC-29): the activity that holds one, and the two queues that a session worker serves
beside its own: that of sessions which wait for a worker, and one that is this worker's alone.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from .. import activity
from ..exceptions import ApplicationError, ApplicationErrorCategory
from ..workflow.session_names import SESSION_END, SESSION_HOLD, SESSION_SIGNAL, session_queue, worker_queue

W = TypeVar("W")

_BEATS = 3
"""Heartbeats within a heartbeat timeout; the worker sends as many of them as are needed."""


class HeldSessions:
    """Of one worker. Its activities run on the worker's event loop."""

    def __init__(self, task_queue: str) -> None:
        """``task_queue`` is the worker's alone."""
        self._task_queue = task_queue
        self._open: dict[str, asyncio.Event] = {}

    def __len__(self) -> int:
        return len(self._open)

    @activity.defn(name=SESSION_HOLD)
    async def hold(self) -> None:
        """Lasts as long as the session; its failure is the session's."""
        info = activity.info()
        if info.attempt > 1:
            raise _broken("it was begun on another worker")  # whose engine could not say so in time
        over = self._open[info.idempotency_key] = asyncio.Event()
        shutdown = asyncio.ensure_future(activity.wait_for_worker_shutdown())
        ended = asyncio.ensure_future(over.wait())
        try:
            workflow = activity.client().get_workflow_handle(info.workflow_id, run_id=info.workflow_run_id)
            await workflow.signal(f"{SESSION_SIGNAL} {info.activity_id}", self._task_queue)
            assert info.heartbeat_timeout is not None
            beat = info.heartbeat_timeout.total_seconds() / _BEATS
            while not ended.done():
                activity.heartbeat()
                await asyncio.wait([ended, shutdown], timeout=beat, return_when=asyncio.FIRST_COMPLETED)
                if shutdown.done() and not ended.done():
                    raise _broken("its worker shuts down")
        finally:
            shutdown.cancel()
            ended.cancel()
            del self._open[info.idempotency_key]

    @activity.defn(name=SESSION_END)
    async def end(self, activity_id: str) -> None:
        """Of a session of this activity's own run. Does nothing when it has ended."""
        info = activity.info()
        over = self._open.get(f"{info.workflow_id}/{info.workflow_run_id}/{activity_id}")
        if over is not None:
            over.set()


def _broken(why: str) -> ApplicationError:
    return ApplicationError(
        f"The session ended: {why}", type="SessionFailed", non_retryable=True, category=ApplicationErrorCategory.BENIGN
    )


def session_workers(
    make: Callable[..., W],
    client: Any,
    task_queue: str,
    worker_key: str,
    most: int,
    activities: Sequence[Callable[..., Any]],
    *,
    common: Mapping[str, Any],
    own: Mapping[str, Any],
) -> list[W]:
    """The workers beside a worker that holds up to ``most`` sessions: one for its own queue, with all ``activities``,
    and one whose slots are the sessions. That of the queue comes first, since sessions must find it."""
    if not most:
        return []
    queue = worker_queue(task_queue, worker_key)
    held = HeldSessions(queue)
    return [
        make(client, task_queue=queue, activities=[*activities, held.end], **common, **own),
        make(
            client,
            task_queue=session_queue(task_queue),
            activities=[held.hold],
            max_concurrent_activities=most,
            max_concurrent_activity_task_polls=1,
            **common,
        ),
    ]
