"""Batch operations: one thing done to many workflows, in the background (LC-43, LC-44)."""

import uuid
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..api import batches as b
from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution as ExecutionName
from ..api.enums import BatchOperationState
from .batch_actions import BatchAction
from .executions import WorkflowExecution
from .handle import WorkflowHandle
from .outbound import RootOutbound
from .pacing import Pace

if TYPE_CHECKING:
    from .client import Client


class BatchOperationExecution:
    """How far a batch is. Times are UTC."""

    def __init__(self, info: b.BatchOperationInfo) -> None:
        self.raw_info = info
        self.id = info.job_id
        self.operation_type = info.operation_type
        self.state: BatchOperationState = info.state
        self.start_time = info.start_time
        self.close_time = info.close_time
        self.total = info.total_operation_count
        """Of a filter: the workflows that were found so far."""
        self.done = info.complete_operation_count
        self.failed = info.failure_operation_count

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r} {self.state}: {self.done} done, {self.failed} failed>"


class BatchOperationDescription(BatchOperationExecution):
    """With why it failed where it did."""

    def __init__(self, raw: r.DescribeBatchOperationResponse) -> None:
        super().__init__(raw.info)
        self.raw_description = raw
        self.query = raw.query
        """As it was narrowed to what the operation is for."""
        self.reason = raw.reason
        self.identity = raw.identity
        self.max_operations_per_second = raw.max_operations_per_second
        self.close_reason = raw.close_reason
        self.failures: Sequence[b.BatchFailure] = raw.failures
        """The first 50."""


class BatchOperationHandle:
    """Made by ``Client.start_batch_operation`` and ``Client.get_batch_operation_handle``. All methods raise
    :class:`RPCError`, with code ``NOT_FOUND`` when there is no such batch; one that is over is kept for a week."""

    def __init__(self, client: "Client", id: str) -> None:
        self._client = client
        self.id = id

    async def describe(self) -> BatchOperationDescription:
        """How far it is."""
        request = r.DescribeBatchOperationRequest(namespace=self._client.namespace, job_id=self.id)
        return BatchOperationDescription(await _root(self._client).call(op.DESCRIBE_BATCH_OPERATION, request))

    async def wait(self) -> BatchOperationDescription:
        """Until it is over, in whatever state."""
        pace = Pace()
        while True:
            pace.asking()
            described = await self.describe()
            if described.state is not BatchOperationState.RUNNING:
                return described
            await pace.came_empty()

    async def stop(self, *, reason: str = "") -> None:
        """Do no more. What is done stays done; of a batch that is over nothing changes."""
        request = r.StopBatchOperationRequest(
            namespace=self._client.namespace, job_id=self.id, reason=reason, identity=self._client.identity
        )
        await _root(self._client).call(op.STOP_BATCH_OPERATION, request)


class BatchCalls:
    """The methods that a client has for batches."""

    async def start_batch_operation(
        self,
        action: BatchAction,
        *,
        query: str = "",
        executions: Iterable[str | WorkflowHandle[Any] | WorkflowExecution] = (),
        id: str | None = None,
        reason: str = "",
        max_operations_per_second: float | None = None,
    ) -> BatchOperationHandle:
        """Do something to all workflows that ``query`` finds, or to those in ``executions`` (at most 1,000: workflow
        ids, handles, rows of a list; without a run id, the newest run is meant). It goes on in the background, at most
        50 a second, five at a time, each workflow once. One batch runs at a time in a namespace.

        A call that fails may be made again with the same ``id``. Raises ``ArgumentError`` when a signal's arguments do
        not fit its method, and :class:`RPCError`.
        """
        if id == "":
            raise ValueError("id is empty (an unset variable?); leave it out for a new one")
        if not isinstance(action, BatchAction):
            raise TypeError(f"action is one of the batch actions, such as BatchCancel(), not {action!r}")
        client = cast("Client", self)
        job_id = id or uuid.uuid4().hex
        request = r.StartBatchOperationRequest(
            namespace=client.namespace,
            job_id=job_id,
            operation=action._record(_Values(_root(client))),
            executions=tuple([_named(each) for each in executions]),
            query=query,
            reason=reason,
            identity=client.identity,
            max_operations_per_second=max_operations_per_second or 0.0,
        )
        await _root(client).call(op.START_BATCH_OPERATION, request)
        return BatchOperationHandle(client, job_id)

    def get_batch_operation_handle(self, id: str) -> BatchOperationHandle:
        """Without asking the engine whether there is such a batch."""
        return BatchOperationHandle(cast("Client", self), id)

    async def list_batch_operations(self, *, page_size: int = 100) -> AsyncIterator[BatchOperationExecution]:
        """The batches of the namespace, in the order of their ids; those that are over for a week."""
        client, token = cast("Client", self), b""
        while True:
            request = r.ListBatchOperationsRequest(
                namespace=client.namespace, page_size=page_size, next_page_token=token
            )
            response = await _root(client).call(op.LIST_BATCH_OPERATIONS, request)
            for info in response.operations:
                yield BatchOperationExecution(info)
            token = response.next_page_token
            if not token:
                return


class _Values:
    """What actions make payloads with."""

    def __init__(self, root: RootOutbound) -> None:
        self.arguments = root.encode_arguments
        self.values = root.encode_values


def _named(named: str | WorkflowHandle[Any] | WorkflowExecution) -> ExecutionName:
    if isinstance(named, str):
        return ExecutionName(workflow_id=named)
    return ExecutionName(workflow_id=named.id, run_id=named.run_id or "")


def _root(client: "Client") -> RootOutbound:
    return client._root
