"""Other workflows, which this one did not start: signal or cancel them by their id (PM-31)."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..api.commands import RequestCancelExternalWorkflowExecution, StartChildWorkflowExecution
from ..api.enums import ChildWorkflowCancellationType
from ..converter.signatures import untyped_signature
from ..replay.machines.child import ChildMachine, given
from ..replay.machines.external import cancel_external, signal_external
from ..replay.runtime import WorkflowRuntime, current_runtime
from .definition import signal_reference, workflow_reference
from .interceptors import SignalExternalWorkflowInput


class ExternalWorkflowHandle:
    """Made by :func:`get_external_workflow_handle`. Says nothing of whether there is such a workflow."""

    def __init__(self, workflow_id: str, run_id: str | None, namespace: str) -> None:
        self._id = workflow_id
        self._run_id = run_id
        self._namespace = namespace

    @property
    def id(self) -> str:
        return self._id

    @property
    def run_id(self) -> str | None:
        """None means whatever run is open."""
        return self._run_id

    async def signal(
        self, signal: str | Callable[..., Any], *signal_args: Any, args: Sequence[Any] = (), **named: Any
    ) -> None:
        """Send a signal, by its method or its name. Returns when it is recorded there, once, whatever is lost on the
        way; raises ``ApplicationError`` when it cannot be, such as when no run is open.
        """
        runtime = current_runtime()
        runtime.refuse_in_query("sending a signal")
        name, signature = signal_reference(signal)
        call = SignalExternalWorkflowInput(
            signal=name,
            args=given(signature.what, signal_args, args, named),
            namespace=self._namespace or runtime.info.namespace,
            workflow_id=self._id,
            workflow_run_id=self._run_id,
            signature=signature,
        )
        outbound = runtime.outbound
        await (signal_external(runtime, call) if outbound is None else outbound.signal_external_workflow(call))

    async def result(self, *, result_type: Any = Any) -> Any:
        """Wait for its end, however long that takes, and return its result; one that has ended already gives it at
        once (CH-19). It is waited for across its next runs, and not touched: cancelling this ends the wait.

        Raises ``ChildWorkflowError`` when it ends other than by completing, ``ApplicationError`` when there is no such
        workflow, and ``ValueError`` for a handle of one run.
        """
        runtime = current_runtime()
        runtime.refuse_in_query("waiting for a workflow")
        if self._run_id is not None:
            raise ValueError("a workflow is waited for by its id alone, over all of its runs; leave run_id out")
        machine = ChildMachine(
            runtime,
            StartChildWorkflowExecution(
                namespace=self._namespace, workflow_id=self._id, workflow_type="", task_queue="", watch_only=True
            ),
            untyped_signature(f"workflow {self._id!r}", result_type),
            ChildWorkflowCancellationType.ABANDON,
        )
        runtime.ask(machine)
        await machine.start
        return await machine.handle

    async def cancel(self, *, reason: str = "") -> None:
        """Ask it to cancel. Returns when that is recorded there; raises ``ApplicationError`` when there is no such
        workflow. One that has ended, or was asked before, needs no asking.
        """
        runtime = current_runtime()
        runtime.refuse_in_query("cancelling a workflow")
        if not isinstance(reason, str):
            raise TypeError(f"reason must be text, not {type(reason).__name__}")
        await cancel_external(
            runtime,
            RequestCancelExternalWorkflowExecution(
                namespace=self._namespace,
                workflow_id=self._id,
                run_id=self._run_id or "",
                reason=reason or runtime.cancellation_reason or "",
            ),
        )


def get_external_workflow_handle(
    workflow_id: str, *, run_id: str | None = None, namespace: str | None = None
) -> ExternalWorkflowHandle:
    """A workflow by its id, to signal or cancel it. ``run_id`` means that run alone. One of another ``namespace`` is
    reached where that one lists the workflow's own among its callers."""
    runtime = current_runtime()
    for field, value in (("workflow_id", workflow_id), ("run_id", run_id), ("namespace", namespace)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{field} must be text, not {type(value).__name__}")
    if not workflow_id:
        raise ValueError("workflow_id is empty; give the id of the workflow that is meant")
    return ExternalWorkflowHandle(workflow_id, run_id, elsewhere(runtime, namespace))


def get_external_workflow_handle_for(
    workflow: Callable[..., Awaitable[Any]] | type[Any],
    workflow_id: str,
    *,
    run_id: str | None = None,
    namespace: str | None = None,
) -> ExternalWorkflowHandle:
    """As :func:`get_external_workflow_handle`, for readers of the code: says which workflow is meant. Raises
    ``ValueError`` when it is none.
    """
    workflow_reference(workflow)
    return get_external_workflow_handle(workflow_id, run_id=run_id, namespace=namespace)


def elsewhere(runtime: WorkflowRuntime, namespace: str | None) -> str:
    """As commands say it: empty for the workflow's own."""
    return "" if namespace is None or namespace == runtime.info.namespace else namespace
