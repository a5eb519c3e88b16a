"""An activity whose function has returned while it goes on: heartbeat it and end it from wherever the work is done."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..activity.info import ActivityCancellationDetails
from ..api import operations as op
from ..api import requests as r
from ..api.common import WorkflowExecution
from ..api.errors import ApiError, ErrorBody, PayloadTooLarge, error_from
from ..api.limits import MAX_PAYLOAD_BYTES
from ..api.operations import Operation
from ..api.payloads import Payloads, size_of
from ..converter import ArgumentError, PayloadError
from ..converter.failure_size import within_limit
from ..converter.large_payloads import warn_large
from .arguments import UNSET
from .checked import checked
from .errors import AsyncActivityCancelledError, RPCError

if TYPE_CHECKING:
    from .client import Client


Req = TypeVar("Req")
Resp = TypeVar("Resp")


class ActivityIds:
    """Names whatever attempt of an activity is current."""

    def __init__(self, workflow_id: str, run_id: str | None, activity_id: str) -> None:
        self.execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id or "")
        self.activity_id = activity_id
        self.has_workflow = bool(workflow_id)


class AsyncActivityHandle:
    """Made by ``Client.get_async_activity_handle``. All methods raise :class:`RPCError`, with code ``NOT_FOUND`` when
    the attempt is over or another one is current (AC-22)."""

    def __init__(self, client: "Client", id_or_token: ActivityIds | bytes) -> None:
        self._client = client
        self._id_or_token = id_or_token

    async def heartbeat(self, *details: Any) -> None:
        """Say that the work goes on. Raises :class:`AsyncActivityCancelledError` when it should not."""
        client, ids = self._client, self._id_or_token
        payloads = self._encode(details, "heartbeat details")
        if isinstance(ids, ActivityIds):
            answer = await self._call(
                op.RECORD_ACTIVITY_HEARTBEAT_BY_ID if ids.has_workflow else op.RECORD_STANDALONE_ACTIVITY_HEARTBEAT,
                r.RecordActivityHeartbeatByIdRequest(
                    namespace=client.namespace,
                    execution=ids.execution,
                    activity_id=ids.activity_id,
                    details=payloads,
                    identity=client.identity,
                ),
            )
        else:
            answer = await self._call(
                op.RECORD_ACTIVITY_HEARTBEAT,
                r.RecordActivityHeartbeatRequest(
                    namespace=client.namespace, task_token=ids, details=payloads, identity=client.identity
                ),
            )
        if answer.cancel_requested or answer.paused or answer.reset:
            raise AsyncActivityCancelledError(
                ActivityCancellationDetails(
                    cancel_requested=answer.cancel_requested, paused=answer.paused, reset=answer.reset
                )
            )

    async def complete(self, result: Any = UNSET) -> None:
        """The activity succeeded, with this result. Returning means recorded."""
        payloads = () if result is UNSET else self._encode((result,), "result")
        await self._end(r.ActivityCompleted(task_token=self._token, result=payloads))

    async def fail(self, error: BaseException, *, last_heartbeat_details: Sequence[Any] = ()) -> None:
        """The attempt failed; the retry policy says whether there is another."""
        if not isinstance(error, BaseException):
            raise TypeError(
                f"fail: error must be an exception, not {error!r}; such as ApplicationError('what went wrong')"
            )
        await self._end(
            r.ActivityFailed(
                task_token=self._token,
                failure=within_limit(self._client.data_converter.to_failure(error)),
                last_heartbeat_details=self._encode(last_heartbeat_details, "last heartbeat details"),
            )
        )

    async def report_cancellation(self, *details: Any) -> None:
        """The work has stopped, as a heartbeat asked for."""
        await self._end(r.ActivityCanceled(task_token=self._token, details=self._encode(details, "details")))

    @property
    def _token(self) -> bytes:
        return b"" if isinstance(self._id_or_token, ActivityIds) else self._id_or_token

    async def _end(self, outcome: r.ActivityOutcome) -> None:
        client, ids = self._client, self._id_or_token
        if isinstance(ids, ActivityIds):
            await self._call(
                op.RESPOND_ACTIVITY_BY_ID if ids.has_workflow else op.COMPLETE_STANDALONE_ACTIVITY,
                r.RespondActivityByIdRequest(
                    namespace=client.namespace,
                    execution=ids.execution,
                    activity_id=ids.activity_id,
                    outcome=outcome,
                    identity=client.identity,
                ),
            )
            return
        worker = r.WorkerInfo(identity=client.identity)
        request = r.RespondActivityTasksRequest(namespace=client.namespace, worker=worker, outcomes=(outcome,))
        (reply,) = (await self._call(op.RESPOND_ACTIVITY_TASKS, request)).replies
        if reply.error_code:
            refused = error_from(ErrorBody(code=reply.error_code, message=reply.message))
            raise RPCError(refused) from refused

    async def _call(self, operation: Operation[Req, Resp], request: Req) -> Resp:
        try:
            return await self._client.transport.call(operation, checked(request))
        except ApiError as error:
            raise RPCError(error) from error

    def _encode(self, values: Sequence[Any], what: str) -> Payloads:
        try:
            payloads = self._client.data_converter.payload_converter.to_payloads(values)
        except PayloadError as error:
            raise ArgumentError(f"{what}: {error}") from error
        size = size_of(payloads)
        if size > MAX_PAYLOAD_BYTES:
            raise RPCError(
                PayloadTooLarge(
                    f"{what} of the activity has {size} bytes, the limit is {MAX_PAYLOAD_BYTES}; "
                    "store the data elsewhere and say where it is",
                    field=what,
                )
            )
        warn_large(f"{what} of the activity", size)
        return payloads
