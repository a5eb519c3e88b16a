"""Updates of one run: validated, accepted or rejected, handled (MS-25, MS-26).

Live, an update comes with its workflow task. If it is accepted its request is in the history, behind the task; so
replay delivers it at the same place, to the handler alone: what it did was decided then, and validators do not run.
A rejected one is known to nobody afterwards, which is why validators only read.
"""

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..api.commands import RejectUpdate
from ..api.updates import UpdateOutcome, UpdateRequest
from ..converter.errors import PayloadError
from ..exceptions import ApplicationError
from ..workflow.definition import UpdateDefinition, WorkflowDefinition, bound_update
from ..workflow.dynamic import DYNAMIC, dynamic_update, handler_arguments, handler_for, names
from ..workflow.interceptors import HandleUpdateInput
from .errors import ForbiddenInWorkflowError, ReadOnlyContextError
from .machines.update import UpdateAcceptance, UpdateCompletion, UpdateRejection

if TYPE_CHECKING:
    from .runtime import WorkflowRuntime


@dataclass(frozen=True)
class UpdateInfo:
    """Which update is being handled."""

    id: str
    name: str


update_at_hand: contextvars.ContextVar[UpdateInfo | None] = contextvars.ContextVar("update_at_hand", default=None)
"""Of the running handler or validator, and of all tasks that it starts."""


class Updates:
    """Registry of handlers, and what has become of the updates of this workflow task."""

    def __init__(self, runtime: "WorkflowRuntime", definition: WorkflowDefinition) -> None:
        self._runtime = runtime
        self.handlers: dict[str, UpdateDefinition] = dict(definition.updates)
        self._waiting: list[UpdateRequest] = []
        """Came with this workflow task, and have no handler yet."""
        self.rejections: list[RejectUpdate] = []
        """Of this workflow task, until its completion is accepted: ends of local activities make further results of the
        same task. They make no events."""
        self.carried: dict[str, UpdateRequest] = {}
        """Taken over from another run, by an event of their own: their acceptance does not repeat the request."""

    def deliver(self, request: UpdateRequest) -> None:
        handler = handler_for(self.handlers, request.input.name)
        if handler is None:
            self._waiting.append(request)
        else:
            self._take(handler, request)

    def set_handler(self, name: str, fn: Callable[..., Any] | None, validator: Callable[..., None] | None) -> None:
        """Set or, with None, take away; what waits for it is handed over at once, oldest first."""
        if fn is None:
            self.handlers.pop(name, None)
            return
        handler = dynamic_update(fn) if name == DYNAMIC else bound_update(name, fn)
        self.handlers[name] = replace(handler, validator=validator)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self.deliver(request)

    def reject_waiting(self) -> None:
        """The workflow task ends; what no handler has taken is not kept."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            known = names(self.handlers)
            self._reject(
                request,
                ApplicationError(
                    f"workflow {self._runtime.info.workflow_type!r} has no handler for update {request.input.name!r}; "
                    f"it has: {known}",
                    type="UnknownUpdate",
                    non_retryable=True,
                ),
            )

    # --- one update ------------------------------------------------------------------------------------------------

    def _take(self, handler: UpdateDefinition, request: UpdateRequest) -> None:
        runtime = self._runtime
        info = UpdateInfo(request.meta.update_id, request.input.name)
        context = contextvars.copy_context()
        context.run(update_at_hand.set, info)
        try:
            args = handler_arguments(handler, runtime.payload_converter, request.input.args)
            if not runtime.replaying:
                context.run(self._validate, handler, info, request, list(args))
        except (ReadOnlyContextError, ForbiddenInWorkflowError) as error:
            runtime.code_failed(error)  # a bug in the validator, not in what the caller sent
            return
        except (Exception, asyncio.CancelledError) as error:
            self._reject(request, error)
            return
        runtime.ask(UpdateAcceptance(info.id))
        self._handle(handler, info, request, args, context)

    def _validate(self, handler: UpdateDefinition, info: UpdateInfo, request: UpdateRequest, args: list[Any]) -> None:
        runtime = self._runtime
        if runtime.inbound is None and handler.validator is None:
            return
        runtime.read_only = "the validator of an update"
        try:
            if runtime.inbound is not None:
                call = HandleUpdateInput(info.id, info.name, args, request.input.headers, _handler=handler)
                runtime.inbound.handle_update_validator(call)
            else:
                validate(handler, runtime.handlers.instance, args)
        finally:
            runtime.read_only = ""

    def _handle(
        self,
        handler: UpdateDefinition,
        info: UpdateInfo,
        request: UpdateRequest,
        args: list[Any],
        context: contextvars.Context,
    ) -> None:
        runtime = self._runtime
        if runtime.inbound is None and not handler.is_async:
            runtime.loop.call_soon(self._call, handler, info, args, context=context)
            return
        headers = request.input.headers
        call = HandleUpdateInput(info.id, info.name, args, headers, _handler=handler)
        task = runtime.loop.create_task(self._run(call), name=f"update:{info.name}", context=context)
        runtime.handlers.running[task] = handler
        task.add_done_callback(runtime.handlers.ended)

    def _call(self, handler: UpdateDefinition, info: UpdateInfo, args: list[Any]) -> None:
        runtime = self._runtime
        try:
            result = handler.fn(*args) if handler.bound else handler.fn(runtime.handlers.instance, *args)
            outcome = self._success(handler, result)
        except BaseException as error:
            self._failed(info.id, error)
        else:
            runtime.ask(UpdateCompletion(info.id, outcome))

    async def _run(self, call: HandleUpdateInput) -> None:
        runtime, handler = self._runtime, call._handler
        try:
            if runtime.inbound is not None:
                result = await runtime.inbound.handle_update_handler(call)
            else:
                args = call.args if handler.bound else (runtime.handlers.instance, *call.args)
                result = await handler.fn(*args)
            outcome = self._success(handler, result)
        except BaseException as error:
            if runtime.evicting:
                raise
            self._failed(call.id, error)
        else:
            runtime.ask(UpdateCompletion(call.id, outcome))

    def _success(self, handler: UpdateDefinition, result: Any) -> UpdateOutcome:
        return UpdateOutcome(success=handler.signature.encode_result(self._runtime.payload_converter, result))

    def _failed(self, update_id: str, error: BaseException) -> None:
        """As with the main function, a failure is the outcome, and a bug fails the workflow task (ER-03)."""
        runtime = self._runtime
        if runtime.is_failure(error):
            runtime.ask(UpdateCompletion(update_id, UpdateOutcome(failure=runtime.to_failure(error))))
        else:
            runtime.code_failed(error)

    def _reject(self, request: UpdateRequest, error: BaseException) -> None:
        """In replay it only makes the difference to the history show."""
        runtime = self._runtime
        if runtime.replaying:
            return
        if isinstance(error, PayloadError):
            error = ApplicationError(
                f"update {request.input.name!r}: {error}", type=type(error).__name__, non_retryable=True
            )
        failure = runtime.to_failure(error)
        rejection = RejectUpdate(update_id=request.meta.update_id, failure=failure)
        if request.meta.update_id in self.carried:
            runtime.ask(UpdateRejection(rejection))
        else:
            self.rejections.append(rejection)


def validate(handler: UpdateDefinition, instance: Any, args: Any) -> None:
    """Raises what the validator raises, if there is one."""
    if handler.validator is not None:
        handler.validator(*args) if handler.bound else handler.validator(instance, *args)
