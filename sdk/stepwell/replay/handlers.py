"""Signals and queries of one run: which handler takes them, and what waits for a handler (MS-12 to MS-14, WC-02).

A signal without a handler is kept until there is one. A signal whose arguments do not fit its handler is skipped with
one warning: its sender is not there to be told, and must not be able to stop the workflow.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ..api.events import WorkflowExecutionSignaled
from ..converter.errors import PayloadError
from ..workflow.definition import (
    HandlerUnfinishedPolicy,
    QueryDefinition,
    SignalDefinition,
    UpdateDefinition,
    WorkflowDefinition,
    bound_query,
    bound_signal,
)
from ..workflow.dynamic import (
    DYNAMIC,
    dynamic_query,
    dynamic_signal,
    handler_arguments,
    handler_for,
    names,
)
from ..workflow.interceptors import HandleSignalInput

if TYPE_CHECKING:
    from .runtime import WorkflowRuntime

_logger = logging.getLogger("stepwell.workflow")


class Handlers:
    """Registry and buffer."""

    def __init__(self, runtime: "WorkflowRuntime", definition: WorkflowDefinition) -> None:
        self._runtime = runtime
        self.signals: dict[str, SignalDefinition] = dict(definition.signals)
        self.queries: dict[str, QueryDefinition] = dict(definition.queries)
        self.instance: Any = None
        self._buffered: dict[str, list[tuple[int, WorkflowExecutionSignaled]]] = {}
        """Each with a number that says in which order those of all names came."""
        self._kept = 0
        self._waiters: dict[str, list[asyncio.Future[WorkflowExecutionSignaled]]] = {}
        self._warned: set[str] = set()
        self._waits_by_name = definition.cls is None
        self.running: dict[asyncio.Task[None], SignalDefinition | UpdateDefinition] = {}
        """Also those of updates."""

    # --- signals ---------------------------------------------------------------------------------------------------

    def deliver(self, event: WorkflowExecutionSignaled) -> None:
        """Hand a signal to its waiter or handler, or keep it."""
        waiters = self._waiters.get(event.signal_name)
        while waiters:
            waiter = waiters.pop(0)
            if not waiter.done():
                waiter.set_result(event)
                return
        handler = handler_for(self.signals, event.signal_name)
        if handler is None:
            self._kept += 1
            self._buffered.setdefault(event.signal_name, []).append((self._kept, event))
            if self._runtime.replaying and not self._waits_by_name:
                self._warned.add(event.signal_name)  # told when it came
        else:
            self._handle(handler, event)

    def _handle(self, handler: SignalDefinition, event: WorkflowExecutionSignaled) -> None:
        runtime = self._runtime
        try:
            args = handler_arguments(handler, runtime.payload_converter, event.input)
        except PayloadError as error:
            self.warn(f"signal {event.signal_name!r} skipped: {error}")
            return
        if runtime.inbound is not None:
            call = HandleSignalInput(event.signal_name, args, event.headers, _handler=handler)
            self._start(handler, runtime.inbound.handle_signal, [call])
            return
        if not handler.bound:
            args.insert(0, self.instance)
        if handler.is_async:
            self._start(handler, handler.fn, args)
        else:
            runtime.loop.call_soon(self._call, handler.fn, args)

    def _start(self, handler: SignalDefinition, fn: Callable[..., Awaitable[Any]], args: list[Any]) -> None:
        task = self._runtime.loop.create_task(self._run(fn, args), name=f"signal:{handler.name}")
        self.running[task] = handler
        task.add_done_callback(self.ended)

    def _call(self, fn: Callable[..., Any], args: list[Any]) -> None:
        try:
            fn(*args)
        except BaseException as error:
            self._runtime.code_failed(error)

    async def _run(self, fn: Callable[..., Awaitable[Any]], args: list[Any]) -> None:
        try:
            await fn(*args)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._runtime.code_failed(error)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Of a running handler."""
        self.running.pop(task, None)

    def set_signal_handler(self, name: str, fn: Callable[..., Any] | None) -> None:
        """Set or, with None, take away; what was kept for it is handed over at once, oldest first."""
        if fn is None:
            self.signals.pop(name, None)
            return
        handler = self.signals[name] = bound_signal(name, fn)
        for _, event in self._buffered.pop(name, ()):
            self._handle(handler, event)

    def set_dynamic_signal_handler(self, fn: Callable[..., Any] | None) -> None:
        """As :meth:`set_signal_handler`, for all signals without a handler of their own."""
        if fn is None:
            self.signals.pop(DYNAMIC, None)
            return
        self.signals[DYNAMIC] = dynamic_signal(fn)
        kept = sorted(itertools.chain.from_iterable(self._buffered.values()), key=lambda numbered: numbered[0])
        self._buffered.clear()
        for _, event in kept:
            self.deliver(event)

    def wait_for_signal(self, name: str) -> "asyncio.Future[WorkflowExecutionSignaled]":
        """A future of the oldest signal of that name that nobody took."""
        self._waits_by_name = True
        future: asyncio.Future[WorkflowExecutionSignaled] = self._runtime.loop.create_future()
        kept = self._buffered.get(name)
        if kept:
            future.set_result(kept.pop(0)[1])
        else:
            self._waiters.setdefault(name, []).append(future)
        return future

    def give_back(self, name: str, future: "asyncio.Future[WorkflowExecutionSignaled]") -> None:
        """The waiter left without taking: a signal it was given goes to the next one."""
        waiters = self._waiters.get(name, [])
        if future in waiters:
            waiters.remove(future)
        elif future.done() and not future.cancelled():
            self._buffered.setdefault(name, []).insert(0, (0, future.result()))

    # --- warnings --------------------------------------------------------------------------------------------------

    def warn_unhandled(self, *, closing: bool) -> None:
        """One warning for each signal name that no handler took."""
        if not self._buffered or (self._waits_by_name and not closing):
            return
        for name, kept in self._buffered.items():
            if kept and name not in self._warned:
                self._warned.add(name)
                known = names(self.signals)
                self.warn(f"signal {name!r} skipped: there is no handler of that name (handlers: {known})")

    def warn_unfinished(self) -> None:
        """The workflow ends while handlers still run (MS-13)."""
        if not self.running:
            return
        unfinished = [
            handler
            for handler in self.running.values()
            if handler.unfinished_policy is HandlerUnfinishedPolicy.WARN_AND_ABANDON
        ]
        for kind, of in (("signal", SignalDefinition), ("update", UpdateDefinition)):
            found = sorted({handler.name for handler in unfinished if isinstance(handler, of)})
            if found:
                self.warn(
                    f"the workflow ended while these {kind} handlers were running: {', '.join(found)}; "
                    "wait for workflow.all_handlers_finished() first, or give them HandlerUnfinishedPolicy.ABANDON"
                    + ("; who sent the updates is told that they were cut off" if kind == "update" else "")
                )

    def warn_skipped(self, name: str, reason: str) -> None:
        """A signal that was waited for by name does not fit."""
        self.warn(f"signal {name!r} skipped: {reason}")

    def warn(self, problem: str) -> None:
        """One line that names the run; nothing while recorded history is replayed."""
        runtime = self._runtime
        if runtime.replaying or runtime.evicting:
            return
        info = runtime.info
        _logger.warning("workflow %s (%s, run %s): %s", info.workflow_id, info.workflow_type, info.run_id, problem)

    # --- queries ---------------------------------------------------------------------------------------------------

    def set_query_handler(self, name: str, fn: Callable[..., Any] | None) -> None:
        """Set or, with None, take away."""
        if fn is None:
            self.queries.pop(name, None)
        else:
            self.queries[name] = bound_query(name, fn)

    def set_dynamic_query_handler(self, fn: Callable[..., Any] | None) -> None:
        """Set or, with None, take away what answers queries without a handler of their own."""
        if fn is None:
            self.queries.pop(DYNAMIC, None)
        else:
            self.queries[DYNAMIC] = dynamic_query(fn)
