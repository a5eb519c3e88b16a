"""Running workflows and activities."""

from ..replay.replayer import Replayer, ReplayFailedError, WorkflowReplayResult, WorkflowReplayResults
from .interceptors import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from .shared_state import SharedStateManager
from .worker import Worker

__all__ = [
    "ActivityInboundInterceptor",
    "ExecuteActivityInput",
    "Interceptor",
    "ReplayFailedError",
    "Replayer",
    "SharedStateManager",
    "Worker",
    "WorkflowReplayResult",
    "WorkflowReplayResults",
]
