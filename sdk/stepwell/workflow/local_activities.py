"""Calling activities that run in the worker's own process, beside the workflow task (AC-24)."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypedDict, TypeVar, TypeVarTuple, Unpack, overload

from ..common import RetryPolicy, retry_record
from ..replay.machines.activity import ActivityCancellationType, ActivityHandle
from ..replay.machines.local_activity import LocalActivityCall
from ..replay.runtime import WorkflowRuntime, current_runtime
from .activities import check_cancellation, check_names, check_options, check_timeouts, reference
from .interceptors import StartLocalActivityInput
from .summaries import summary_payload

R = TypeVar("R")
Ts = TypeVarTuple("Ts")

DEFAULT_LOCAL_RETRY_THRESHOLD = timedelta(minutes=1)

_DEFAULT_RETRIES = RetryPolicy().to_record()


class LocalActivityConfig(TypedDict, total=False):
    """Options of a local activity call; one of ``start_to_close_timeout`` and ``schedule_to_close_timeout`` is required
    (AC-03).
    """

    result_type: Any
    """Type of the result of an activity that is called by name."""
    schedule_to_close_timeout: timedelta | None
    """Longest time for everything, retries included (AC-06)."""
    schedule_to_start_timeout: timedelta | None
    """Longest wait for a free slot of the worker (AC-04)."""
    start_to_close_timeout: timedelta | None
    """Longest run of one attempt (AC-05)."""
    retry_policy: RetryPolicy | None
    """AC-09 applies when not given: tried again until it succeeds."""
    local_retry_threshold: timedelta | None
    """The longest wait between attempts that the workflow task is kept open for; a longer one is a durable timer. One
    minute when not given.
    """
    cancellation_type: ActivityCancellationType
    activity_id: str | None
    """Unique among pending activities of the run; counted up from 1 when not given."""
    summary: str | None
    """For people who read the history; at most 400 bytes."""


@overload
def start_local_activity(
    activity: Callable[[Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity(
    activity: Callable[[Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity(
    activity: str, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[Any]: ...
def start_local_activity(  # type: ignore[misc] # mypy cannot compare Unpack with Any
    activity: str | Callable[..., Any],
    *call_args: Any,
    args: Sequence[Any] = (),
    result_type: Any = None,
    schedule_to_close_timeout: timedelta | None = None,
    schedule_to_start_timeout: timedelta | None = None,
    start_to_close_timeout: timedelta | None = None,
    retry_policy: RetryPolicy | None = None,
    local_retry_threshold: timedelta | None = None,
    cancellation_type: ActivityCancellationType = ActivityCancellationType.TRY_CANCEL,
    activity_id: str | None = None,
    summary: str | None = None,
) -> ActivityHandle[Any]:
    """Ask for an activity that this worker runs itself, and of which only the end is recorded; await the handle.

    It costs no write of its own and does not heartbeat. When the worker is lost before its end is recorded, it runs
    again, with whatever other local activities this workflow task had: at least once, as any activity. Make it short.
    The workflow task is kept alive for it for up to 30 minutes.

    Arguments and exceptions are those of :func:`start_activity`; the worker must have the activity.
    """
    runtime = current_runtime()
    runtime.refuse_in_query("calling an activity")
    name, signature = reference(activity)
    if result_type is not None:
        signature = signature.with_result_type(result_type)
    if args and call_args:
        raise ValueError(f"{signature.what}: give the arguments either by position or as args=[…], not both")
    call = StartLocalActivityInput(
        activity=name,
        args=args or call_args,
        activity_id=activity_id,
        schedule_to_close_timeout=schedule_to_close_timeout,
        schedule_to_start_timeout=schedule_to_start_timeout,
        start_to_close_timeout=start_to_close_timeout,
        retry_policy=retry_policy,
        local_retry_threshold=local_retry_threshold,
        cancellation_type=cancellation_type,
        signature=signature,
        summary=summary,
    )
    outbound = runtime.outbound
    return schedule_local(runtime, call) if outbound is None else outbound.start_local_activity(call)


def schedule_local(runtime: WorkflowRuntime, call: StartLocalActivityInput) -> ActivityHandle[Any]:
    """Behind all interceptors: check the call and ask for the activity."""
    name = call.activity
    check_names(name, None, call.activity_id)
    check_cancellation(name, call.cancellation_type)
    check_timeouts(
        name, call.schedule_to_close_timeout, call.schedule_to_start_timeout, call.start_to_close_timeout, None
    )
    threshold = call.local_retry_threshold
    if threshold is None:
        threshold = DEFAULT_LOCAL_RETRY_THRESHOLD
    elif threshold < timedelta(0):
        raise ValueError(f"local activity {name!r}: local_retry_threshold must not be negative")
    record = LocalActivityCall(
        activity_id=call.activity_id or runtime.next_activity_id(),
        activity_type=name,
        input=call.signature.encode(runtime.payload_converter, call.args),
        scheduled_time=runtime.now,
        retry_policy=retry_record(call.retry_policy, "local activity", name) or _DEFAULT_RETRIES,
        local_retry_threshold=threshold,
        schedule_to_close_timeout=call.schedule_to_close_timeout,
        schedule_to_start_timeout=call.schedule_to_start_timeout,
        start_to_close_timeout=call.start_to_close_timeout,
        headers=dict(call.headers) if call.headers else {},
        summary=summary_payload(runtime, f"local activity {name!r}", call.summary),
    )
    return runtime.local.start(record, call.signature, call.cancellation_type)


@overload
async def execute_local_activity(
    activity: Callable[[Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity(
    activity: Callable[[Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity(
    activity: Callable[..., Awaitable[R]], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity(
    activity: Callable[..., R], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity(
    activity: str, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[LocalActivityConfig]
) -> Any: ...
async def execute_local_activity(activity: Any, *call_args: Any, **options: Any) -> Any:  # type: ignore[misc] # as above
    """Run a local activity and return its result; see :func:`start_local_activity`."""
    return await _start("execute_local_activity", activity, call_args, options)


@overload
def start_local_activity_method(
    activity: Callable[[Any, Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity_method(
    activity: Callable[[Any, Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[R]: ...
@overload
def start_local_activity_method(
    activity: Callable[..., Any], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[Any]: ...
def start_local_activity_method(activity: Any, *call_args: Any, **options: Any) -> ActivityHandle[Any]:  # type: ignore[misc] # as above
    """As :func:`start_local_activity`, for a method taken from its class, whose instance the worker has."""
    return _start("start_local_activity_method", activity, call_args, options)


@overload
async def execute_local_activity_method(
    activity: Callable[[Any, Unpack[Ts]], Awaitable[R]], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity_method(
    activity: Callable[[Any, Unpack[Ts]], R], *call_args: *Ts, **options: Unpack[LocalActivityConfig]
) -> R: ...
@overload
async def execute_local_activity_method(
    activity: Callable[..., Any], *, args: Sequence[Any], **options: Unpack[LocalActivityConfig]
) -> Any: ...
async def execute_local_activity_method(activity: Any, *call_args: Any, **options: Any) -> Any:  # type: ignore[misc] # as above
    """As :func:`execute_local_activity`, for a method taken from its class, whose instance the worker has."""
    return await _start("execute_local_activity_method", activity, call_args, options)


def start_local_activity_class(
    activity: type, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[LocalActivityConfig]
) -> ActivityHandle[Any]:
    """As :func:`start_local_activity`, for a class whose instances are called."""
    return _start("start_local_activity_class", activity, call_args, {"args": args, **options})


async def execute_local_activity_class(
    activity: type, *call_args: Any, args: Sequence[Any] = (), **options: Unpack[LocalActivityConfig]
) -> Any:
    """As :func:`execute_local_activity`, for a class whose instances are called."""
    return await _start("execute_local_activity_class", activity, call_args, {"args": args, **options})


def _start(caller: str, activity: Any, call_args: Sequence[Any], options: dict[str, Any]) -> ActivityHandle[Any]:
    try:
        return start_local_activity(activity, *call_args, **options)
    except TypeError:
        check_options(caller, options, LocalActivityConfig)
        raise
