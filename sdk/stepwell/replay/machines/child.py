"""A child workflow: ``StartChildWorkflowExecution`` -> StartChildWorkflowExecutionInitiated -> ChildWorkflowExecution-
Started (or StartChildWorkflowExecutionFailed) -> its end.

Workflow code awaits the start, and gets the handle; awaiting the handle is for the end. Cancelling either (also by
cancelling the task that awaits it) asks the child to cancel, as its cancellation type says (CH-05); a child that has
started is not touched by cancelling what has awaited its start (CH-06). The awaiting code gets
``asyncio.CancelledError``.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...api.commands import RequestCancelExternalWorkflowExecution, StartChildWorkflowExecution
from ...api.enums import ChildWorkflowCancellationType, RetryState, WorkflowIDConflictPolicy
from ...api.events import (
    EventAttributes,
    RequestCancelExternalWorkflowExecutionInitiated,
    StartChildWorkflowExecutionInitiated,
)
from ...api.payloads import Payloads
from ...converter.signatures import CallableSignature
from ...exceptions import ChildWorkflowError
from ...workflow.definition import signal_reference
from ...workflow.interceptors import SignalChildWorkflowInput
from .command import Ask
from .external import ExternalAsk, signal_child

if TYPE_CHECKING:
    from ..loop import DeterministicLoop
    from ..runtime import WorkflowRuntime

R = TypeVar("R")

_AT_ONCE = frozenset({ChildWorkflowCancellationType.ABANDON, ChildWorkflowCancellationType.TRY_CANCEL})


class ChildWorkflowHandle(asyncio.Future[R]):
    """A child that has started. Await it for its result; raises ``ChildWorkflowError`` when it ends otherwise."""

    def __init__(self, machine: "ChildMachine", loop: "DeterministicLoop") -> None:
        super().__init__(loop=loop)
        self._machine = machine
        self._hash = loop.next_hash()

    def __hash__(self) -> int:
        return self._hash

    @property
    def id(self) -> str:
        """The child's workflow id."""
        return self._machine.starting.workflow_id

    @property
    def first_execution_run_id(self) -> str | None:
        """The first run of the child's chain of runs."""
        return self._machine.run_id or None

    async def signal(
        self, signal: str | Callable[..., Any], *signal_args: Any, args: Sequence[Any] = (), **named: Any
    ) -> None:
        """Send the child a signal, by its method or its name. Returns when it is recorded there; raises
        ``ApplicationError`` when it is not, such as when the child has ended.
        """
        runtime = self._machine.runtime
        runtime.refuse_in_query("sending a signal")
        name, signature = signal_reference(signal)
        call = SignalChildWorkflowInput(
            signal=name,
            args=given(signature.what, signal_args, args, named),
            child_workflow_id=self.id,
            signature=signature,
            _run_id=self._machine.run_id,
            _attached=self._machine.attached,
            _namespace=self._machine.starting.namespace,
        )
        outbound = runtime.outbound
        await (signal_child(runtime, call) if outbound is None else outbound.signal_child_workflow(call))

    def cancel(self, msg: Any | None = None) -> bool:
        """Ask the child to cancel. Returns False when it has ended, or when its end is waited for."""
        if self.done() or not self._machine.cancel(msg):
            return False
        return super().cancel(msg=msg)

    def _end_canceled(self) -> None:
        super().cancel()


def given(what: str, positional: Sequence[Any], args: Sequence[Any], named: dict[str, Any]) -> Sequence[Any]:
    """Arguments, however they were given: by position, as ``arg=…`` or as ``args=[…]``."""
    unknown = sorted(named.keys() - {"arg"})
    if unknown:
        raise TypeError(f"{what}: there is no option {unknown[0]!r}; give the arguments as args=[…]")
    if named:
        positional = (named["arg"], *positional)
    if args and positional:
        raise ValueError(f"{what}: give the arguments either by position or as args=[…], not both")
    return args or positional


class ChildStart(asyncio.Future[None]):
    """Done when the child has started."""

    def __init__(self, machine: "ChildMachine", loop: "DeterministicLoop") -> None:
        super().__init__(loop=loop)
        self._machine = machine
        self._hash = loop.next_hash()

    def __hash__(self) -> int:
        return self._hash

    def cancel(self, msg: Any | None = None) -> bool:
        if self.done() or not self._machine.cancel(msg):
            return False
        return super().cancel(msg=msg)


