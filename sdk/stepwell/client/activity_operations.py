"""What those who operate a workflow do to its pending activities: the methods that a workflow handle has for it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import ApiError
from ..api.operations import Operation
from .checked import checked
from .errors import RPCError

if TYPE_CHECKING:
    from .client import Client

Req = TypeVar("Req")


class ActivityOperations:
    """Each method takes one activity by ``id``, or all pending ones of a ``type``, and returns the ids of those that
    are as asked for now. Raises :class:`RPCError`, with code ``NOT_FOUND`` when none is pending (AC-25)."""

    _client: "Client"
    _id: str
    _run_id: str | None

    async def pause_activity(self, *, id: str = "", type: str = "", reason: str = "") -> tuple[str, ...]:
        """Begin no further attempt. One that runs may end; its heartbeat tells it, and stopping then costs no attempt.
        The overall deadline (``schedule_to_close_timeout``) runs on."""
        request = r.PauseActivityRequest(**self._named(id, type), reason=reason)
        return await self._operate(op.PAUSE_ACTIVITY, request)

    async def unpause_activity(
        self,
        *,
        id: str = "",
        type: str = "",
        reset_attempts: bool = False,
        reset_heartbeat: bool = False,
        jitter: timedelta | None = None,
    ) -> tuple[str, ...]:
        """Go on at once, whatever the backoff was; many activities within ``jitter``. One that is not paused stays as
        it is."""
        request = r.UnpauseActivityRequest(
            **self._named(id, type), reset_attempts=reset_attempts, reset_heartbeat=reset_heartbeat, jitter=jitter
        )
        return await self._operate(op.UNPAUSE_ACTIVITY, request)

    async def reset_activity(
        self,
        *,
        id: str = "",
        type: str = "",
        keep_paused: bool = False,
        reset_heartbeat: bool = False,
        restore_original_options: bool = False,
        jitter: timedelta | None = None,
    ) -> tuple[str, ...]:
        """Begin anew with attempt 1, at once; an attempt that runs is told by its heartbeat, and counts if it succeeds.
        ``reset_heartbeat`` forgets its progress."""
        request = r.ResetActivityRequest(
            **self._named(id, type),
            keep_paused=keep_paused,
            reset_heartbeat=reset_heartbeat,
            restore_original_options=restore_original_options,
            jitter=jitter,
        )
        return await self._operate(op.RESET_ACTIVITY, request)

    async def update_activity_options(
        self,
        *,
        id: str = "",
        type: str = "",
        task_queue: str = "",
        schedule_to_close_timeout: timedelta | None = None,
        schedule_to_start_timeout: timedelta | None = None,
        start_to_close_timeout: timedelta | None = None,
        heartbeat_timeout: timedelta | None = None,
        retry_initial_interval: timedelta | None = None,
        retry_backoff_coefficient: float | None = None,
        retry_maximum_interval: timedelta | None = None,
        retry_maximum_attempts: int | None = None,
        restore_original: bool = False,
    ) -> tuple[str, ...]:
        """Change what is given, from now on and for an attempt that runs; ``restore_original`` first goes back to what
        the workflow asked for (AC-26)."""
        options = r.ActivityOptionsChange(
            task_queue=task_queue,
            schedule_to_close_timeout=schedule_to_close_timeout,
            schedule_to_start_timeout=schedule_to_start_timeout,
            start_to_close_timeout=start_to_close_timeout,
            heartbeat_timeout=heartbeat_timeout,
            retry_initial_interval=retry_initial_interval,
            retry_backoff_coefficient=retry_backoff_coefficient,
            retry_maximum_interval=retry_maximum_interval,
            retry_maximum_attempts=retry_maximum_attempts,
            restore_original=restore_original,
        )
        request = r.UpdateActivityOptionsRequest(**self._named(id, type), options=options)
        return await self._operate(op.UPDATE_ACTIVITY_OPTIONS, request)

    def _named(self, id: str, type: str) -> dict[str, Any]:
        return {
            "namespace": self._client.namespace,
            "execution": WorkflowExecution(workflow_id=self._id, run_id=self._run_id or ""),
            "activity_id": id,
            "activity_type": type,
            "identity": self._client.identity,
        }

    async def _operate(self, operation: Operation[Req, r.ActivitiesChangedResponse], request: Req) -> tuple[str, ...]:
        try:
            return (await self._client.transport.call(operation, checked(request))).activity_ids
        except ApiError as error:
            raise RPCError(error) from error
