"""Update-with-start: the workflow that is started for an update, unless it is open (MS-32)."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Generic, TypeVar, overload

from ..api.enums import WorkflowUpdateStage
from ..common import Priority, RetryPolicy, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from ..converter.signatures import untyped_signature
from ..search_attributes import SearchAttributes
from ..workflow.definition import update_reference, workflow_reference
from ..workflow.updates import UpdateMethodMultiParam
from .arguments import UNSET, arguments
from .handle import WorkflowHandle
from .interceptors import (
    OutboundInterceptor,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
)
from .update_handle import WorkflowUpdateHandle

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class WithStartWorkflowOperation(Generic[R_co]):
    """The start half of ``Client.execute_update_with_start_workflow``; arguments as for ``Client.start_workflow``, but
    the conflict policy has to be said: FAIL for a workflow that must be new, USE_EXISTING to update the open one too.
    Good for one call.
    """

    def __init__(
        self,
        workflow: Any,
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        id_conflict_policy: WorkflowIDConflictPolicy,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        retry_policy: RetryPolicy | None = None,
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        priority: Priority = Priority.default,
    ) -> None:
        name, signature = workflow_reference(workflow)
        if isinstance(workflow, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        self._input = StartWorkflowInput(
            workflow=name,
            signature=signature,
            args=arguments(arg, args, more),
            id=id,
            task_queue=task_queue,
            execution_timeout=execution_timeout,
            run_timeout=run_timeout,
            task_timeout=task_timeout,
            id_reuse_policy=id_reuse_policy,
            id_conflict_policy=id_conflict_policy,
            retry_policy=retry_policy,
            memo=memo,
            search_attributes=search_attributes,
            static_summary=static_summary,
            static_details=static_details,
            priority=priority,
        )
        self._handle: asyncio.Future[WorkflowHandle[R_co]] | None = None
        self._used = False

    async def workflow_handle(self) -> WorkflowHandle[R_co]:
        """Of the workflow that was started or found; waits for the call that this is part of, and raises what its
        start raises.
        """
        return await asyncio.shield(self._future())

    def _future(self) -> "asyncio.Future[WorkflowHandle[R_co]]":
        if self._handle is None:
            self._handle = asyncio.get_running_loop().create_future()
        return self._handle

    def _take(self) -> StartWorkflowInput:
        if self._used:
            raise RuntimeError("a WithStartWorkflowOperation is good for one call; make another one")
        self._used = True
        return self._input

    def _started(self, handle: WorkflowHandle[R_co]) -> None:
        future = self._future()
        if not future.done():
            future.set_result(handle)

    def _failed(self, error: BaseException) -> None:
        future = self._future()
        if not future.done():
            future.set_exception(error)
            future.exception()  # who made the call has it too


class UpdateWithStartCalls:
    """Of :class:`Client`."""

    outbound: OutboundInterceptor

    @overload
    async def execute_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[..., R],
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        args: Sequence[Any] = (),
        id: str | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> R: ...
    @overload
    async def execute_update_with_start_workflow(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any: ...
    async def execute_update_with_start_workflow(
        self,
        update: Any,
        arg: Any = UNSET,
        *more: Any,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> Any:
        """:meth:`start_update_with_start_workflow`, then wait for the update's result; raises what these two raise."""
        handle: WorkflowUpdateHandle[Any] = await self.start_update_with_start_workflow(
            update,
            start_workflow_operation=start_workflow_operation,
            wait_for_stage=WorkflowUpdateStage.COMPLETED,
            args=arguments(arg, args, more),
            id=id,
            result_type=result_type,
            rpc_timeout=rpc_timeout,
        )
        return await handle.result()

    @overload
    async def start_update_with_start_workflow(
        self,
        update: UpdateMethodMultiParam[..., R],
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[R]: ...
    @overload
    async def start_update_with_start_workflow(
        self,
        update: str,
        arg: Any = UNSET,
        *,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]: ...
    async def start_update_with_start_workflow(
        self,
        update: Any,
        arg: Any = UNSET,
        *more: Any,
        start_workflow_operation: WithStartWorkflowOperation[Any],
        wait_for_stage: WorkflowUpdateStage,
        args: Sequence[Any] = (),
        id: str | None = None,
        result_type: Any = None,
        rpc_timeout: timedelta | None = None,
    ) -> WorkflowUpdateHandle[Any]:
        """Start the workflow, unless it is open, and send it the update, in one step: both happen, or neither.

        Raises as ``WorkflowHandle.start_update``, and ``WorkflowAlreadyStartedError`` when the policies of the
        operation do not allow the start. ``start_workflow_operation.workflow_handle()`` has the workflow's handle.
        """
        if id == "":
            raise ValueError("id is empty (an unset variable?); leave it out for a new one")
        operation = start_workflow_operation
        if not isinstance(operation, WithStartWorkflowOperation):
            raise TypeError(
                f"start_workflow_operation must be a WithStartWorkflowOperation, not {type(operation).__name__}; "
                "make one of what you would give to start_workflow"
            )
        name, signature = update_reference(update)
        if isinstance(update, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        start = operation._take()
        asked = StartWorkflowUpdateInput(
            id=start.id,
            run_id=None,
            first_execution_run_id=None,
            update_id=id,
            update=name,
            signature=signature,
            args=arguments(arg, args, more),
            wait_for_stage=WorkflowUpdateStage(wait_for_stage),
            rpc_timeout=rpc_timeout,
        )
        try:
            return await self.outbound.start_update_with_start_workflow(
                StartWorkflowUpdateWithStartInput(start, asked, operation._started)
            )
        except BaseException as error:
            operation._failed(error)
            raise
