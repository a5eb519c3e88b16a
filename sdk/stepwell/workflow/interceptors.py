"""Code of the user around workflow code: around what comes in (the run, signals, queries) and what it asks for
(activities, child workflows, signals to others). It runs inside the workflow and is replayed with it, so it must be as
deterministic.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ..api.payloads import Payload
from ..common import Priority, RetryPolicy
from ..converter.signatures import CallableSignature
from ..search_attributes import SearchAttributes

if TYPE_CHECKING:
    from ..api.enums import (
        ChildWorkflowCancellationType,
        ParentClosePolicy,
        WorkflowIDConflictPolicy,
        WorkflowIDReusePolicy,
    )
    from ..replay.machines.activity import ActivityCancellationType, ActivityHandle
    from ..replay.machines.child import ChildWorkflowHandle
    from .definition import QueryDefinition, SignalDefinition, UpdateDefinition
    from .info import Info


@dataclass
class ExecuteWorkflowInput:
    """The run that begins. ``run_fn`` is unbound; ``args`` are without the instance. ``type`` is None for a
    function-style workflow.
    """

    type: type | None
    run_fn: Callable[..., Awaitable[Any]]
    args: Sequence[Any]
    headers: Mapping[str, Payload]


@dataclass
class HandleSignalInput:
    """A signal that has a handler."""

    signal: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]
    _handler: "SignalDefinition" = field(repr=False, compare=False, kw_only=True)


@dataclass
class HandleQueryInput:
    """A query that has a handler."""

    query: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]
    _handler: "QueryDefinition" = field(repr=False, compare=False, kw_only=True)


@dataclass
class HandleUpdateInput:
    """An update that has a handler."""

    id: str
    update: str
    args: Sequence[Any]
    headers: Mapping[str, Payload]
    _handler: "UpdateDefinition" = field(repr=False, compare=False, kw_only=True)


@dataclass
class StartActivityInput:
    """An activity that is asked for. An interceptor may change everything, headers included: they reach the
    activity's interceptors.
    """

    activity: str
    args: Sequence[Any]
    activity_id: str | None
    task_queue: str | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    heartbeat_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    cancellation_type: "ActivityCancellationType"
    signature: CallableSignature
    """By which arguments are encoded and the result is decoded."""
    headers: Mapping[str, Payload] = field(default_factory=dict)
    summary: str | None = None
    priority: Priority = Priority.default


@dataclass
class StartLocalActivityInput:
    """A local activity that is asked for; as :class:`StartActivityInput`."""

    activity: str
    args: Sequence[Any]
    activity_id: str | None
    schedule_to_close_timeout: timedelta | None
    schedule_to_start_timeout: timedelta | None
    start_to_close_timeout: timedelta | None
    retry_policy: RetryPolicy | None
    local_retry_threshold: timedelta | None
    cancellation_type: "ActivityCancellationType"
    signature: CallableSignature
    summary: str | None = None
    headers: Mapping[str, Payload] = field(default_factory=dict)


@dataclass
class ContinueAsNewInput:
    """The next run that is asked for. An interceptor may change everything; ``headers`` begin as those of this run."""

    workflow: "str | type[Any] | Callable[..., Awaitable[Any]] | None"
    """None: the workflow that runs."""
    args: Sequence[Any]
    task_queue: str | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    backoff_start_interval: timedelta | None
    retry_policy: RetryPolicy | None
    memo: Mapping[str, Any] | None
    headers: Mapping[str, Payload] = field(default_factory=dict)
    search_attributes: SearchAttributes | None = None


@dataclass
class StartChildWorkflowInput:
    """A child workflow that is asked for. An interceptor may change everything, headers included: they reach the
    child's interceptors.
    """

    workflow: str
    args: Sequence[Any]
    id: str
    task_queue: str | None
    cancellation_type: "ChildWorkflowCancellationType"
    parent_close_policy: "ParentClosePolicy"
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: "WorkflowIDReusePolicy"
    id_conflict_policy: "WorkflowIDConflictPolicy"
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    signature: CallableSignature
    """By which arguments are encoded and the result is decoded."""
    headers: Mapping[str, Payload] = field(default_factory=dict)
    priority: Priority = Priority.default
    search_attributes: SearchAttributes | None = None
    static_summary: str | None = None
    static_details: str | None = None
    namespace: str | None = None
    """Where it is started; None: in the workflow's own."""
    _to_its_end: bool = field(default=False, repr=False, kw_only=True)


