"""Deleting a workflow: the method that a workflow handle has for it."""

from typing import TYPE_CHECKING

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import ApiError
from .checked import checked
from .errors import RPCError

if TYPE_CHECKING:
    from .client import Client


class DeleteOperations:
    """Raises :class:`RPCError`, with code ``NOT_FOUND`` when there is no such run."""

    _client: "Client"
    _id: str
    _run_id: str | None
    _first_execution_run_id: str | None

    async def delete(self) -> None:
        """Delete the workflow's run, or its newest one when the handle has no run id (LC-12).

        A running one is terminated first. From then on the run is found no more, and its id is free for another one;
        history, results and list entry go in the background. Other runs of the id stay.
        """
        request = r.DeleteWorkflowRequest(
            namespace=self._client.namespace,
            execution=WorkflowExecution(workflow_id=self._id, run_id=self._run_id or ""),
            identity=self._client.identity,
            first_execution_run_id=self._first_execution_run_id or "",
        )
        try:
            await self._client.transport.call(op.DELETE_WORKFLOW, checked(request))
        except ApiError as error:
            raise RPCError(error) from error
