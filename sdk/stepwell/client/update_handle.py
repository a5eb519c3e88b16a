"""One update, as its sender sees it."""

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Generic, TypeVar

from ..api import operations as op
from ..api.common import WorkflowExecution
from ..api.limits import POLL_TIMEOUT
from ..api.requests import PollWorkflowUpdateRequest
from ..api.updates import UpdateOutcome
from ..converter.signatures import CallableSignature
from .errors import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from .pacing import LONGEST_PAUSE, Pace

if TYPE_CHECKING:
    from .client import Client

R_co = TypeVar("R_co", covariant=True)


class UpdateClock:
    """How long a call about an update may still take; it is one wait for the caller, and several calls."""

    def __init__(self, update_id: str, rpc_timeout: timedelta | None) -> None:
        if rpc_timeout is not None and not isinstance(rpc_timeout, timedelta):
            raise TypeError(
                f"rpc_timeout must be a timedelta, not {rpc_timeout!r}; write timedelta(seconds=…), or leave it out"
            )
        self._update_id = update_id
        self._ends = None if rpc_timeout is None else time.monotonic() + rpc_timeout.total_seconds()
        self._pace: Pace | None = None

    async def next_wait(self) -> timedelta:
        """What the next call may wait. Raises :class:`WorkflowUpdateRPCTimeoutOrCancelledError` when the time is
        over."""
        if self._pace is None:
            self._pace = Pace()
        else:
            await self._pace.came_empty(self._left())
        self._pace.asking()
        if self._ends is None:
            return POLL_TIMEOUT
        left = self._left()
        if left <= 0:
            raise WorkflowUpdateRPCTimeoutOrCancelledError(
                f"update {self._update_id!r} did not come so far within rpc_timeout; it goes on all the same. Ask for "
                "it with get_update_handle and its id"
            )
        return min(POLL_TIMEOUT, timedelta(seconds=left))

    def _left(self) -> float:
        return LONGEST_PAUSE if self._ends is None else max(self._ends - time.monotonic(), 0.0)


class WorkflowUpdateHandle(Generic[R_co]):
    """Made by ``WorkflowHandle.start_update`` and ``WorkflowHandle.get_update_handle``."""

    def __init__(
        self,
        client: "Client",
        id: str,
        workflow_id: str,
        *,
        workflow_run_id: str | None = None,
        signature: CallableSignature,
        known_outcome: UpdateOutcome | None = None,
    ) -> None:
        self._client = client
        self._id = id
        self._workflow_id = workflow_id
        self._workflow_run_id = workflow_run_id
        self._signature = signature
        self._known_outcome = known_outcome

    def __repr__(self) -> str:
        return f"<WorkflowUpdateHandle {self._id!r} of {self._workflow_id!r}>"

    @property
    def id(self) -> str:
        """The update's id: the same update for everybody who sends or asks for it."""
        return self._id

    @property
    def workflow_id(self) -> str:
        return self._workflow_id

    @property
    def workflow_run_id(self) -> str | None:
        """The run that the update was sent to; None means the one that is current."""
        return self._workflow_run_id

    async def result(self, *, rpc_timeout: timedelta | None = None) -> R_co:
        """Wait for the end and return the result.

        Raises :class:`WorkflowUpdateFailedError` when the update was rejected or failed, or its workflow ended first;
        :class:`WorkflowUpdateRPCTimeoutOrCancelledError` when ``rpc_timeout`` ends first; :class:`RPCError` when
        the workflow knows no such update, or the engine cannot be reached.
        """
        outcome = await self._wait(UpdateClock(self._id, rpc_timeout))
        converter = self._client.data_converter
        if outcome.failure is not None:
            raise WorkflowUpdateFailedError(converter.from_failure(outcome.failure))
        result: R_co = self._signature.decode_result(converter.payload_converter, outcome.success)
        return result

    async def _wait(self, clock: UpdateClock) -> UpdateOutcome:
        while self._known_outcome is None:
            request = PollWorkflowUpdateRequest(
                namespace=self._client.namespace,
                execution=WorkflowExecution(workflow_id=self._workflow_id, run_id=self._workflow_run_id or ""),
                update_id=self._id,
                timeout=await clock.next_wait(),
            )
            response = await self._client._root.call(op.POLL_WORKFLOW_UPDATE, request)
            self._known_outcome = response.outcome
        return self._known_outcome
