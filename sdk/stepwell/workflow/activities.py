"""Calling activities from workflow code."""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict, TypeVar, TypeVarTuple, Unpack, overload

from ..activity.definition import activity_reference
from ..api.commands import ScheduleActivityTask
from ..api.payloads import Payload
from ..common import Priority, RetryPolicy, retry_record
from ..converter.signatures import CallableSignature
from ..replay.machines.activity import ActivityCancellationType, ActivityHandle
from ..replay.runtime import WorkflowRuntime, current_runtime
from .interceptors import StartActivityInput
from .summaries import user_metadata

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

_ZERO = timedelta(0)
_NO_HEADERS: Mapping[str, Payload] = {}
_MAX_REFERENCES = 4096
_references: dict[Any, tuple[str, CallableSignature]] = {}


class ActivityConfig(TypedDict, total=False):
    """Options of an activity call; one of ``start_to_close_timeout`` and ``schedule_to_close_timeout`` is required
    (AC-03).
    """

    task_queue: str | None
    """Where it runs; the workflow's own task queue when not given."""
    result_type: Any
    """Type of the result of an activity that is called by name."""
    schedule_to_close_timeout: timedelta | None
    """Longest time for everything, retries included (AC-06)."""
    schedule_to_start_timeout: timedelta | None
    """Longest wait in the task queue (AC-04)."""
    start_to_close_timeout: timedelta | None
    """Longest run of one attempt (AC-05)."""
    heartbeat_timeout: timedelta | None
    """Longest silence of a running attempt (AC-07)."""
    retry_policy: RetryPolicy | None
    """AC-09 applies when not given."""
    cancellation_type: ActivityCancellationType
    activity_id: str | None
    """Unique among pending activities of the run; counted up from 1 when not given."""
    summary: str | None
    """For people who read the history; at most 400 bytes."""
    priority: Priority
    """What it leaves open is the workflow's (TQ-12)."""


