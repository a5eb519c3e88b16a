"""The client: one connection to an engine, to start workflows and to find them again."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, TypeVar, cast, overload

from ..api import operations as op
from ..api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from ..api.requests import GetSystemInfoRequest, GetSystemInfoResponse
from ..common import CompletionCallback, Deduplication, Priority, RetryPolicy
from ..converter import DataConverter
from ..converter.signatures import untyped_signature
from ..identity import default_identity
from ..search_attributes import SearchAttributes
from ..transport import Transport
from ..transport.coded import CodedTransport
from ..workflow.definition import workflow_reference
from .arguments import UNSET, arguments
from .async_activity import ActivityIds, AsyncActivityHandle
from .batches import BatchCalls
from .connecting import answered, opened
from .eager import EagerHost
from .handle import WorkflowHandle
from .histories import HistoryCalls
from .interceptors import Interceptor, OutboundInterceptor, StartWorkflowInput
from .lists import ListCalls
from .namespaces import NamespaceClient
from .outbound import RootOutbound
from .schedules import ScheduleCalls
from .standalone import StandaloneCalls
from .with_start import UpdateWithStartCalls
from .workers import WorkerCalls

R = TypeVar("R")


class Client(ListCalls, UpdateWithStartCalls, BatchCalls, ScheduleCalls, HistoryCalls, WorkerCalls, StandaloneCalls):
    """Made by :meth:`connect`. Belongs to the event loop it was made in. ``async with`` closes it at the end."""

    def __init__(
        self,
        transport: Transport,
        *,
        namespace: str = "default",
        identity: str | None = None,
        data_converter: DataConverter = DataConverter.default,
        interceptors: Sequence[Interceptor] = (),
    ) -> None:
        codec = data_converter.payload_codec
        self.transport: Transport = transport if codec is None else CodedTransport(transport, codec)
        """What every call goes through."""
        self.namespace = namespace
        self.identity = identity or default_identity()
        """Shown in histories and describe as the author of what this client did."""
        self.data_converter = data_converter
        outbound: OutboundInterceptor = RootOutbound(self)
        self._root = cast(RootOutbound, outbound)
        for interceptor in reversed(interceptors):
            outbound = interceptor.intercept_client(outbound)
        self.outbound = outbound
        self.eager_hosts: list[EagerHost] = []
        """Workers that run on this client."""

    @classmethod
    async def connect(
        cls,
        url: str | None = None,
        *,
        namespace: str | None = None,
        identity: str | None = None,
        data_converter: DataConverter = DataConverter.default,
        interceptors: Sequence[Interceptor] = (),
        sign: bool | None = None,
        profile: str | None = None,
    ) -> "Client":
        """Connect to the engine at ``url``: ``sqlite:///relative.db``, ``sqlite:////absolute.db`` or
        ``sqlite://:memory:`` run it inside this process, ``http://127.0.0.1:7400`` is a server, and
        ``https://….execute-api.….amazonaws.com`` the control plane in an AWS account.

        ``sign``: whether requests are signed (AWS Signature Version 4, with the usual credential chain). None: for
        addresses of AWS they are. A ``stepwell server`` of your own with access keys needs ``sign=True``.

        Without ``url``, or with ``profile``, what is not given is what the environment and the file of profiles say
        (:mod:`stepwell.envconfig`). With a ``url`` alone neither is looked at.

        Raises ``ValueError`` for any other address or a setting that cannot be used, :class:`RPCError` when the engine
        cannot be reached within 10 s or the file cannot be opened, and ``RuntimeError`` when ``sqlite://`` is asked
        for and the engine is not installed.
        """
        made = await opened(url, namespace, identity, sign, profile)
        client = cls(
            made.transport,
            namespace=made.namespace,
            identity=made.identity,
            data_converter=data_converter,
            interceptors=interceptors,
        )
        try:
            await answered(client.system_info(), made.url)
        except BaseException:
            await client.close()
            raise
        return client

    async def close(self) -> None:
        """Close the connection; the last client of a ``sqlite://`` file stops the engine. Stop workers first."""
        await self.transport.close()

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def namespaces(self) -> NamespaceClient:
        """Registers namespaces and changes them."""
        return NamespaceClient(self._root.call)

    async def system_info(self) -> GetSystemInfoResponse:
        """Version of the engine and where it keeps its data."""
        return await self._root.call(op.GET_SYSTEM_INFO, GetSystemInfoRequest())

    @overload
    async def start_workflow(
        self,
        workflow: Callable[..., Awaitable[R]],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        deduplication: Deduplication | None = None,
        callbacks: Sequence[CompletionCallback] = (),
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
    ) -> WorkflowHandle[R]: ...
    @overload
    async def start_workflow(
        self,
        workflow: str | type[Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        deduplication: Deduplication | None = None,
        callbacks: Sequence[CompletionCallback] = (),
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
    ) -> WorkflowHandle[Any]: ...
    async def start_workflow(
        self,
        workflow: str | Callable[..., Any],
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        deduplication: Deduplication | None = None,
        callbacks: Sequence[CompletionCallback] = (),
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
    ) -> WorkflowHandle[Any]:
        """Start a workflow, given by its run method, its function, its class or its name. Returning means recorded.

        ``run_timeout`` ends a run when it passes, ``execution_timeout`` the whole chain of runs (continued, retried,
        repeated); none by default. ``task_timeout`` is for one turn of workflow code, 10 s by default. With a
        ``retry_policy`` a run that fails or times out is followed by another attempt, as a new run. With a
        ``cron_schedule`` ("0 12 * * MON" in UTC, "CRON_TZ=Europe/Brussels 0 12 * * *", "@daily", "@every 90m") a run
        begins at each such time at which none is at work, until the workflow is cancelled or terminated.
        ``start_delay`` holds its code back for that long, or until the first message. ``request_eager_start`` lets a
        worker of this client begin at once, without a poll. ``priority`` says what goes first where tasks wait, here
        and in its activities and children. With a
        ``start_signal`` the workflow is signalled, and started before if it is not open, in one step (MS-09).
        ``deduplication`` counts one of the starts with its key, whatever their ids (LC-48); the handle is the holder's.
        ``callbacks`` are told of the end (LC-10), also when the start meets an open run with USE_EXISTING.
        ``search_attributes`` (``[key.value_set(value)]``, or typed) are what it can be found by (VI-07).
        ``static_summary`` (at most 400 bytes) and ``static_details`` (20,000) are for people (PM-27).

        Raises ``WorkflowAlreadyStartedError`` when the id is taken and the policies (LC-02, LC-03) do not allow another
        run, ``ArgumentError`` when the arguments do not fit the workflow's, :class:`RPCError` otherwise.
        """
        name, signature = workflow_reference(workflow)
        if isinstance(workflow, str) and result_type is not None:
            signature = untyped_signature(signature.what, result_type)
        return await self.outbound.start_workflow(
            StartWorkflowInput(
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
                cron_schedule=cron_schedule,
                memo=memo,
                search_attributes=search_attributes,
                static_summary=static_summary,
                static_details=static_details,
                start_delay=start_delay,
                request_eager_start=request_eager_start,
                priority=priority,
                deduplication=deduplication,
                callbacks=callbacks,
                start_signal=start_signal,
                start_signal_args=start_signal_args,
            )
        )

    @overload
    async def execute_workflow(
        self,
        workflow: Callable[..., Awaitable[R]],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        deduplication: Deduplication | None = None,
        callbacks: Sequence[CompletionCallback] = (),
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
    ) -> R: ...
    @overload
    async def execute_workflow(
        self,
        workflow: str | type[Any],
        arg: Any = UNSET,
        *,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        result_type: Any = None,
        execution_timeout: timedelta | None = None,
        run_timeout: timedelta | None = None,
        task_timeout: timedelta | None = None,
        id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
        retry_policy: RetryPolicy | None = None,
        cron_schedule: str = "",
        memo: Mapping[str, Any] | None = None,
        search_attributes: SearchAttributes | None = None,
        static_summary: str | None = None,
        static_details: str | None = None,
        start_delay: timedelta | None = None,
        request_eager_start: bool = False,
        priority: Priority = Priority.default,
        deduplication: Deduplication | None = None,
        callbacks: Sequence[CompletionCallback] = (),
        start_signal: str | None = None,
        start_signal_args: Sequence[Any] = (),
    ) -> Any: ...
    async def execute_workflow(
        self,
        workflow: Any,
        arg: Any = UNSET,
        *more: Any,
        args: Sequence[Any] = (),
        id: str,
        task_queue: str,
        **options: Any,
    ) -> Any:
        """:meth:`start_workflow`, then wait for the result; raises what these two raise."""
        args = arguments(arg, args, more)
        handle = await self.start_workflow(workflow, args=args, id=id, task_queue=task_queue, **options)
        return await handle.result()

    def get_workflow_handle(
        self,
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
        result_type: Any = None,
    ) -> WorkflowHandle[Any]:
        """A handle for an id, without asking the engine whether there is such a workflow."""
        return WorkflowHandle(
            self,
            workflow_id,
            run_id=run_id,
            result_run_id=run_id,
            first_execution_run_id=first_execution_run_id,
            result_type=result_type,
        )

    def get_workflow_handle_for(
        self,
        workflow: Callable[..., Awaitable[R]],
        workflow_id: str,
        *,
        run_id: str | None = None,
        first_execution_run_id: str | None = None,
    ) -> WorkflowHandle[R]:
        """Like :meth:`get_workflow_handle`, with the result's type taken from the workflow."""
        _, signature = workflow_reference(workflow)
        return self.get_workflow_handle(
            workflow_id,
            run_id=run_id,
            first_execution_run_id=first_execution_run_id,
            result_type=signature.result_type,
        )

    def get_async_activity_handle(
        self,
        *,
        workflow_id: str | None = None,
        run_id: str | None = None,
        activity_id: str | None = None,
        task_token: bytes | None = None,
    ) -> AsyncActivityHandle:
        """A handle for an activity that said ``activity.raise_complete_async()`` (AC-21): by its ``task_token``, which
        means that attempt, or by ids, which mean the attempt that is current. ``workflow_id`` None: of a stand-alone
        activity, with its own ``run_id``."""
        if task_token is not None:
            if workflow_id is not None or run_id is not None or activity_id is not None:
                raise ValueError("give either task_token, or workflow_id and activity_id, and not both")
            return AsyncActivityHandle(self, task_token)
        if activity_id is None:
            raise ValueError("give task_token, or workflow_id and activity_id; of a stand-alone one activity_id alone")
        return AsyncActivityHandle(self, ActivityIds(workflow_id or "", run_id, activity_id))
