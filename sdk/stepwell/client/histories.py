"""Histories that are taken from one installation to another (LC-46), and written as objects (LC-47)."""

import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution as ExecutionName
from ..api.enums import ExportFormat
from ..api.errors import NotFound
from ..replay.history import WorkflowHistory
from .errors import RPCError
from .exports import ExportExecution, ExportHandle
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

    async def list_histories(
        self, query: str | None = None, *, limit: int | None = None
    ) -> AsyncIterator[WorkflowHistory]:
        """The history of each run that a query finds, one read when it is asked for: such as for
        ``Replayer.replay_workflows``, against what really runs. A run that is deleted meanwhile is left out."""
        client = cast("Client", self)
        async for found in client.list_workflows(query, limit=limit):
            handle = client.get_workflow_handle(found.id, run_id=found.run_id)
            try:
                history = await handle.fetch_history()
            except RPCError as error:
                if error.code != NotFound.code:
                    raise
                continue
            yield history

    async def start_export(
        self,
        destination: str,
        *,
        query: str = "",
        closed_after: datetime | None = None,
        closed_before: datetime | None = None,
        continuous: bool = False,
        format: ExportFormat = ExportFormat.JSON_LINES_GZIP,
        id: str | None = None,
    ) -> ExportHandle:
        """Have the engine write the histories of all closed runs that ``query`` finds, each as an object, with a list
        of them; of those that closed from ``closed_after`` until ``closed_before`` (now, by default), or from then on
        until it is stopped when it is ``continuous``. ``destination`` is a folder below the place that the
        installation has for exports: beside the file of an embedded engine, in the bucket on AWS.

        A call that fails may be made again with the same ``id`` and window. Raises :class:`RPCError`.
        """
        if id == "":
            raise ValueError("id is empty (an unset variable?); leave it out for a new one")
        client, job_id = cast("Client", self), id or uuid.uuid4().hex
        request = r.StartExportRequest(
            namespace=client.namespace,
            job_id=job_id,
            destination=destination,
            query=query,
            closed_after=closed_after,
            closed_before=closed_before,
            continuous=continuous,
            format=format,
            identity=client.identity,
        )
        await client._root.call(op.START_EXPORT, request)
        return ExportHandle(client, job_id)

    def get_export_handle(self, id: str) -> ExportHandle:
        """Without asking the engine whether there is such an export."""
        return ExportHandle(cast("Client", self), id)

    async def list_exports(self, *, page_size: int = 100) -> AsyncIterator[ExportExecution]:
        """The exports of the namespace, in the order of their ids; those that are over for a week."""
        client, token = cast("Client", self), b""
        while True:
            request = r.ListExportsRequest(namespace=client.namespace, page_size=page_size, next_page_token=token)
            response = await client._root.call(op.LIST_EXPORTS, request)
            for info in response.exports:
                yield ExportExecution(info)
            token = response.next_page_token
            if not token:
                return
