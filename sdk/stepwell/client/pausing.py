"""Pausing a workflow: the methods that a workflow handle has for it."""

import uuid
from typing import TYPE_CHECKING, Any

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import ApiError
from ..api.operations import Operation
from .checked import checked
from .errors import RPCError

if TYPE_CHECKING:
    from .client import Client


class PauseOperations:
    """Raises :class:`RPCError`, with code ``FAILED_PRECONDITION`` when the workflow is paused already, or is not."""

    _client: "Client"
    _id: str
    _run_id: str | None

    async def pause(self, *, reason: str = "") -> None:
        """Give nothing more of the workflow to workers, until it is unpaused (LC-11).

        A workflow task that a worker has may finish. Signals, timers and ends of activities are recorded, and wait;
        queries and updates are refused; its timeouts run on.
        """
        await self._change(op.PAUSE_WORKFLOW, r.PauseWorkflowRequest, reason)

    async def unpause(self, *, reason: str = "") -> None:
        """Let a paused workflow go on, with all that has come in meanwhile."""
        await self._change(op.UNPAUSE_WORKFLOW, r.UnpauseWorkflowRequest, reason)

    async def _change(
        self,
        operation: Operation[Any, Any],
        request_type: type[r.PauseWorkflowRequest] | type[r.UnpauseWorkflowRequest],
        reason: str,
    ) -> None:
        request = request_type(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=self._id, run_id=self._run_id or ""),
            reason=reason,
            identity=self._client.identity,
            request_id=uuid.uuid4().hex,
        )
        try:
            await self._client.transport.call(operation, checked(request))
        except ApiError as error:
            raise RPCError(error) from error
