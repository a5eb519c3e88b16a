"""Code of the user around each call of a client, such as for tracing or default options."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ..api.enums import (
    QueryRejectCondition,
    ResetReapplyExcludeType,
    ResetType,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
    WorkflowUpdateStage,
)
from ..api.events import HistoryEvent
from ..api.payloads import Payload
from ..common import CompletionCallback, Deduplication, Priority, RetryPolicy
from ..converter.signatures import CallableSignature
from ..search_attributes import SearchAttributes
from .schedule_inputs import ScheduleOutboundInterceptor

if TYPE_CHECKING:
    from .executions import WorkflowExecutionDescription
    from .handle import WorkflowHandle
    from .update_handle import WorkflowUpdateHandle


@dataclass
class StartWorkflowInput:
    workflow: str
    signature: CallableSignature
    args: Sequence[Any]
    id: str
    task_queue: str
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    id_conflict_policy: WorkflowIDConflictPolicy
    memo: Mapping[str, Any] | None
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    start_delay: timedelta | None = None
    request_eager_start: bool = False
    priority: Priority = Priority.default
    headers: Mapping[str, Payload] = field(default_factory=dict)
    start_signal: str | None = None
    start_signal_args: Sequence[Any] = ()
    static_summary: str | None = None
    static_details: str | None = None
    search_attributes: SearchAttributes | None = None
    deduplication: Deduplication | None = None
    callbacks: Sequence[CompletionCallback] = ()


@dataclass
class SignalWorkflowInput:
    id: str
    run_id: str | None
    signal: str
    signature: CallableSignature
    args: Sequence[Any]
    headers: Mapping[str, Payload] = field(default_factory=dict)
    idempotency_key: str | None = None


@dataclass
class QueryWorkflowInput:
    id: str
    run_id: str | None
    query: str
    signature: CallableSignature
    args: Sequence[Any]
    reject_condition: QueryRejectCondition
    rpc_timeout: timedelta | None
    headers: Mapping[str, Payload] = field(default_factory=dict)


@dataclass
class StartWorkflowUpdateInput:
    id: str
    run_id: str | None
    first_execution_run_id: str | None
    update_id: str | None
    """None: a new one."""
    update: str
    signature: CallableSignature
    args: Sequence[Any]
    wait_for_stage: WorkflowUpdateStage
    rpc_timeout: timedelta | None
    headers: Mapping[str, Payload] = field(default_factory=dict)


@dataclass
class StartWorkflowUpdateWithStartInput:
    """``update``'s id and run id are those of the start."""

    start: StartWorkflowInput
    update: StartWorkflowUpdateInput
    _on_start: Callable[["WorkflowHandle[Any]"], None] = field(repr=False, compare=False)
    """Called when the start is known to have succeeded."""


@dataclass
class CancelWorkflowInput:
    id: str
    run_id: str | None
    first_execution_run_id: str | None
    reason: str


@dataclass
class TerminateWorkflowInput:
    id: str
    run_id: str | None
    first_execution_run_id: str | None
    args: Sequence[Any]
    reason: str


@dataclass
class ResetWorkflowInput:
    id: str
    run_id: str | None
    event_id: int | None
    reset_type: ResetType | None
    build_id: str | None
    current_run_only: bool
    exclude: Sequence[ResetReapplyExcludeType]
    reason: str
    request_id: str | None
    signals: Sequence[SignalWorkflowInput] = ()


@dataclass
class DescribeWorkflowInput:
    id: str
    run_id: str | None


@dataclass
class FetchWorkflowHistoryEventsInput:
    id: str
    run_id: str | None
    page_size: int | None
    wait_new_event: bool
    reverse: bool = False
    skip_archival: bool = False


class OutboundInterceptor(ScheduleOutboundInterceptor):
    """Wraps calls; each method calls the same one of ``self.next`` to go on."""

    next: "OutboundInterceptor"

    def __init__(self, next: "OutboundInterceptor") -> None:
        self.next = next

    async def start_workflow(self, input: StartWorkflowInput) -> "WorkflowHandle[Any]":
        return await self.next.start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:
        await self.next.signal_workflow(input)

    async def query_workflow(self, input: QueryWorkflowInput) -> Any:
        return await self.next.query_workflow(input)

    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> "WorkflowUpdateHandle[Any]":
        return await self.next.start_workflow_update(input)

    async def start_update_with_start_workflow(
        self, input: StartWorkflowUpdateWithStartInput
    ) -> "WorkflowUpdateHandle[Any]":
        return await self.next.start_update_with_start_workflow(input)

    async def cancel_workflow(self, input: CancelWorkflowInput) -> None:
        await self.next.cancel_workflow(input)

    async def terminate_workflow(self, input: TerminateWorkflowInput) -> None:
        await self.next.terminate_workflow(input)

    async def reset_workflow(self, input: ResetWorkflowInput) -> "WorkflowHandle[Any]":
        return await self.next.reset_workflow(input)

    async def describe_workflow(self, input: DescribeWorkflowInput) -> "WorkflowExecutionDescription":
        return await self.next.describe_workflow(input)

    def fetch_workflow_history_events(self, input: FetchWorkflowHistoryEventsInput) -> AsyncIterator[HistoryEvent]:
        return self.next.fetch_workflow_history_events(input)


class Interceptor:
    """Given to ``Client.connect(interceptors=…)``; the first one is the outermost."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        """Return an interceptor around ``next``, or ``next`` itself. Called once per client."""
        return next