class ChildMachine(Ask):
    """What is known of one child."""

    __slots__ = (
        "_cancellation",
        "_cancellation_type",
        "_signature",
        "attached",
        "dropped",
        "handle",
        "initiated_event_id",
        "run_id",
        "runtime",
        "start",
        "starting",
        "workflow_type",
    )

    def __init__(
        self,
        runtime: "WorkflowRuntime",
        starting: StartChildWorkflowExecution,
        signature: CallableSignature,
        cancellation_type: ChildWorkflowCancellationType,
    ) -> None:
        self.runtime = runtime
        self.starting = starting
        self._signature = signature
        self._cancellation_type = cancellation_type
        self._cancellation: ChildCancellation | None = None
        self.attached = (
            starting.watch_only or starting.workflow_id_conflict_policy is WorkflowIDConflictPolicy.USE_EXISTING
        )
        """Only watched: cancelling it ends the wait (CH-18)."""
        self.initiated_event_id = 0
        """0 until the workflow task that asked for it is recorded."""
        self.run_id = ""
        self.workflow_type = starting.workflow_type
        self.dropped = False
        self.start = ChildStart(self, runtime.loop)
        self.handle: ChildWorkflowHandle[Any] = ChildWorkflowHandle(self, runtime.loop)

    def cancel(self, reason: Any | None) -> bool:
        """Ask it to cancel, once. True when the awaiting code is not to wait for what becomes of it."""
        runtime = self.runtime
        if runtime.evicting:
            return True
        if self.initiated_event_id == 0:
            runtime.drop(self)
            return True
        self.handle._log_traceback = False
        if self.attached or self._cancellation_type is ChildWorkflowCancellationType.ABANDON:
            return True
        if self._cancellation is None:
            text = reason if isinstance(reason, str) else runtime.cancellation_reason or ""
            self._cancellation = ChildCancellation(self, text)
            runtime.ask(self._cancellation)
        return self._cancellation_type in _AT_ONCE

    def ends_as_asked(self) -> bool:
        """It has started, was asked to cancel before, and its end is to be waited for."""
        return (
            self._cancellation is not None
            and self._cancellation_type is ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED
            and self.run_id != ""
            and not self.handle.done()
        )

    def cancel_requested(self) -> None:
        """The child has been asked."""
        if self._cancellation_type is ChildWorkflowCancellationType.WAIT_CANCELLATION_REQUESTED:
            if not self.handle.done():
                self.handle._end_canceled()
            if not self.start.done():
                asyncio.Future.cancel(self.start)

    def started(self, run_id: str, workflow_type: str) -> None:
        """``run_id`` is the first run of its chain."""
        self.run_id = run_id
        self.workflow_type = workflow_type
        if not self.start.done():
            self.start.set_result(None)

    def not_started(self, error: BaseException) -> None:
        """There is no child."""
        self._too_late_to_cancel()
        if not self.start.done():
            self.start.set_exception(error)
            if self._cancellation is not None:
                self.start._log_traceback = False

    def completed(self, payloads: Payloads) -> None:
        """It ended well. A result that does not fit is raised where it is awaited."""
        self._too_late_to_cancel()
        if self.handle.done():
            return
        try:
            self.handle.set_result(self._signature.decode_result(self.runtime.payload_converter, payloads))
        except Exception as error:  # also of a user's own converter
            self.handle.set_exception(error)

    def failed(self, what: str, cause: BaseException, retry_state: RetryState | None, started_event_id: int) -> None:
        """It ended in another way."""
        self._too_late_to_cancel()
        if self.handle.done():
            return
        asked = self.starting
        error = ChildWorkflowError(
            f"workflow {asked.workflow_id!r} {what}"
            if asked.watch_only
            else f"child workflow {asked.workflow_type!r} {what}",
            namespace=self.starting.namespace or self.runtime.info.namespace,
            workflow_id=self.starting.workflow_id,
            run_id=self.run_id,
            workflow_type=self.workflow_type,
            initiated_event_id=self.initiated_event_id,
            started_event_id=started_event_id,
            retry_state=retry_state,
        )
        error.__cause__ = cause
        self.handle.set_exception(error)
        if self._cancellation is not None:
            self.handle._log_traceback = False

    def _too_late_to_cancel(self) -> None:
        """Asking it in the workflow task in which its end came in would reach nobody."""
        if self._cancellation is not None and not self._cancellation.event_id:
            self._cancellation.dropped = True

    # --- as a command ----------------------------------------------------------------------------------------------

    def command(self) -> StartChildWorkflowExecution:
        return self.starting

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is StartChildWorkflowExecutionInitiated
            and recorded.workflow_type == self.starting.workflow_type
            and recorded.workflow_id == self.starting.workflow_id
        )

    def describe(self) -> str:
        asked = self.starting
        return f"StartChildWorkflowExecution (workflow_type {asked.workflow_type!r}, workflow_id {asked.workflow_id!r})"

    def sent(self, event_id: int) -> None:
        self.initiated_event_id = event_id
        self.runtime.children[event_id] = self


class ChildCancellation(ExternalAsk):
    """Asks a child that was asked for in an earlier workflow task to cancel."""

    __slots__ = ("_child", "_reason")

    def __init__(self, child: ChildMachine, reason: str) -> None:
        super().__init__(child.runtime)
        self._child = child
        self._reason = reason

    def command(self) -> RequestCancelExternalWorkflowExecution:
        return RequestCancelExternalWorkflowExecution(
            namespace=self._child.starting.namespace,
            workflow_id=self._child.starting.workflow_id,
            run_id=self._child.run_id,
            child_workflow_only=True,
            reason=self._reason,
        )

    def matches(self, recorded: EventAttributes) -> bool:
        return (
            type(recorded) is RequestCancelExternalWorkflowExecutionInitiated
            and recorded.workflow_execution.workflow_id == self._child.starting.workflow_id
        )

    def describe(self) -> str:
        return f"RequestCancelExternalWorkflowExecution (workflow_id {self._child.starting.workflow_id!r})"

    def delivered(self) -> None:
        self._child.cancel_requested()

    def refused(self, cause: str) -> None:
        """It has ended, which it tells by itself."""
