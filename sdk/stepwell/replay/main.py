"""The main function of a run: its start, its cancellation, and what its end means (ER-03, WC-08, WC-21)."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

from ..api import commands
from ..api.enums import WorkflowTaskFailedCause
from ..api.events import WorkflowExecutionStarted
from ..api.failures import Failure
from ..exceptions import is_cancelled_exception
from ..workflow.dynamic import workflow_arguments
from ..workflow.interceptors import ExecuteWorkflowInput
from .errors import ContinueAsNewError, ForbiddenInWorkflowError, NondeterminismError, WorkflowTaskError
from .intercepted import InterceptorClass, chain
from .machines.closing import CloseCommand, Closing
from .runtime import WorkflowRuntime


class MainFunction:
    """Runs the main function and everything it starts, until all of it waits."""

    def __init__(
        self,
        runtime: WorkflowRuntime,
        failure_types: tuple[type[BaseException], ...],
        interceptors: Sequence[InterceptorClass] = (),
    ) -> None:
        self._runtime = runtime
        runtime.failure_types = failure_types
        self._interceptors = interceptors
        self._task: asyncio.Task[None] | None = None
        self._started: WorkflowExecutionStarted | None = None
        self._args: list[Any] = []
        self._instance_made = False
        self.initialized = False
        self.closed = False
        self._close: Closing | None = None
        self._task_failure: WorkflowTaskError | None = None

    def initialize(self, started: WorkflowExecutionStarted) -> None:
        """The run's start is known; nothing runs yet."""
        self._started = started
        self.initialized = True

    def create(self) -> None:
        """Make the instance, once, before the first signal is delivered. Raises ``ArgumentError`` for arguments that
        do not fit.
        """
        if self._instance_made:
            return
        runtime, definition = self._runtime, self._runtime.definition
        assert self._started is not None
        self._args = workflow_arguments(definition, runtime.payload_converter, self._started.input)
        if self._interceptors:
            chain(runtime, self._interceptors)
        if definition.cls is not None:
            instance = definition.cls(*self._args) if definition.init_takes_arguments else definition.cls()
            runtime.handlers.instance = instance
            self._args = [instance, *self._args]
        self._instance_made = True

    def cancel(self, reason: str) -> None:
        """Asked for from outside; only the first request counts (CH-09). Code that has not begun runs to its first
        wait.
        """
        runtime = self._runtime
        if runtime.cancel_requested:
            return
        runtime.cancel_requested = True
        runtime.cancellation_reason = reason
        if self._task is not None:
            self._task.cancel()

    def run_until_idle(self) -> None:
        """Raises :class:`WorkflowTaskError` when the code shows a bug rather than a failure."""
        runtime = self._runtime
        loop = runtime.loop
        if self._task is None:
            self._task = loop.create_task(self._main(), name="main")
            if runtime.cancel_requested:
                loop.call_soon(self._task.cancel)
        loop.run_ready()
        while not self.closed and runtime.failure is None and runtime.check_conditions():
            loop.run_ready()
        if runtime.failure is not None:
            self._ended(runtime.failure)
            loop.stop()
        if self._task_failure is not None:
            raise self._task_failure
        runtime.local.code_waits()
        if self._close is not None:
            runtime.ask(self._close)
            self._close = None
            runtime.handlers.warn_unfinished()

    async def _main(self) -> None:
        runtime = self._runtime
        definition = runtime.definition
        try:
            result = await (definition.run_fn(*self._args) if runtime.inbound is None else self._intercepted())
            payloads = definition.signature.encode_result(runtime.payload_converter, result)
        except BaseException as error:
            if runtime.evicting:
                raise
            self._ended(error)
        else:
            self._closes(commands.CompleteWorkflowExecution(result=payloads))
        runtime.loop.stop()

    def _intercepted(self) -> Awaitable[Any]:
        runtime, definition = self._runtime, self._runtime.definition
        assert self._started is not None and runtime.inbound is not None
        args = self._args if definition.cls is None else self._args[1:]
        call = ExecuteWorkflowInput(definition.cls, definition.run_fn, args, self._started.headers)
        return runtime.inbound.execute_workflow(call)

    def fail(self, failure: Failure) -> None:
        """The run ends so, whatever its code does."""
        self.closed = True
        self._runtime.asks = [Closing(commands.FailWorkflowExecution(failure=failure))]

    def _closes(self, command: CloseCommand) -> None:
        if not self.closed:
            self.closed = True
            self._close = Closing(command)

    def _ended(self, error: BaseException) -> None:
        runtime = self._runtime
        forbidden = runtime.failure if isinstance(runtime.failure, ForbiddenInWorkflowError) else None
        if forbidden is not None and isinstance(forbidden, runtime.failure_types):
            error, forbidden = forbidden, None
        if forbidden is None and isinstance(error, ContinueAsNewError):
            self._closes(error.command)
        elif forbidden is None and runtime.cancel_requested and is_cancelled_exception(error):
            self._closes(commands.CancelWorkflowExecution())
        elif forbidden is None and runtime.is_failure(error):
            self._closes(commands.FailWorkflowExecution(failure=runtime.to_failure(error)))
        else:
            cause = (
                WorkflowTaskFailedCause.NON_DETERMINISTIC_ERROR
                if isinstance(error, NondeterminismError)
                else WorkflowTaskFailedCause.WORKFLOW_WORKER_UNHANDLED_FAILURE
            )
            self._task_failure = WorkflowTaskError(cause, runtime.to_failure(forbidden or error))
            self._task_failure.__cause__ = forbidden or error
