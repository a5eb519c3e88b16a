"""Code of the user around each activity attempt, such as for tracing, limits or clean-up; and where a worker's
interceptors name those of workflow code (:mod:`stepwell.workflow.interceptors`).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from ..api.payloads import Payload
from ..workflow.interceptors import WorkflowInboundInterceptor, WorkflowInterceptorClassInput


@dataclass
class ExecuteActivityInput:
    """What is about to run; an interceptor may change it. ``executor`` is None for an async activity."""

    fn: Callable[..., Any]
    args: Sequence[Any]
    executor: Executor | None
    headers: Mapping[str, Payload]


class ActivityInboundInterceptor:
    """Wraps attempts; calls ``self.next`` to go on."""

    def __init__(self, next: "ActivityInboundInterceptor") -> None:
        self.next = next

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """The result of the attempt; what it raises fails the attempt."""
        return await self.next.execute_activity(input)


class Interceptor:
    """Given to ``Worker(interceptors=…)``; the first one is the outermost."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Return an interceptor around ``next``, or ``next`` itself. Called for each attempt."""
        return next

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """The class around each run of a workflow, or None. Called once per worker, as it is made."""
        return None
