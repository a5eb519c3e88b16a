"""The inner ends of a run's chains of interceptors, and how the chains are made (PM-30)."""

from collections.abc import Coroutine, Sequence
from typing import Any, NoReturn

from ..workflow.activities import schedule
from ..workflow.children import start
from ..workflow.continuation import end_run
from ..workflow.info import Info
from ..workflow.interceptors import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleQueryInput,
    HandleSignalInput,
    HandleUpdateInput,
    SignalChildWorkflowInput,
    SignalExternalWorkflowInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)
from ..workflow.local_activities import schedule_local
from .errors import ReadOnlyContextError
from .machines.activity import ActivityHandle
from .machines.child import ChildWorkflowHandle
from .machines.external import signal_child, signal_external
from .runtime import WorkflowRuntime
from .updates import validate

InterceptorClass = type[WorkflowInboundInterceptor]


def chain(runtime: WorkflowRuntime, classes: Sequence[InterceptorClass]) -> None:
    """Put the interceptors around the run; the first class is the outermost, in both directions."""
    inbound: WorkflowInboundInterceptor = _Inbound(runtime)
    for interceptor_class in reversed(classes):
        inbound = interceptor_class(inbound)
    inbound.init(_Outbound(runtime))
    runtime.inbound = inbound


class _Inbound(WorkflowInboundInterceptor):
    def __init__(self, runtime: WorkflowRuntime) -> None:
        self._runtime = runtime

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._runtime.outbound = outbound

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        if input.type is None:
            return await input.run_fn(*input.args)
        return await input.run_fn(self._runtime.handlers.instance, *input.args)

    async def handle_signal(self, input: HandleSignalInput) -> None:
        handler = input._handler
        args = input.args if handler.bound else (self._runtime.handlers.instance, *input.args)
        result = handler.fn(*args)
        if handler.is_async:
            await result

    async def handle_query(self, input: HandleQueryInput) -> Any:
        handler = input._handler
        return handler.fn(*input.args) if handler.bound else handler.fn(self._runtime.handlers.instance, *input.args)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        validate(input._handler, self._runtime.handlers.instance, input.args)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        handler = input._handler
        args = input.args if handler.bound else (self._runtime.handlers.instance, *input.args)
        result = handler.fn(*args)
        return await result if handler.is_async else result


class _Outbound(WorkflowOutboundInterceptor):
    def __init__(self, runtime: WorkflowRuntime) -> None:
        self._runtime = runtime

    def info(self) -> Info:
        return self._runtime.info

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:
        return schedule(self._runtime, input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        end_run(self._runtime, input)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> ChildWorkflowHandle[Any]:
        return await start(self._runtime, input)

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:
        await signal_child(self._runtime, input)

    async def signal_external_workflow(self, input: SignalExternalWorkflowInput) -> None:
        await signal_external(self._runtime, input)

    def start_local_activity(self, input: StartLocalActivityInput) -> ActivityHandle[Any]:
        return schedule_local(self._runtime, input)


def without_waiting(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that must end at once: a query has no next turn."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    _refuse(coroutine)


def _refuse(coroutine: Coroutine[Any, Any, Any]) -> NoReturn:
    coroutine.close()
    raise ReadOnlyContextError(
        "an interceptor waited while a query was answered, which is not possible; answer at once"
    )
