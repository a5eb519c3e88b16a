"""Running workflows and activities."""

from .interceptors import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor
from .shared_state import SharedStateManager
from .worker import Worker

__all__ = [
    "ActivityInboundInterceptor",
    "ExecuteActivityInput",
    "Interceptor",
    "SharedStateManager",
    "Worker",
]