@dataclass
class SignalChildWorkflowInput:
    """A signal to a child."""

    signal: str
    args: Sequence[Any]
    child_workflow_id: str
    signature: CallableSignature
    headers: Mapping[str, Payload] = field(default_factory=dict)
    _run_id: str = field(default="", repr=False, kw_only=True)
    _attached: bool = field(default=False, repr=False, kw_only=True)
    _namespace: str = field(default="", repr=False, kw_only=True)


@dataclass
class SignalExternalWorkflowInput:
    """A signal to another workflow."""

    signal: str
    args: Sequence[Any]
    namespace: str
    workflow_id: str
    workflow_run_id: str | None
    signature: CallableSignature
    headers: Mapping[str, Payload] = field(default_factory=dict)


class WorkflowOutboundInterceptor:
    """Wraps what workflow code asks for; calls ``self.next`` to go on."""

    def __init__(self, next: "WorkflowOutboundInterceptor") -> None:
        self.next = next

    def info(self) -> "Info":
        """What ``workflow.info()`` returns."""
        return self.next.info()

    def start_activity(self, input: StartActivityInput) -> "ActivityHandle[Any]":
        return self.next.start_activity(input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        """Ends the run by raising."""
        self.next.continue_as_new(input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> "ChildWorkflowHandle[Any]":
        """Returns when the child has started."""
        return await self.next.start_child_workflow(input)

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:
        """Returns when the signal is recorded."""
        await self.next.signal_child_workflow(input)

    async def signal_external_workflow(self, input: SignalExternalWorkflowInput) -> None:
        """Returns when the signal is recorded."""
        await self.next.signal_external_workflow(input)

    def start_local_activity(self, input: StartLocalActivityInput) -> "ActivityHandle[Any]":
        return self.next.start_local_activity(input)


class WorkflowInboundInterceptor:
    """Wraps what comes to one run; calls ``self.next`` to go on. Made once for each run on a worker, and again when
    the run is replayed.
    """

    def __init__(self, next: "WorkflowInboundInterceptor") -> None:
        self.next = next

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        """Called first. To wrap what the workflow asks for, hand an interceptor around ``outbound`` on instead of
        ``outbound`` itself.
        """
        self.next.init(outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        """The result of the run; what it raises is what workflow code raises."""
        return await self.next.execute_workflow(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:
        await self.next.handle_signal(input)

    async def handle_query(self, input: HandleQueryInput) -> Any:
        """Read-only, and must not wait."""
        return await self.next.handle_query(input)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        """Raises to reject the update. Called for every update, also one whose handler has no validator; read-only,
        and not in replay.
        """
        self.next.handle_update_validator(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        """The outcome of an accepted update."""
        return await self.next.handle_update_handler(input)


@dataclass(frozen=True)
class WorkflowInterceptorClassInput:
    """What a worker's interceptor may leave for its workflow interceptors."""

    unsafe_extern_functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """Found again by ``workflow.extern_functions()``. They run as part of the workflow: nothing records what they
    return.
    """


class InterceptsWorkflows(Protocol):
    """What a worker's interceptor has to do with workflow code."""

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None: ...


def workflow_interceptors(
    interceptors: Sequence[InterceptsWorkflows],
) -> tuple[tuple[type[WorkflowInboundInterceptor], ...], Mapping[str, Callable[..., Any]]]:
    """The classes around workflow code, outermost first, and the functions they brought."""
    input = WorkflowInterceptorClassInput()
    found = [interceptor.workflow_interceptor_class(input) for interceptor in interceptors]
    return tuple(each for each in found if each is not None), input.unsafe_extern_functions
