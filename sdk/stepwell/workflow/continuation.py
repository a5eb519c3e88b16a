"""From one run of a chain to the next: going on with an empty history (LC-21), and what the run before left (PM-29)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from ..api.commands import ContinueAsNewWorkflowExecution
from ..api.payloads import Payload
from ..common import RetryPolicy, retry_record
from ..converter.errors import ArgumentError, PayloadError
from ..replay.errors import ContinueAsNewError
from ..replay.runtime import WorkflowRuntime, current_runtime
from ..search_attributes import SearchAttributes, first_of
from .definition import workflow_reference
from .interceptors import ContinueAsNewInput

_ZERO = timedelta(0)


def continue_as_new(
    *call_args: Any,
    args: Sequence[Any] = (),
    workflow: str | type[Any] | Callable[..., Awaitable[Any]] | None = None,
    task_queue: str | None = None,
    run_timeout: timedelta | None = None,
    task_timeout: timedelta | None = None,
    backoff_start_interval: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    memo: Mapping[str, Any] | None = None,
    search_attributes: SearchAttributes | None = None,
) -> NoReturn:
    """End this run now and begin the next of the workflow with these arguments and an empty history, in one step.

    One argument goes by position, several as ``args=[…]``; they are all of the state that the next run gets. It is of
    the same workflow and task queue, with the same timeouts, retry policy, memo, search attributes and headers, where
    nothing else is said. The execution timeout is of the whole chain. Signals that this run has not seen come to the
    next one. Activities that still run are left behind. ``backoff_start_interval`` is a wait before the next run's
    code begins.

    Always raises, an exception that must not be caught. Call it where no handler is at work any more: wait for
    ``workflow.all_handlers_finished()`` first. Raises ``ArgumentError`` for arguments that do not fit the workflow.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("continuing as new")
    if len(call_args) > 1:
        raise TypeError(f"one argument goes by position, several as args=[…]; {len(call_args)} were given by position")
    if args and call_args:
        raise TypeError("give either one argument by position or several as args=[…], not both")
    if isinstance(args, str | bytes):
        raise TypeError(f"args is a list of arguments, not {type(args).__name__}; put the value into a list")
    call = ContinueAsNewInput(
        workflow=workflow,
        args=args or call_args,
        task_queue=task_queue,
        run_timeout=run_timeout,
        task_timeout=task_timeout,
        backoff_start_interval=backoff_start_interval,
        retry_policy=retry_policy,
        memo=memo,
        headers=dict(runtime.info.headers),
        search_attributes=search_attributes,
    )
    if runtime.outbound is not None:
        runtime.outbound.continue_as_new(call)
    end_run(runtime, call)


def has_last_completion_result() -> bool:
    """Whether an earlier run of this cron workflow completed."""
    return bool(current_runtime().last_completion_result)


def get_last_completion_result(type_hint: Any = None) -> Any:
    """Result of the newest earlier run of this cron workflow that completed; None when there is none."""
    runtime = current_runtime()
    payloads = runtime.last_completion_result
    return runtime.payload_converter.from_payloads(payloads, [type_hint or Any])[0] if payloads else None


def get_last_failure() -> BaseException | None:
    """How the run before failed, when this one is its retry or the next turn of its cron schedule."""
    runtime = current_runtime()
    return None if runtime.continued_failure is None else runtime.converter.from_failure(runtime.continued_failure)


def end_run(runtime: WorkflowRuntime, call: ContinueAsNewInput) -> NoReturn:
    """Behind all interceptors."""
    for field, value, least in (
        ("run_timeout", call.run_timeout, "above zero"),
        ("task_timeout", call.task_timeout, "above zero"),
        ("backoff_start_interval", call.backoff_start_interval, "zero or more"),
    ):
        _check(field, value, least)
    task_queue: object = call.task_queue
    if task_queue is not None and not (isinstance(task_queue, str) and task_queue):
        raise ValueError(f"continue_as_new: task_queue must be the name of one, not {call.task_queue!r}")
    name, signature = runtime.info.workflow_type, runtime.definition.signature
    if call.workflow is not None:
        name, signature = workflow_reference(call.workflow)
    raise ContinueAsNewError(
        ContinueAsNewWorkflowExecution(
            workflow_type=name,
            task_queue=call.task_queue or runtime.info.task_queue,
            input=signature.encode(runtime.payload_converter, call.args),
            workflow_run_timeout=call.run_timeout,
            workflow_task_timeout=call.task_timeout,
            backoff_start_interval=call.backoff_start_interval,
            retry_policy=retry_record(call.retry_policy, "continue_as_new"),
            headers=dict(call.headers),
            memo=None if call.memo is None else _memo(runtime, call.memo),
            search_attributes=_attributes(call),
        )
    )


def _check(field: str, value: object, least: str) -> None:
    if value is None:
        return
    if not isinstance(value, timedelta):
        raise TypeError(f"continue_as_new: {field} must be a timedelta, not {type(value).__name__}")
    if value < _ZERO or (value == _ZERO and least == "above zero"):
        raise ValueError(
            f"continue_as_new: {field} must be {least}, not {value.total_seconds():g} s; leave it out to set none"
        )


def _attributes(call: ContinueAsNewInput) -> dict[str, Payload] | None:
    given = call.search_attributes
    return None if given is None else first_of("continue_as_new: search_attributes", given)


def _memo(runtime: WorkflowRuntime, memo: Mapping[str, Any]) -> dict[str, Payload]:
    encoded: dict[str, Payload] = {}
    for key, value in memo.items():
        try:
            encoded[key] = runtime.payload_converter.to_payload(value)
        except PayloadError as error:
            raise ArgumentError(f"memo {key!r}: {error}") from error
    return encoded
