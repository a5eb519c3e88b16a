"""Activities without a workflow (AC-28), as a client sees them: what it starts, awaits, reads and operates."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from ..activity.definition import activity_reference
from ..api import operations as op
from ..api import requests as r
from ..api.enums import PendingActivityState, WorkflowExecutionStatus, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from ..api.errors import ActivityAlreadyStarted
from ..api.limits import MAX_LIST_PAGE
from ..api.requests import ActivityExecutionInfo, DescribeActivityResponse
from ..common import Priority, RetryPolicy, retry_record
from ..converter import DataConverter
from ..converter.signatures import untyped_signature
from ..exceptions import ActivityAlreadyStartedError
from ..search_attributes import SearchAttributes, first_of
from .arguments import UNSET, arguments
from .errors import ActivityFailureError, RPCError
from .lists import WorkflowExecutionCount, all_counted, check_limit
from .pacing import Pace
from .request_ids import new_request_id
from .standalone_operations import StandaloneActivityOperations
from .texts import memo_of, text_of, texts

if TYPE_CHECKING:
    from .client import Client
    from .outbound import RootOutbound

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_POLL = timedelta(seconds=20)


class ActivityExecution:
    """What a list shows of a stand-alone activity."""

    def __init__(self, info: ActivityExecutionInfo, converter: DataConverter) -> None:
        self._info = info
        self._converter = converter
        self.activity_id = info.activity_id
        self.activity_run_id = info.run_id
        self.activity_type = info.activity_type
        self.task_queue = info.task_queue
        self.status: WorkflowExecutionStatus = info.status
        self.scheduled_time: datetime = info.schedule_time
        self.close_time: datetime | None = info.close_time

    async def memo(self) -> Mapping[str, Any]:
        """Decoded without types."""
        decode = self._converter.payload_converter.from_payload
        return {name: decode(payload) for name, payload in self._info.memo.items()}


class ActivityExecutionDescription(ActivityExecution):
    """All that the engine knows of one. Options are those that hold now."""

    def __init__(self, raw: DescribeActivityResponse, converter: DataConverter) -> None:
        super().__init__(raw.info, converter)
        self.raw = raw
        self.run_state: PendingActivityState | None = raw.run_state
        """None once it has ended."""
        self.attempt = raw.attempt
        self.last_failure = None if raw.last_failure is None else converter.from_failure(raw.last_failure)
        self.last_worker_identity = raw.last_worker_identity
        self.cancel_requested = raw.cancel_requested
        self.retry_policy = None if raw.retry_policy is None else RetryPolicy.from_record(raw.retry_policy)

    async def static_summary(self) -> str | None:
        metadata = self.raw.user_metadata
        return None if metadata is None else text_of(self._converter, metadata.summary)

    async def heartbeat_details(self) -> Sequence[Any]:
        """Of the last heartbeat, decoded without types."""
        return self._converter.payload_converter.from_payloads(self.raw.heartbeat_details)


class ActivityHandle(StandaloneActivityOperations, Generic[R_co]):
    """Made by ``Client.start_activity`` and ``Client.get_activity_handle``. All methods raise :class:`RPCError`, with
    code ``NOT_FOUND`` when there is no such activity."""

    def __init__(self, client: "Client", id: str, run_id: str | None, result_type: Any) -> None:
        super().__init__(client, id, run_id)
        self._result_type = result_type

    async def result(self) -> R_co:
        """Wait for the end and return the result. Raises :class:`ActivityFailureError` when it failed, was cancelled or
        terminated, or timed out."""
        converter, pace = self._client.data_converter, Pace()
        request = r.PollActivityRequest(
            namespace=self._client.namespace, activity_id=self._id, run_id=self._run_id or "", timeout=_POLL
        )
        while True:
            pace.asking()
            answer = await self._call(op.POLL_ACTIVITY, request)
            if answer.outcome is not None:
                break
            await pace.came_empty()
        if answer.outcome.failure is not None:
            raise ActivityFailureError(cause=converter.from_failure(answer.outcome.failure))
        signature = untyped_signature(f"activity {self._id!r}", self._result_type)
        result: R_co = signature.decode_result(converter.payload_converter, answer.outcome.result)
        return result

    async def describe(self) -> ActivityExecutionDescription:
        request = r.DescribeActivityRequest(
            namespace=self._client.namespace, activity_id=self._id, run_id=self._run_id or ""
        )
        return ActivityExecutionDescription(
            await self._call(op.DESCRIBE_ACTIVITY, request), self._client.data_converter
        )


class StandaloneCalls:
    """Calls of a client about activities without a workflow."""

    namespace: str
    identity: str
    data_converter: DataConverter
    _root: "RootOutbound"

    @overload
    async def start_activity(
        self,
        activity: Callable[..., Awaitable[R]],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        schedule_to_close_timeout: timedelta | None = None,
        schedule_to_start_timeout: timedelta | None = None,
        start_to_close_timeout: timedelta | None = None,
        heartbeat_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        summary: str | None = None,
        priority: Priority = Priority.default,
        start_delay: timedelta | None = None,
    ) -> ActivityHandle[R]: ...
    @overload
    async def start_activity(
        self,
        activity: str | Callable[..., Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        schedule_to_close_timeout: timedelta | None = None,
        schedule_to_start_timeout: timedelta | None = None,
        start_to_close_timeout: timedelta | None = None,
        heartbeat_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        summary: str | None = None,
        priority: Priority = Priority.default,
        start_delay: timedelta | None = None,
    ) -> ActivityHandle[Any]: ...
    async def start_activity(
        self,
        activity: Any,
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        schedule_to_close_timeout: timedelta | None = None,
        schedule_to_start_timeout: timedelta | None = None,
        start_to_close_timeout: timedelta | None = None,
        heartbeat_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        summary: str | None = None,
        priority: Priority = Priority.default,
        start_delay: timedelta | None = None,
    ) -> ActivityHandle[Any]:
        """Start an activity that belongs to no workflow: the engine gives it to a worker of ``task_queue`` and retries
        it as a workflow's, under an id of the caller's choice. One of ``start_to_close_timeout`` and
        ``schedule_to_close_timeout`` is needed. ``start_delay`` holds its first attempt back, and all timeouts.

        Raises ``ActivityAlreadyStartedError`` when the id is taken and the policies do not allow another run,
        ``ArgumentError`` when the arguments do not fit the activity's, :class:`RPCError` otherwise.
        """
        root, converter = self._root, self.data_converter
        name, signature = activity_reference(activity)
        if isinstance(activity, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        encoded = signature.encode(converter.payload_converter, arguments(arg, args, more))
        request = r.StartActivityRequest(
            namespace=self.namespace,
            activity_id=id,
            activity_type=name,
            task_queue=task_queue,
            input=root.within_limit(encoded, signature.what),
            schedule_to_close_timeout=schedule_to_close_timeout,
            schedule_to_start_timeout=schedule_to_start_timeout,
            start_to_close_timeout=start_to_close_timeout,
            heartbeat_timeout=heartbeat_timeout,
            retry_policy=retry_record(retry_policy, "activity", id),
            id_reuse_policy=id_reuse_policy,
            id_conflict_policy=id_conflict_policy,
            memo=memo_of(converter, memo),
            search_attributes=first_of("search_attributes", search_attributes),
            priority=priority.to_record(),
            start_delay=start_delay,
            user_metadata=texts(converter, summary, None),
            identity=self.identity,
            request_id=new_request_id(),
        )
        try:
            response = await root.call(op.START_ACTIVITY, request)
        except RPCError as error:
            if isinstance(error.__cause__, ActivityAlreadyStarted):
                raise ActivityAlreadyStartedError(id, name, run_id=error.details.get("run_id")) from error.__cause__
            raise
        return ActivityHandle(cast("Client", self), id, response.run_id, signature.result_type)

    async def execute_activity(
        self, activity: Any, arg: Any = UNSET, *more: Any, id: str, task_queue: str, **options: Any
    ) -> Any:
        """:meth:`start_activity`, then wait for the result; raises what these two raise."""
        if more:
            arguments(arg, (), more)
        handle = await self.start_activity(activity, arg, id=id, task_queue=task_queue, **options)
        return await handle.result()

    def get_activity_handle(
        self, activity_id: str, *, activity_run_id: str | None = None, result_type: Any = None
    ) -> ActivityHandle[Any]:
        """Of a stand-alone activity that somebody has started. Without ``activity_run_id``: the newest of that id."""
        return ActivityHandle(cast("Client", self), activity_id, activity_run_id, result_type)

    async def list_activities(
        self, query: str | None = None, *, page_size: int = MAX_LIST_PAGE, limit: int | None = None
    ) -> AsyncIterator[ActivityExecution]:
        """Stand-alone activities that the query finds (by ActivityId, ActivityType, ExecutionStatus, TaskQueue,
        StartTime, CloseTime and search attributes), newest first."""
        check_limit(limit)
        root, token, given = self._root, b"", 0
        while True:
            request = r.ListActivitiesRequest(
                namespace=self.namespace, query=query or "", page_size=page_size, next_page_token=token
            )
            response = await root.call(op.LIST_ACTIVITIES, request)
            for info in response.executions:
                if given == limit:
                    return
                given += 1
                yield ActivityExecution(info, self.data_converter)
            token = response.next_page_token
            if not token:
                return

    async def count_activities(self, query: str | None = None) -> WorkflowExecutionCount:
        """As ``count_workflows``, of stand-alone activities."""
        root = self._root

        async def page(token: bytes) -> r.CountActivitiesResponse:
            request = r.CountActivitiesRequest(namespace=self.namespace, query=query or "", next_page_token=token)
            return await root.call(op.COUNT_ACTIVITIES, request)

        return WorkflowExecutionCount(*await all_counted(page))
