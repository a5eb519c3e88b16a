"""Running workflows and activities."""

from ..replay.changes import PatchActivationInput
from ..replay.replayer import Replayer, ReplayFailedError, WorkflowReplayResult, WorkflowReplayResults
from ..workflow.interceptors import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from .function import LambdaHandler, lambda_handler
from .interceptors import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from .runners import SandboxedWorkflowRunner, UnsandboxedWorkflowRunner
from .shared_state import SharedStateManager
from .worker import Worker

__all__ = [
    "ActivityInboundInterceptor",
    "ContinueAsNewInput",
    "ExecuteActivityInput",
    "ExecuteWorkflowInput",
    "HandleQueryInput",
    "HandleSignalInput",
    "Interceptor",
    "LambdaHandler",
    "PatchActivationInput",
    "ReplayFailedError",
    "Replayer",
    "SandboxedWorkflowRunner",
    "SharedStateManager",
    "StartActivityInput",
    "UnsandboxedWorkflowRunner",
    "Worker",
    "WorkflowInboundInterceptor",
    "WorkflowInterceptorClassInput",
    "WorkflowOutboundInterceptor",
    "WorkflowReplayResult",
    "WorkflowReplayResults",
    "lambda_handler",
]
