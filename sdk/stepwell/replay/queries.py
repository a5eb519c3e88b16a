"""Answers queries from the state of a run, without changing it (MS-19, MS-24)."""

import traceback
from typing import Any

import msgspec

from ..api.common import Headers
from ..api.failures import Failure
from ..api.payloads import Payloads
from ..converter.data_converter import DataConverter
from ..converter.errors import PayloadError
from ..converter.failure_converter import cut
from ..converter.signatures import CallableSignature
from ..workflow.dynamic import handler_arguments, handler_for, names
from ..workflow.interceptors import HandleQueryInput
from .errors import ForbiddenInWorkflowError, ReadOnlyContextError, UnansweredQueryError
from .intercepted import without_waiting
from .runtime import WorkflowRuntime

STACK_TRACE = "__stack_trace"
METADATA = "__workflow_metadata"
_BUILT_IN = CallableSignature("built-in query")


def answer_query(runtime: WorkflowRuntime, query_type: str, args: Payloads, headers: Headers) -> Payloads:
    """Raises :class:`UnansweredQueryError` for an unknown query, ``ArgumentError`` for arguments that do not fit,
    and what the handler raises.
    """
    if query_type == STACK_TRACE:
        return _BUILT_IN.encode_result(runtime.payload_converter, _stacks(runtime))
    if query_type == METADATA:
        return _BUILT_IN.encode_result(runtime.payload_converter, _metadata(runtime))
    handler = handler_for(runtime.handlers.queries, query_type)
    if handler is None:
        known = names(runtime.handlers.queries)
        raise UnansweredQueryError(
            f"workflow {runtime.info.workflow_type!r} has no query {query_type!r}; it has: {known}"
        )
    values = handler_arguments(handler, runtime.payload_converter, args)
    if runtime.inbound is not None:
        call = HandleQueryInput(query_type, values, headers, _handler=handler)
        result = without_waiting(runtime.inbound.handle_query(call))
    else:
        result = handler.fn(*values) if handler.bound else handler.fn(runtime.handlers.instance, *values)
    return handler.signature.encode_result(runtime.payload_converter, result)


def query_failure(converter: DataConverter, error: Exception) -> Failure:
    """Who asked is told the message alone, so that the type of a handler's exception has to be in it."""
    failure = converter.to_failure(error)
    if isinstance(error, UnansweredQueryError | ReadOnlyContextError | ForbiddenInWorkflowError | PayloadError):
        return failure
    message = f"{type(error).__name__}: {failure.message}" if failure.message else type(error).__name__
    return msgspec.structs.replace(failure, message=cut(message))


def _stacks(runtime: WorkflowRuntime) -> str:
    """Of every task, down to where it waits."""
    parts: list[str] = []
    for task in runtime.loop.live_tasks():
        lines = [f"Task {task.get_name()!r}\n"]
        waiting: Any = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
            if frame is not None:
                lines += traceback.format_list(traceback.extract_stack(frame, limit=1))
            waiting = getattr(waiting, "cr_await", None) or getattr(waiting, "gi_yieldfrom", None)
        parts.append("".join(lines))
    return "\n".join(parts)


def _metadata(runtime: WorkflowRuntime) -> dict[str, Any]:
    handlers = runtime.handlers
    return {
        "type": runtime.info.workflow_type,
        "signals": [{"name": s.name, "description": s.description} for s in handlers.signals.values()],
        "current_details": runtime.current_details,
        "updates": [{"name": u.name, "description": u.description} for u in runtime.updates.handlers.values()],
        "queries": [{"name": q.name, "description": q.description} for q in handlers.queries.values()],
    }
