"""Child workflows: workflows that a workflow starts, waits for, and that end with it if it says so (CH-01 to CH-08)."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from typing import Any, TypedDict, TypeVar, Unpack, overload

from ..api.commands import StartChildWorkflowExecution
from ..api.enums import (
    ChildWorkflowCancellationType,
    ParentClosePolicy,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from ..api.payloads import Payload
from ..common import Priority, RetryPolicy, retry_record
from ..converter.errors import ArgumentError, PayloadError
from ..replay.flags import LogicFlag
from ..replay.machines.child import ChildMachine, ChildWorkflowHandle, given
from ..replay.runtime import WorkflowRuntime, current_runtime
from ..search_attributes import SearchAttributes, first_of
from .activities import check_priority
from .context import uuid4
from .definition import workflow_reference
from .external import elsewhere
from .interceptors import StartChildWorkflowInput
from .summaries import user_metadata

R = TypeVar("R")

_ZERO = timedelta(0)


class ChildWorkflowConfig(TypedDict, total=False):
    """Options of a child workflow."""

    id: str | None
    """Its workflow id; a random one of the run's own when not given."""
    task_queue: str | None
    """Where it runs; the workflow's own task queue when not given."""
    result_type: Any
    """Type of the result of a child that is called by name."""
    cancellation_type: ChildWorkflowCancellationType
    """What cancelling the child does (CH-05)."""
    parent_close_policy: ParentClosePolicy
    """What the end of this run does to the child (CH-02)."""
    execution_timeout: timedelta | None
    run_timeout: timedelta | None
    task_timeout: timedelta | None
    id_reuse_policy: WorkflowIDReusePolicy
    id_conflict_policy: WorkflowIDConflictPolicy
    """FAIL, or USE_EXISTING: a workflow of that id that is open is watched, whoever started it (CH-18)."""
    retry_policy: RetryPolicy | None
    cron_schedule: str
    memo: Mapping[str, Any] | None
    search_attributes: SearchAttributes | None
    """By what it can be found (VI-07): ``[key.value_set(value)]``, or typed."""
    static_summary: str | None
    static_details: str | None
    """For people (PM-27): at most 400 and 20,000 bytes."""
    priority: Priority
    """What it leaves open is this workflow's (TQ-12)."""
    namespace: str | None
    """Where it is started; the workflow's own when not given. Another one must list this one among its callers."""


