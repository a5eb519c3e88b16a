"""What those who operate a stand-alone activity do to it: the methods that its handle has for it."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from .request_ids import new_request_id

if TYPE_CHECKING:
    from .client import Client


class StandaloneActivityOperations:
    """All methods raise :class:`RPCError`: code ``NOT_FOUND`` when there is no such activity, or it is not pending any
    more and the method needs that."""

    def __init__(self, client: "Client", id: str, run_id: str | None) -> None:
        self._client = client
        self._call = client._root.call
        self._id = id
        self._run_id = run_id

    @property
    def activity_id(self) -> str:
        return self._id

    @property
    def activity_run_id(self) -> str | None:
        """None: whatever run is the newest."""
        return self._run_id

    async def cancel(self, *, reason: str | None = None) -> None:
        """Ask it to stop. One that no worker has is over at once; of one that has ended nothing changes."""
        request = r.CancelActivityRequest(**self._who(), reason=reason or "", request_id=new_request_id())
        await self._call(op.CANCEL_ACTIVITY, request)

    async def terminate(self, *, reason: str | None = None) -> None:
        """End it at once; what its worker says then is refused. Refused with ``FAILED_PRECONDITION`` when it has
        ended."""
        await self._call(op.TERMINATE_ACTIVITY, r.TerminateActivityRequest(**self._who(), reason=reason or ""))

    async def delete(self) -> None:
        """Terminate it if it runs, and erase all that is known of it."""
        await self._call(op.DELETE_ACTIVITY, r.DeleteActivityRequest(**self._who()))

    async def pause(self, *, reason: str = "") -> None:
        """Begin no further attempt. One that runs may end; its heartbeat tells it."""
        await self._call(op.PAUSE_STANDALONE_ACTIVITY, r.PauseActivityRequest(**self._named(), reason=reason))

    async def unpause(
        self, *, reset_attempts: bool = False, reset_heartbeat: bool = False, jitter: timedelta | None = None
    ) -> None:
        """Go on at once, whatever the backoff was, or within ``jitter``."""
        request = r.UnpauseActivityRequest(
            **self._named(), reset_attempts=reset_attempts, reset_heartbeat=reset_heartbeat, jitter=jitter
        )
        await self._call(op.UNPAUSE_STANDALONE_ACTIVITY, request)

    async def reset(
        self,
        *,
        keep_paused: bool = False,
        reset_heartbeat: bool = False,
        restore_original_options: bool = False,
        jitter: timedelta | None = None,
    ) -> None:
        """Begin anew with attempt 1."""
        request = r.ResetActivityRequest(
            **self._named(),
            keep_paused=keep_paused,
            reset_heartbeat=reset_heartbeat,
            restore_original_options=restore_original_options,
            jitter=jitter,
        )
        await self._call(op.RESET_STANDALONE_ACTIVITY, request)

    async def update_options(self, **options: Any) -> None:
        """The fields of ``stepwell.api.requests.ActivityOptionsChange``; what is not given stays as it is."""
        request = r.UpdateActivityOptionsRequest(**self._named(), options=r.ActivityOptionsChange(**options))
        await self._call(op.UPDATE_STANDALONE_ACTIVITY_OPTIONS, request)

    def _who(self) -> dict[str, Any]:
        return {
            "namespace": self._client.namespace,
            "activity_id": self._id,
            "run_id": self._run_id or "",
            "identity": self._client.identity,
        }

    def _named(self) -> dict[str, Any]:
        return {
            "namespace": self._client.namespace,
            "execution": WorkflowExecution(workflow_id="", run_id=self._run_id or ""),
            "activity_id": self._id,
            "identity": self._client.identity,
        }
