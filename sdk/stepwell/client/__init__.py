"""Starting workflows and talking to them from outside."""

from ..api.enums import WorkflowExecutionStatus, WorkflowUpdateStage
from ..api.namespaces import NamespaceInfo, NamespaceLimits
from ..replay.history import WorkflowHistory
from .async_activity import AsyncActivityHandle
from .client import Client
from .errors import (
    AsyncActivityCancelledError,
    RPCError,
    WorkflowContinuedAsNewError,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from .executions import WorkflowExecution, WorkflowExecutionDescription
from .handle import WorkflowHandle
from .interceptors import (
    CancelWorkflowInput,
    DescribeWorkflowInput,
    FetchWorkflowHistoryEventsInput,
    Interceptor,
    OutboundInterceptor,
    QueryWorkflowInput,
    ResetWorkflowInput,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    StartWorkflowUpdateWithStartInput,
    TerminateWorkflowInput,
)
from .lists import WorkflowExecutionCount, WorkflowExecutionCountAggregationGroup
from .namespaces import NamespaceClient
from .update_handle import WorkflowUpdateHandle
from .with_start import WithStartWorkflowOperation

__all__ = [
    "AsyncActivityCancelledError",
    "AsyncActivityHandle",
    "CancelWorkflowInput",
    "Client",
    "DescribeWorkflowInput",
    "FetchWorkflowHistoryEventsInput",
    "Interceptor",
    "NamespaceClient",
    "NamespaceInfo",
    "NamespaceLimits",
    "OutboundInterceptor",
    "QueryWorkflowInput",
    "RPCError",
    "ResetWorkflowInput",
    "SignalWorkflowInput",
    "StartWorkflowInput",
    "StartWorkflowUpdateInput",
    "StartWorkflowUpdateWithStartInput",
    "TerminateWorkflowInput",
    "WithStartWorkflowOperation",
    "WorkflowContinuedAsNewError",
    "WorkflowExecution",
    "WorkflowExecutionCount",
    "WorkflowExecutionCountAggregationGroup",
    "WorkflowExecutionDescription",
    "WorkflowExecutionStatus",
    "WorkflowFailureError",
    "WorkflowHandle",
    "WorkflowHistory",
    "WorkflowQueryFailedError",
    "WorkflowQueryRejectedError",
    "WorkflowUpdateFailedError",
    "WorkflowUpdateHandle",
    "WorkflowUpdateRPCTimeoutOrCancelledError",
    "WorkflowUpdateStage",
]