@overload
async def start_child_workflow(
    workflow: Callable[..., Awaitable[R]],
    *call_args: Any,
    args: Sequence[Any] = (),
    **options: Unpack[ChildWorkflowConfig],
) -> ChildWorkflowHandle[R]: ...
@overload
async def start_child_workflow(
    workflow: str | type[Any], *call_args: Any, args: Sequence[Any] = (), **options: Unpack[ChildWorkflowConfig]
) -> ChildWorkflowHandle[Any]: ...
async def start_child_workflow(
    workflow: str | Callable[..., Any],
    *call_args: Any,
    args: Sequence[Any] = (),
    id: str | None = None,
    task_queue: str | None = None,
    result_type: Any = None,
    cancellation_type: ChildWorkflowCancellationType = ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
    parent_close_policy: ParentClosePolicy = ParentClosePolicy.TERMINATE,
    execution_timeout: timedelta | None = None,
    run_timeout: timedelta | None = None,
    task_timeout: timedelta | None = None,
    id_reuse_policy: WorkflowIDReusePolicy = WorkflowIDReusePolicy.ALLOW_DUPLICATE,
    id_conflict_policy: WorkflowIDConflictPolicy = WorkflowIDConflictPolicy.FAIL,
    retry_policy: RetryPolicy | None = None,
    cron_schedule: str = "",
    memo: Mapping[str, Any] | None = None,
    search_attributes: SearchAttributes | None = None,
    static_summary: str | None = None,
    static_details: str | None = None,
    priority: Priority = Priority.default,
    namespace: str | None = None,
    **named: Any,
) -> ChildWorkflowHandle[Any]:
    """Start a workflow as a child of this one, given by its run method, its function, its class or its name. Returning
    means that it has started; await the handle for its result.

    Raises ``WorkflowAlreadyStartedError`` when the id is taken (CH-04), ``ArgumentError`` when the arguments do not fit
    the workflow's. Awaiting the handle raises ``ChildWorkflowError`` when the child ends other than by completing, and
    ``asyncio.CancelledError`` when the awaiting task is cancelled. Cancelling the wait for the start takes the start
    back, or asks the child to cancel; once this has returned only the handle does.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("starting a child workflow")
    to_its_end = named.pop("_to_its_end", False)
    name, signature = workflow_reference(workflow)
    if result_type is not None:
        signature = signature.with_result_type(result_type)
    call = StartChildWorkflowInput(
        workflow=name,
        args=given(signature.what, call_args, args, named),
        id=str(uuid4()) if id is None else id,
        task_queue=task_queue,
        cancellation_type=cancellation_type,
        parent_close_policy=parent_close_policy,
        execution_timeout=execution_timeout,
        run_timeout=run_timeout,
        task_timeout=task_timeout,
        id_reuse_policy=id_reuse_policy,
        id_conflict_policy=id_conflict_policy,
        retry_policy=retry_policy,
        cron_schedule=cron_schedule,
        memo=memo,
        signature=signature,
        priority=priority,
        search_attributes=search_attributes,
        static_summary=static_summary,
        static_details=static_details,
        namespace=namespace,
        _to_its_end=to_its_end,
    )
    outbound = runtime.outbound
    return await (start(runtime, call) if outbound is None else outbound.start_child_workflow(call))


@overload
async def execute_child_workflow(
    workflow: Callable[..., Awaitable[R]],
    *call_args: Any,
    args: Sequence[Any] = (),
    **options: Unpack[ChildWorkflowConfig],
) -> R: ...
@overload
async def execute_child_workflow(
    workflow: str | type[Any], *call_args: Any, args: Sequence[Any] = (), **options: Unpack[ChildWorkflowConfig]
) -> Any: ...
async def execute_child_workflow(workflow: Any, *call_args: Any, **options: Any) -> Any:
    """Start a child and return its result; see :func:`start_child_workflow`. Cancelling it, also before the child has
    started, asks the child to cancel and waits as ``cancellation_type`` says."""
    begin: Callable[..., Awaitable[ChildWorkflowHandle[Any]]] = start_child_workflow
    return await (await begin(workflow, *call_args, **options, _to_its_end=True))


async def start(runtime: WorkflowRuntime, call: StartChildWorkflowInput) -> ChildWorkflowHandle[Any]:
    """Behind all interceptors: check the call, ask for the child and wait until it has started."""
    _check(call)
    command = StartChildWorkflowExecution(
        namespace=elsewhere(runtime, call.namespace),
        workflow_id=call.id,
        workflow_type=call.workflow,
        task_queue=call.task_queue or runtime.default_task_queue,
        input=call.signature.encode(runtime.payload_converter, call.args),
        workflow_execution_timeout=call.execution_timeout,
        workflow_run_timeout=call.run_timeout,
        workflow_task_timeout=call.task_timeout,
        parent_close_policy=call.parent_close_policy,
        workflow_id_reuse_policy=call.id_reuse_policy,
        workflow_id_conflict_policy=call.id_conflict_policy,
        retry_policy=retry_record(call.retry_policy, "child workflow", call.id),
        cron_schedule=call.cron_schedule,
        headers=dict(call.headers),
        memo=_memo(runtime, call),
        search_attributes=first_of(f"search_attributes of child {call.id!r}", call.search_attributes),
        user_metadata=user_metadata(runtime, f"child {call.id!r}", call.static_summary, call.static_details),
        priority=call.priority.to_record(),
    )
    machine = ChildMachine(runtime, command, call.signature, call.cancellation_type)
    runtime.ask(machine)
    try:
        await machine.start
    except asyncio.CancelledError:
        machine.start._log_traceback = machine.handle._log_traceback = False
        if call._to_its_end and machine.ends_as_asked():
            await _its_end(runtime, machine)
        raise
    return machine.handle


async def _its_end(runtime: WorkflowRuntime, machine: ChildMachine) -> None:
    """However it ends: whoever waits for it was cancelled."""
    if runtime.flags.use(LogicFlag.CHILD_TO_ITS_END, replaying=runtime.replaying):
        with contextlib.suppress(Exception):
            await machine.handle


def _memo(runtime: WorkflowRuntime, call: StartChildWorkflowInput) -> dict[str, Payload]:
    values: dict[str, Payload] = {}
    for name, value in (call.memo or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"child workflow {call.id!r}: memo has the name {name!r}, which is no text")
        try:
            values[name] = runtime.payload_converter.to_payload(value)
        except PayloadError as error:
            raise ArgumentError(f"child workflow {call.id!r}: memo {name!r}: {error}") from error
    return values


def _check(call: StartChildWorkflowInput) -> None:
    who = f"child workflow {call.id!r}"
    for field, value in (("id", call.id), ("task_queue", call.task_queue), ("namespace", call.namespace)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{who}: {field} must be text, not {type(value).__name__}")
    if not call.id:
        raise ValueError("child workflow: id is empty; leave it out for a random one")
    if call.task_queue == "":
        raise ValueError(f"{who}: task_queue is empty; leave it out for the workflow's own")
    kinds: tuple[tuple[str, object, type[Enum]], ...] = (
        ("cancellation_type", call.cancellation_type, ChildWorkflowCancellationType),
        ("parent_close_policy", call.parent_close_policy, ParentClosePolicy),
        ("id_reuse_policy", call.id_reuse_policy, WorkflowIDReusePolicy),
        ("id_conflict_policy", call.id_conflict_policy, WorkflowIDConflictPolicy),
    )
    for field, given_value, kind in kinds:
        if not isinstance(given_value, kind):
            raise TypeError(f"{who}: {field} must be one of {kind.__name__}, not {given_value!r}")
    if call.id_conflict_policy is WorkflowIDConflictPolicy.TERMINATE_EXISTING:
        raise ValueError(f"{who}: id_conflict_policy TERMINATE_EXISTING is not for children; use FAIL or USE_EXISTING")
    check_priority(who, call.priority)
    _check_timeouts(who, call)


def _check_timeouts(who: str, call: StartChildWorkflowInput) -> None:
    for field, timeout in (
        ("execution_timeout", call.execution_timeout),
        ("run_timeout", call.run_timeout),
        ("task_timeout", call.task_timeout),
    ):
        if timeout is None:
            continue
        if not isinstance(timeout, timedelta):
            raise TypeError(f"{who}: {field} must be a timedelta, not {type(timeout).__name__}")
        if timeout <= _ZERO:
            raise ValueError(
                f"{who}: {field} must be above zero, not {timeout.total_seconds():g} s; leave it out to set none"
            )
