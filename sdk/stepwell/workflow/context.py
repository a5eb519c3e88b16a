"""Time, randomness and identity of the workflow: the same live and in every replay (PM-09, PM-10)."""

import random as _random  # noqa: TID251 - seeded by the history
import uuid
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from ..converter.payload_converter import PayloadConverter
from ..replay.randomness import Randomness
from ..replay.runtime import current_runtime, runtime_or_none
from .info import Info

T = TypeVar("T")


def info() -> Info:
    """Of the run whose code is running."""
    runtime = current_runtime()
    return runtime.info if runtime.outbound is None else runtime.outbound.info()


def extern_functions() -> Mapping[str, Callable[..., Any]]:
    """What the worker's interceptors left for those of workflow code; they are not recorded, so use them with care."""
    return current_runtime().extern_functions


def in_workflow() -> bool:
    """True while workflow code runs."""
    return runtime_or_none() is not None


def now() -> datetime:
    """Time of the current workflow task, UTC. It stands still until the workflow waits."""
    return current_runtime().now


def time() -> float:
    """As :func:`now`, in seconds since 1970."""
    return current_runtime().now.timestamp()


def time_ns() -> int:
    """As :func:`now`, in nanoseconds since 1970; exact to the microsecond."""
    moment = current_runtime().now
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1_000


def _randomness() -> Randomness:
    """What only reads must not take from it."""
    runtime = current_runtime()
    runtime.refuse_in_query("randomness")
    return runtime.randomness


def random() -> _random.Random:
    """The run's own source of randomness, seeded by its run id; a reset gives it a new seed. Not for secrets."""
    return _randomness().main()


def new_random() -> _random.Random:
    """Another source, seeded from :func:`random`, for code that must not change the numbers others get."""
    return _randomness().another()


def random_seed() -> int:
    """A number that follows from the run, for sources of randomness of your own. A reset changes it."""
    return current_runtime().randomness.seed


def register_random_seed_callback(callback: Callable[[int], None]) -> None:
    """``callback`` is called with the new :func:`random_seed` when a reset changes it, before any other code of the
    workflow runs. :func:`random` and :func:`new_random` need none: what they gave gets a new seed by itself."""
    current_runtime().randomness.on_new_seed(callback)


def uuid4() -> uuid.UUID:
    """A random UUID from :func:`random`."""
    return uuid.UUID(int=random().getrandbits(128), version=4)


def uuid7() -> uuid.UUID:
    """A UUID that sorts by workflow time, to the millisecond."""
    milliseconds = time_ns() // 1_000_000
    bits = random().getrandbits(74)
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (bits >> 62) << 64 | 0b10 << 62 | bits & (1 << 62) - 1
    return uuid.UUID(int=value)


def side_effect(function: Callable[[], T], *, result_type: Any = Any) -> T:
    """The value of ``function``, which is run once and recorded: replay has the same value, and does not run it.

    For what comes from outside at once, such as an environment variable; it is run without the guards, must not block,
    and runs again when the worker is lost before the workflow task is recorded. What it raises fails the workflow task.
    For anything that may take time or fail there are local activities.
    """
    value: T = current_runtime().side_effects.value(function, result_type)
    return value


def cancellation_reason() -> str | None:
    """Why the workflow was asked to cancel (CH-10); None when it was not."""
    return current_runtime().cancellation_reason


def payload_converter() -> PayloadConverter:
    """The worker's payload converter."""
    return current_runtime().payload_converter