@overload
def start_activity(
    activity: Callable[[Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity(
    activity: Callable[[Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity(
    activity: str, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[ActivityConfig]
) -> ActivityHandle[Any]: ...
def start_activity(  # type: ignore[misc] # mypy cannot compare Unpack with Any
    activity: str | Callable[..., Any],
    *call_args: Any,
    args: Sequence[Any] = (),
    task_queue: str | None = None,
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    heartbeat_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
    priority: Priority = Priority.default,
) -> ActivityHandle[Any]:
    """Ask for an activity; await the handle for its result.

    Arguments follow the activity, or are given as a list ``args``. Raises ``ArgumentError`` when their number or
    types do not fit the activity's annotations, and ``ValueError`` for missing or negative timeouts. Awaiting raises
    ``ActivityError`` when the activity fails for good, and ``asyncio.CancelledError`` when it or the awaiting task is
    cancelled.
    """
    runtime = current_runtime()
    if runtime.read_only or runtime.evicting:
        runtime.refuse_in_query("calling an activity")
    name, signature = reference(activity)
    if result_type is not None:
        signature = signature.with_result_type(result_type)
    if args and call_args:
        raise ValueError(f"{signature.what}: give the arguments either by position or as args=[…], not both")
    outbound = runtime.outbound
    if outbound is not None:
        call = StartActivityInput(
            activity=name,
            args=args or call_args,
            activity_id=activity_id,
            task_queue=task_queue,
            schedule_to_close_timeout=schedule_to_close_timeout,
            schedule_to_start_timeout=schedule_to_start_timeout,
            start_to_close_timeout=start_to_close_timeout,
            heartbeat_timeout=heartbeat_timeout,
            retry_policy=retry_policy,
            cancellation_type=cancellation_type,
            signature=signature,
            summary=summary,
            priority=priority,
        )
        return outbound.start_activity(call)
    return _schedule(
        runtime,
        name,
        args or call_args,
        activity_id,
        task_queue,
        schedule_to_close_timeout,
        schedule_to_start_timeout,
        start_to_close_timeout,
        heartbeat_timeout,
        retry_policy,
        cancellation_type,
        signature,
        _NO_HEADERS,
        summary,
        priority,
    )


def schedule(runtime: WorkflowRuntime, call: StartActivityInput) -> ActivityHandle[Any]:
    """Behind all interceptors: check the call and ask for the activity."""
    return _schedule(
        runtime,
        call.activity,
        call.args,
        call.activity_id,
        call.task_queue,
        call.schedule_to_close_timeout,
        call.schedule_to_start_timeout,
        call.start_to_close_timeout,
        call.heartbeat_timeout,
        call.retry_policy,
        call.cancellation_type,
        call.signature,
        call.headers,
        call.summary,
        call.priority,
    )


def _schedule(  # what a call has: there is no record of it where no interceptor looks at one
    runtime: WorkflowRuntime,
    name: str,
    args: Sequence[Any],
    activity_id: str | None,
    task_queue: str | None,
    schedule_to_close_timeout: timedelta | None,
    schedule_to_start_timeout: timedelta | None,
    start_to_close_timeout: timedelta | None,
    heartbeat_timeout: timedelta | None,
    retry_policy: RetryPolicy | None,
    cancellation_type: ActivityCancellationType,
    signature: CallableSignature,
    headers: Mapping[str, Payload],
    summary: str | None,
    priority: Priority,
) -> ActivityHandle[Any]:
    if task_queue is not None or activity_id is not None:
        check_names(name, task_queue, activity_id)
    if cancellation_type is not ActivityCancellationType.TRY_CANCEL:
        check_cancellation(name, cancellation_type)
    if priority is not Priority.default:
        check_priority(f"activity {name!r}", priority)
    check_timeouts(
        name, schedule_to_close_timeout, schedule_to_start_timeout, start_to_close_timeout, heartbeat_timeout
    )
    # Arguments that do not fit are refused in a replay too: code may have caught that.
    command = ScheduleActivityTask(
        activity_id=activity_id or runtime.next_activity_id(),
        activity_type=name,
        task_queue=task_queue or runtime.default_task_queue,
        input=signature.encode(runtime.payload_converter, args),
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        heartbeat_timeout=heartbeat_timeout,
        retry_policy=None if retry_policy is None else retry_record(retry_policy, "activity", name),
        headers=dict(headers) if headers else {},
        priority=None if priority is Priority.default else priority.to_record(),
        user_metadata=None if summary is None else user_metadata(runtime, f"activity {name!r}", summary),
    )
    return runtime.start_activity(command, signature, cancellation_type)


@overload
async def execute_activity(
    activity: Callable[[Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity(
    activity: Callable[[Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity(
    activity: str, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[ActivityConfig]
) -> Any: ...
async def execute_activity(activity: Any, *call_args: Any, **options: Any) -> Any:  # type: ignore[misc] # as above
    """Run an activity and return its result; see :func:`start_activity`."""
    try:
        handle = start_activity(activity, *call_args, **options)
    except TypeError:
        check_options("execute_activity", options)
        raise
    return await handle


@overload
def start_activity_method(
    activity: Callable[[Any, Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity_method(
    activity: Callable[[Any, Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity_method(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_activity_method(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> ActivityHandle[R]: ...
def start_activity_method(activity: Any, *call_args: Any, **options: Any) -> ActivityHandle[Any]:  # type: ignore[misc] # as above
    """As :func:`start_activity`, for a method taken from its class, whose instance the worker has."""
    try:
        return start_activity(activity, *call_args, **options)
    except TypeError:
        check_options("start_activity_method", options)
        raise


@overload
async def execute_activity_method(
    activity: Callable[[Any, Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity_method(
    activity: Callable[[Any, Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity_method(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> R: ...
@overload
async def execute_activity_method(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[ActivityConfig]
) -> R: ...
async def execute_activity_method(activity: Any, *call_args: Any, **options: Any) -> Any:  # type: ignore[misc] # as above
    """As :func:`execute_activity`, for a method taken from its class, whose instance the worker has."""
    try:
        handle = start_activity(activity, *call_args, **options)
    except TypeError:
        check_options("execute_activity_method", options)
        raise
    return await handle


def check_options(caller: str, options: dict[str, Any], config: type = ActivityConfig) -> None:
    """Raises ``TypeError`` that names the function which was called, and the option that was meant."""
    known = ("args", *config.__annotations__)
    for option in options:
        if option not in known:
            meant = difflib.get_close_matches(option, known, 1)
            hint = f"did you mean {meant[0]!r}?" if meant else f"it has: {', '.join(known)}"
            raise TypeError(f"{caller}() has no option {option!r}; {hint}") from None


def reference(activity: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    key = getattr(activity, "__func__", activity)
    try:
        found = _references.get(key)
    except TypeError:
        return activity_reference(activity)
    if found is None:
        if len(_references) >= _MAX_REFERENCES:
            _references.clear()
        found = _references[key] = activity_reference(activity)
    return found


def check_names(name: str, task_queue: object, activity_id: object) -> None:
    for field, value in (("task_queue", task_queue), ("activity_id", activity_id)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"activity {name!r}: {field} must be text, not {type(value).__name__}")
    if task_queue == "":
        raise ValueError(f"activity {name!r}: task_queue is empty; leave it out for the workflow's own")


def check_cancellation(name: str, cancellation_type: object) -> None:
    if not isinstance(cancellation_type, ActivityCancellationType):
        raise TypeError(
            f"activity {name!r}: cancellation_type must be one of ActivityCancellationType, not {cancellation_type!r}"
        )


def check_priority(who: str, priority: object) -> None:
    if not isinstance(priority, Priority):
        raise TypeError(f"{who}: priority must be a Priority, not {type(priority).__name__}")


def check_timeouts(
    name: str,
    schedule_to_close: timedelta | None,
    schedule_to_start: timedelta | None,
    start_to_close: timedelta | None,
    heartbeat: timedelta | None,
) -> None:
    if start_to_close is None and schedule_to_close is None:
        raise ValueError(
            f"activity {name!r} needs start_to_close_timeout (one attempt) or schedule_to_close_timeout (all attempts)"
        )
    for field, value in (
        ("schedule_to_close_timeout", schedule_to_close),
        ("schedule_to_start_timeout", schedule_to_start),
        ("start_to_close_timeout", start_to_close),
        ("heartbeat_timeout", heartbeat),
    ):
        if value is None:
            continue
        if not isinstance(value, timedelta):
            raise TypeError(f"activity {name!r}: {field} must be a timedelta, not {type(value).__name__}")
        if value <= _ZERO:
            raise ValueError(
                f"activity {name!r}: {field} must be above zero, not {value.total_seconds():g} s; "
                "leave it out to set none"
            )
