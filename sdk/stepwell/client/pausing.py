"""Pausing a workflow: the methods that a workflow handle has for it."""

import uuid
from typing import TYPE_CHECKING

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import ApiError
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
        execution = WorkflowExecution(workflow_id=self._id, run_id=self._run_id or "")
        request = r.PauseWorkflowRequest(
            namespace=self._client.namespace,
            execution=execution,
            reason=reason,
            identity=self._client.identity,
            request_id=uuid.uuid4().hex,
        )
        try:
            await self._client.transport.call(op.PAUSE_WORKFLOW, checked(request))
        except ApiError as error:
            raise RPCError(error) from error

    async def unpause(self, *, reason: str = "") -> None:
        """Let a paused workflow go on, with all that has come in meanwhile."""
        execution = WorkflowExecution(workflow_id=self._id, run_id=self._run_id or "")
        request = r.UnpauseWorkflowRequest(
            namespace=self._client.namespace,
            execution=execution,
            reason=reason,
            identity=self._client.identity,
            request_id=uuid.uuid4().hex,
        )
        try:
            await self._client.transport.call(op.UNPAUSE_WORKFLOW, checked(request))
        except ApiError as error:
            raise RPCError(error) from error
