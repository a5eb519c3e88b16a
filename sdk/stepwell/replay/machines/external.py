"""Signals and requests to cancel for other workflows: asked for, and answered when they are recorded or cannot be.

``SignalExternalWorkflowExecution`` -> SignalExternalWorkflowExecutionInitiated -> ExternalWorkflowExecutionSignaled or
SignalExternalWorkflowExecutionFailed, and the same for ``RequestCancelExternalWorkflowExecution``.
"""

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from ...api.commands import Command, RequestCancelExternalWorkflowExecution, SignalExternalWorkflowExecution
from ...api.common import WorkflowExecution
from ...api.events import (
    EventAttributes,
    RequestCancelExternalWorkflowExecutionInitiated,
    SignalExternalWorkflowExecutionInitiated,
)
from ...exceptions import ApplicationError
from ...workflow.interceptors import SignalChildWorkflowInput, SignalExternalWorkflowInput
from .command import Ask

if TYPE_CHECKING:
    from ..loop import DeterministicLoop
    from ..runtime import WorkflowRuntime

NOT_ALLOWED = (
    "its namespace does not list this workflow's among its callers_allowed; whoever keeps it can change that "
    "(`stepwell namespace update`), until then asking again does not help"
)

_NOT_FOUND = "EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND"
_WHY = {
    _NOT_FOUND: "there is no such workflow that is open",
    "NAMESPACE_NOT_FOUND": "there is no such namespace",
    "NAMESPACE_NOT_ALLOWED": NOT_ALLOWED,
    "SIGNAL_COUNT_LIMIT_EXCEEDED": "it has had as many signals as one run takes",
}


ITSELF = "it is this workflow, and a workflow cannot mean itself"


def means_itself(runtime: "WorkflowRuntime", workflow_id: str, namespace: str) -> bool:
    """Whether what was asked of another workflow was asked of the one that asks, which the engine finds nowhere."""
    return workflow_id == runtime.info.workflow_id and namespace in ("", runtime.info.namespace)


class ExternalAsk(Ask):
    """Something asked of another workflow, until it is answered."""

    __slots__ = ("dropped", "event_id", "runtime")

    def __init__(self, runtime: "WorkflowRuntime") -> None:
        self.runtime = runtime
        self.event_id = 0
        self.dropped = False

    def sent(self, event_id: int) -> None:
        self.event_id = event_id
        self.runtime.external[event_id] = self

    @abstractmethod
    def delivered(self) -> None: ...

    @abstractmethod
    def refused(self, cause: str) -> None: ...


class _Answer(asyncio.Future[None]):
    def __init__(self, machine: "_Awaited", loop: "DeterministicLoop") -> None:
        super().__init__(loop=loop)
        self._machine = machine
        self._hash = loop.next_hash()

    def __hash__(self) -> int:
        return self._hash

    def cancel(self, msg: Any | None = None) -> bool:
        """What was sent is sent; only what was not is taken back."""
        machine = self._machine
        if not self.done() and machine.event_id == 0 and not machine.runtime.evicting:
            machine.runtime.drop(machine)
        return super().cancel(msg=msg)


class _Awaited(ExternalAsk):
    __slots__ = ("_command", "_target", "answer")

    def __init__(
        self,
        runtime: "WorkflowRuntime",
        command: SignalExternalWorkflowExecution | RequestCancelExternalWorkflowExecution,
        target: str,
    ) -> None:
        super().__init__(runtime)
        self._command = command
        self._target = target
        self.answer = _Answer(self, runtime.loop)

    def command(self) -> Command:
        return self._command

    def delivered(self) -> None:
        if not self.answer.done():
            self.answer.set_result(None)

    def refused(self, cause: str) -> None:
        if self.answer.done():
            return
        itself = cause == _NOT_FOUND and means_itself(self.runtime, self._target, self._command.namespace)
        why = ITSELF if itself else _WHY.get(cause, cause)
        what = f"{self._doing()} workflow {self._target!r} is not possible: {why}"
        kind = "ExternalWorkflowExecutionNotFound" if cause == _NOT_FOUND else cause
        self.answer.set_exception(ApplicationError(what, type=kind))

    @abstractmethod
    def _doing(self) -> str: ...


class ExternalSignal(_Awaited):
    """A signal to another workflow."""

    __slots__ = ("_name",)

    def __init__(self, runtime: "WorkflowRuntime", command: SignalExternalWorkflowExecution) -> None:
        super().__init__(runtime, command, command.execution.workflow_id)
        self._name = command.signal_name

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is SignalExternalWorkflowExecutionInitiated
            and recorded.signal_name == self._name
            and recorded.workflow_execution.workflow_id == self._target
        )

    def describe(self) -> str:
        return f"SignalExternalWorkflowExecution (signal_name {self._name!r}, workflow_id {self._target!r})"

    def _doing(self) -> str:
        return f"sending signal {self._name!r} to"


class ExternalCancel(_Awaited):
    """A request to cancel another workflow."""

    __slots__ = ()

    def __init__(self, runtime: "WorkflowRuntime", command: RequestCancelExternalWorkflowExecution) -> None:
        super().__init__(runtime, command, command.workflow_id)

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is RequestCancelExternalWorkflowExecutionInitiated
            and recorded.workflow_execution.workflow_id == self._target
        )

    def describe(self) -> str:
        return f"RequestCancelExternalWorkflowExecution (workflow_id {self._target!r})"

    def _doing(self) -> str:
        return "cancelling"


# --- behind all interceptors ---------------------------------------------------------------------------------------


def signal_external(runtime: "WorkflowRuntime", call: SignalExternalWorkflowInput) -> "asyncio.Future[None]":
    """Ask for the signal; done when it is recorded."""
    return _signal(
        runtime,
        SignalExternalWorkflowExecution(
            namespace="" if call.namespace == runtime.info.namespace else call.namespace,
            execution=WorkflowExecution(workflow_id=call.workflow_id, run_id=call.workflow_run_id or ""),
            signal_name=call.signal,
            input=call.signature.encode(runtime.payload_converter, call.args),
            headers=dict(call.headers),
        ),
    )


def signal_child(runtime: "WorkflowRuntime", call: SignalChildWorkflowInput) -> "asyncio.Future[None]":
    """The same for a child, by the first run of its chain; one that is only watched is any other workflow."""
    run_id = "" if call._attached else call._run_id
    return _signal(
        runtime,
        SignalExternalWorkflowExecution(
            namespace=call._namespace,
            execution=WorkflowExecution(workflow_id=call.child_workflow_id, run_id=run_id),
            signal_name=call.signal,
            input=call.signature.encode(runtime.payload_converter, call.args),
            headers=dict(call.headers),
            child_workflow_only=not call._attached,
        ),
    )


def _signal(runtime: "WorkflowRuntime", command: SignalExternalWorkflowExecution) -> "asyncio.Future[None]":
    machine = ExternalSignal(runtime, command)
    runtime.ask(machine)
    return machine.answer


def cancel_external(
    runtime: "WorkflowRuntime", command: RequestCancelExternalWorkflowExecution
) -> "asyncio.Future[None]":
    """Ask for the cancellation; done when the request is recorded."""
    machine = ExternalCancel(runtime, command)
    runtime.ask(machine)
    return machine.answer
