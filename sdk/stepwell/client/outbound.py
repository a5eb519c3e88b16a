"""End of the chain of client interceptors: makes the requests and reads the answers."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.enums import WorkflowExecutionStatus, WorkflowIDConflictPolicy, WorkflowUpdateStage
from ..api.errors import (
    ApiError,
    PayloadTooLarge,
    QueryFailed,
    QueryRejected,
    WorkflowExecutionAlreadyStarted,
    WorkflowExecutionClosing,
)
from ..api.events import HistoryEvent
from ..api.limits import MAX_PAYLOAD_BYTES, POLL_TIMEOUT
from ..api.operations import Operation
from ..api.payloads import Payload, Payloads, size_of
from ..converter import ArgumentError, PayloadError
from ..converter.large_payloads import warn_large
from ..converter.signatures import CallableSignature
from ..exceptions import WorkflowAlreadyStartedError
from . import interceptors as i
from .checked import checked
from .errors import RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError
from .executions import WorkflowExecutionDescription
from .handle import WorkflowHandle
from .pacing import Pace
from .queries import answer_of
from .request_ids import new_request_id
from .schedule_outbound import ScheduleOutbound
from .start_requests import start_request
from .update_handle import UpdateClock, WorkflowUpdateHandle

if TYPE_CHECKING:
    from .client import Client

Req = TypeVar("Req")
Resp = TypeVar("Resp")

_CLOSING_TRIES = 20
"""How often a message to a closing run is tried again, 20 to 500 ms apart, until the run is closed or takes it
(MS-06)."""


_UpdateReached = r.UpdateWorkflowResponse | r.UpdateWithStartWorkflowResponse


class RootOutbound(ScheduleOutbound, i.OutboundInterceptor):
    """Raises :class:`RPCError` for refusals, and before sending ``ArgumentError`` for arguments that do not fit."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._converter = client.data_converter
        self._call = client.transport.call

    async def call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises :class:`RPCError`."""
        try:
            return await self._call(operation, checked(request))
        except ApiError as error:
            raise RPCError(error) from error

    async def start_workflow(self, input: i.StartWorkflowInput) -> WorkflowHandle[Any]:
        request = self._start_request(input)
        try:
            if input.start_signal is None:
                response: r.StartWorkflowResponse | r.SignalWithStartWorkflowResponse = await self._start(
                    checked(request), input.request_eager_start
                )
            else:
                response = await self._until_open(
                    op.SIGNAL_WITH_START_WORKFLOW, self._with_signal(request, input.start_signal, input)
                )
        except WorkflowExecutionAlreadyStarted as error:
            run_id, holder = error.details.get("run_id"), error.details.get("workflow_id")
            said = error.message if holder else ""  # of the deduplication key
            raise WorkflowAlreadyStartedError(
                holder or input.id, input.workflow, run_id=run_id, message=said
            ) from error
        except ApiError as error:
            raise RPCError(error) from error
        other = response.workflow_id if isinstance(response, r.StartWorkflowResponse) else ""
        return self._started(input, response.run_id, response.first_execution_run_id, other)

    async def _start(self, request: r.StartWorkflowRequest, eager: bool) -> r.StartWorkflowResponse:
        """Raises an ``ApiError``."""
        for host in self._client.eager_hosts if eager else ():
            worker = host.reserve(request.task_queue, request.workflow_type)
            if worker is not None:
                task = None
                try:
                    response = await self._call(
                        op.START_WORKFLOW, msgspec.structs.replace(request, eager_worker=worker)
                    )
                    task = response.eager_workflow_task
                finally:
                    host.begin(task)
                return response
        return await self._call(op.START_WORKFLOW, request)

    def _started(
        self, input: i.StartWorkflowInput, run_id: str, first_run_id: str, other_id: str = ""
    ) -> WorkflowHandle[Any]:
        return WorkflowHandle(
            self._client,
            other_id or input.id,
            result_run_id=run_id,
            first_execution_run_id=first_run_id or run_id,
            result_type=input.signature.result_type,
        )

    def _start_request(self, input: i.StartWorkflowInput) -> r.StartWorkflowRequest:
        client = self._client
        return start_request(input, client.namespace, client.identity, self._converter, self.within_limit)

    def _with_signal(
        self, request: r.StartWorkflowRequest, signal: str, input: i.StartWorkflowInput
    ) -> r.SignalWithStartWorkflowRequest:
        fields = msgspec.structs.asdict(request)
        if fields["workflow_id_conflict_policy"] == WorkflowIDConflictPolicy.FAIL:
            fields["workflow_id_conflict_policy"] = WorkflowIDConflictPolicy.USE_EXISTING
        args = self.encode_values(input.start_signal_args, f"signal {signal!r}")
        return r.SignalWithStartWorkflowRequest(**fields, signal_name=signal, signal_input=args)

    async def signal_workflow(self, input: i.SignalWorkflowInput) -> None:
        request = r.SignalWorkflowRequest(
            namespace=self._client.namespace,
            execution=_execution(input.id, input.run_id),
            signal_name=input.signal,
            input=self._signal_args(input),
            identity=self._client.identity,
            request_id=new_request_id(),
            idempotency_key=input.idempotency_key or "",
            headers=dict(input.headers),
        )
        try:
            await self._until_open(op.SIGNAL_WORKFLOW, request)
        except ApiError as error:
            raise RPCError(error) from error

    def _signal_args(self, input: i.SignalWorkflowInput) -> Payloads:
        return self.encode_arguments(input.signature, input.args)

    def encode_arguments(self, signature: CallableSignature, args: Sequence[Any]) -> Payloads:
        """Raises ``ArgumentError``, :class:`RPCError`."""
        return self.within_limit(signature.encode(self._converter.payload_converter, args), signature.what)

    async def _until_not_closing(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """Raises :class:`RPCError`."""
        try:
            return await self._until_open(operation, request)
        except ApiError as error:
            raise RPCError(error) from error

    async def _until_open(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        """A message to a run that is about to close is tried again, until it is closed or takes it (MS-06)."""
        request = checked(request)
        tries = 0
        while True:
            try:
                return await self._call(operation, request)
            except WorkflowExecutionClosing:
                tries += 1
                if tries > _CLOSING_TRIES:
                    raise
                await asyncio.sleep(min(0.5, 0.02 * 2**tries) * random.uniform(0.5, 1.0))

    async def start_workflow_update(self, input: i.StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:
        update_id = uuid.uuid4().hex if input.update_id is None else input.update_id
        request = r.UpdateWorkflowRequest(
            namespace=self._client.namespace,
            execution=_execution(input.id, input.run_id),
            first_execution_run_id=input.first_execution_run_id or "",
            update_id=update_id,
            update_name=input.update,
            input=self._update_args(input),
            identity=self._client.identity,
            headers=dict(input.headers),
            wait_for_stage=input.wait_for_stage,
        )

        async def send(timeout: timedelta) -> r.UpdateWorkflowResponse:
            return await self._until_not_closing(op.UPDATE_WORKFLOW, msgspec.structs.replace(request, timeout=timeout))

        return await self._sent(input, update_id, send)

    async def start_update_with_start_workflow(
        self, input: i.StartWorkflowUpdateWithStartInput
    ) -> WorkflowUpdateHandle[Any]:
        start, update = input.start, input.update
        update_id = uuid.uuid4().hex if update.update_id is None else update.update_id
        request = r.UpdateWithStartWorkflowRequest(
            **msgspec.structs.asdict(self._start_request(start)),
            update_id=update_id,
            update_name=update.update,
            update_input=self._update_args(update),
            update_headers=dict(update.headers),
            wait_for_stage=update.wait_for_stage,
        )

        async def send(timeout: timedelta) -> r.UpdateWithStartWorkflowResponse:
            try:
                response = await self._until_open(
                    op.UPDATE_WITH_START_WORKFLOW, msgspec.structs.replace(request, timeout=timeout)
                )
            except WorkflowExecutionAlreadyStarted as error:
                run_id = error.details.get("run_id")
                raise WorkflowAlreadyStartedError(start.id, start.workflow, run_id=run_id) from error
            except ApiError as error:
                raise RPCError(error) from error
            input._on_start(self._started(start, response.run_id, response.first_execution_run_id))
            return response

        return await self._sent(update, update_id, send)

    def _update_args(self, input: i.StartWorkflowUpdateInput) -> Payloads:
        encoded = input.signature.encode(self._converter.payload_converter, input.args)
        return self.within_limit(encoded, input.signature.what)

    async def _sent(
        self, input: i.StartWorkflowUpdateInput, update_id: str, send: Callable[[timedelta], Awaitable[_UpdateReached]]
    ) -> WorkflowUpdateHandle[Any]:
        """The same update each time, by its id, until it has come far enough to be asked for."""
        clock = UpdateClock(update_id, input.rpc_timeout)
        stages = list(WorkflowUpdateStage)
        wanted = min(stages.index(input.wait_for_stage), stages.index(WorkflowUpdateStage.ACCEPTED))
        response = await send(await clock.next_wait())
        while stages.index(response.stage) < wanted:
            response = await send(await clock.next_wait())
        handle: WorkflowUpdateHandle[Any] = WorkflowUpdateHandle(
            self._client,
            update_id,
            input.id,
            workflow_run_id=response.run_id,
            signature=input.signature,
            known_outcome=response.outcome,
        )
        if input.wait_for_stage is WorkflowUpdateStage.COMPLETED:
            await handle._wait(clock)
        return handle

    async def query_workflow(self, input: i.QueryWorkflowInput) -> Any:
        request = r.QueryWorkflowRequest(
            namespace=self._client.namespace,
            execution=_execution(input.id, input.run_id),
            query_type=input.query,
            query_args=self.within_limit(
                input.signature.encode(self._converter.payload_converter, input.args), input.signature.what
            ),
            headers=dict(input.headers),
            query_reject_condition=input.reject_condition,
            timeout=input.rpc_timeout,
        )
        try:
            response = await answer_of(self._call, checked(request))
        except QueryFailed as error:
            raise WorkflowQueryFailedError(error.message) from error
        except QueryRejected as error:
            status = error.details.get("status")
            raise WorkflowQueryRejectedError(WorkflowExecutionStatus(status) if status else None) from error
        except ApiError as error:
            raise RPCError(error) from error
        return input.signature.decode_result(self._converter.payload_converter, response.result)

    async def cancel_workflow(self, input: i.CancelWorkflowInput) -> None:
        await self.call(
            op.CANCEL_WORKFLOW,
            r.CancelWorkflowRequest(
                namespace=self._client.namespace,
                execution=_execution(input.id, input.run_id),
                reason=input.reason,
                identity=self._client.identity,
                request_id=uuid.uuid4().hex,
                first_execution_run_id=input.first_execution_run_id or "",
            ),
        )

    async def terminate_workflow(self, input: i.TerminateWorkflowInput) -> None:
        await self.call(
            op.TERMINATE_WORKFLOW,
            r.TerminateWorkflowRequest(
                namespace=self._client.namespace,
                execution=_execution(input.id, input.run_id),
                reason=input.reason,
                details=self.encode_values(input.args, "termination details"),
                identity=self._client.identity,
                first_execution_run_id=input.first_execution_run_id or "",
            ),
        )

    async def reset_workflow(self, input: i.ResetWorkflowInput) -> WorkflowHandle[Any]:
        response = await self.call(
            op.RESET_WORKFLOW,
            r.ResetWorkflowRequest(
                namespace=self._client.namespace,
                execution=_execution(input.id, input.run_id),
                workflow_task_finish_event_id=input.event_id or 0,
                reset_type=input.reset_type,
                build_id=input.build_id or "",
                current_run_only=input.current_run_only,
                reset_reapply_exclude_types=tuple(input.exclude),
                reason=input.reason,
                identity=self._client.identity,
                request_id=input.request_id or uuid.uuid4().hex,
                post_reset_operations=tuple([self._post_reset(signal) for signal in input.signals]),
            ),
        )
        return WorkflowHandle(self._client, input.id, result_run_id=response.run_id)

    def _post_reset(self, input: i.SignalWorkflowInput) -> r.PostResetOperation:
        args, headers = self._signal_args(input), dict(input.headers)
        return r.PostResetOperation(
            signal_workflow=r.PostResetSignal(signal_name=input.signal, input=args, headers=headers)
        )

    async def describe_workflow(self, input: i.DescribeWorkflowInput) -> WorkflowExecutionDescription:
        request = r.DescribeWorkflowRequest(
            namespace=self._client.namespace, execution=_execution(input.id, input.run_id)
        )
        response = await self.call(op.DESCRIBE_WORKFLOW, request)
        return WorkflowExecutionDescription(response, self._converter)

    async def fetch_workflow_history_events(
        self, input: i.FetchWorkflowHistoryEventsInput
    ) -> AsyncIterator[HistoryEvent]:
        token, run_id = b"", input.run_id
        pace = Pace()
        while True:
            pace.asking()
            response = await self.call(
                op.GET_HISTORY,
                r.GetHistoryRequest(
                    namespace=self._client.namespace,
                    execution=_execution(input.id, run_id),
                    maximum_page_size=input.page_size or 0,
                    next_page_token=token,
                    wait_new_event=input.wait_new_event,
                    timeout=POLL_TIMEOUT if input.wait_new_event else None,
                    reverse=input.reverse,
                    skip_archival=input.skip_archival,
                ),
            )
            for event in response.events:
                yield event
            token = response.next_page_token
            if not token:
                return
            # Pages of one history: a newer run of the id must not get mixed in.
            run_id = response.run_id
            if not response.events:
                await pace.came_empty()

    def within_limit(self, payloads: Payloads, what: str) -> Payloads:
        size = size_of(payloads)
        if size > MAX_PAYLOAD_BYTES:
            raise RPCError(
                PayloadTooLarge(
                    f"Arguments of {what} have {size} bytes, the limit is {MAX_PAYLOAD_BYTES}; "
                    "store the data elsewhere and pass where it is",
                    field="input",
                )
            )
        warn_large(f"input of {what}", size)
        return payloads

    def encode_values(self, values: Sequence[Any], what: str) -> Payloads:
        encoded: list[Payload] = []
        for index, value in enumerate(values):
            try:
                encoded.append(self._converter.payload_converter.to_payload(value))
            except PayloadError as error:
                raise ArgumentError(f"{what}, value {index}: {error}") from error
        return self.within_limit(tuple(encoded), what)


def _execution(workflow_id: str, run_id: str | None) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=workflow_id, run_id=run_id or "")
