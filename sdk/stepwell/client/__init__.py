"""Starting workflows and talking to them from outside."""

from ..api.batches import BatchFailure
from ..api.enums import BatchOperationState, BatchOperationType, WorkflowExecutionStatus, WorkflowUpdateStage
from ..api.namespaces import NamespaceInfo, NamespaceLimits
from ..replay.history import WorkflowHistory
from .async_activity import AsyncActivityHandle
from .batch_actions import (
    BatchCancel,
    BatchDelete,
    BatchReset,
    BatchResetActivities,
    BatchSignal,
    BatchTerminate,
    BatchUnpause,
    BatchUnpauseActivities,
    BatchUpdateActivityOptions,
    BatchUpdatePriority,
)
from .batches import BatchOperationDescription, BatchOperationExecution, BatchOperationHandle
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
    "BatchCancel",
    "BatchDelete",
    "BatchFailure",
    "BatchOperationDescription",
    "BatchOperationExecution",
    "BatchOperationHandle",
    "BatchOperationState",
    "BatchOperationType",
    "BatchReset",
    "BatchResetActivities",
    "BatchSignal",
    "BatchTerminate",
    "BatchUnpause",
    "BatchUnpauseActivities",
    "BatchUpdateActivityOptions",
    "BatchUpdatePriority",
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
