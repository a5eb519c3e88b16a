"""Ways around the guards, for code that knows better (PM-25)."""

from collections.abc import Iterator
from contextlib import contextmanager

from ..replay.runtime import current_runtime, runtime_or_none


def is_replaying() -> bool:
    """True while recorded history is replayed. For things like logging; never for decisions."""
    return current_runtime().replaying


@contextmanager
def sandbox_unrestricted() -> Iterator[None]:
    """In this block, workflow code may use clock, randomness, files and network. What it decides by them will differ
    in replay.
    """
    runtime = runtime_or_none()
    if runtime is None:
        yield
        return
    runtime.unguarded += 1
    try:
        yield
    finally:
        runtime.unguarded -= 1


@contextmanager
def imports_passed_through() -> Iterator[None]:
    """Stands around imports of a workflow file. Modules are never reloaded here, so outside of workflow code it does
    nothing.
    """
    with sandbox_unrestricted():
        yield
