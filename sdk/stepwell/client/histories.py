"""Histories that are taken from one installation to another (LC-46)."""

import uuid
from typing import TYPE_CHECKING, Any, cast

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution as ExecutionName
from ..replay.history import WorkflowHistory
from .handle import WorkflowHandle

if TYPE_CHECKING:
    from .client import Client


class HistoryCalls:
    """The methods that a client has for histories."""

    async def import_workflow(self, history: WorkflowHistory, *, request_id: str | None = None) -> WorkflowHandle[Any]:
        """Make a run of a history that was read elsewhere, or from a file: under its own ids, closed as it is there,
        or, if it is open, going on here, from its last event on. The history is checked as a whole before anything is
        written. Import the runs of one workflow id in the order of their starts, and children no later than a day
        behind their parents.

        A call that fails may be made again with the same ``request_id``. Raises :class:`RPCError`:
        ``INVALID_ARGUMENT`` when it is no history of a run, ``WORKFLOW_EXECUTION_ALREADY_STARTED`` when that run is
        there, or a run of its id is open, ``FAILED_PRECONDITION`` when a later one is there, or its retention is over.
        """
        client = cast("Client", self)
        request = r.ImportWorkflowRequest(
            namespace=client.namespace,
            execution=ExecutionName(workflow_id=history.workflow_id),
            events=tuple(history.events),
            identity=client.identity,
            request_id=request_id or uuid.uuid4().hex,
        )
        response: r.ImportWorkflowResponse = await client._root.call(op.IMPORT_WORKFLOW, request)
        return client.get_workflow_handle(history.workflow_id, run_id=response.run_id)
