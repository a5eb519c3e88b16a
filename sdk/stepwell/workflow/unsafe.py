"""Ways around the guards, for code that knows better (PM-25)."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from ..replay.guard_modules import pass_through
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


def imports_passed_through() -> AbstractContextManager[None]:
    """Stands around imports of a workflow file. Modules are never reloaded here; those imported in this block stay as
    they are, so that the guards do not see clock and randomness which they bound early, even when workflow code calls
    them.
    """
    return _passing_through(sys._getframe(1).f_globals)


@contextmanager
def _passing_through(namespace: dict[str, Any]) -> Iterator[None]:
    before = dict(namespace)
    with sandbox_unrestricted():
        yield
    pass_through(value for name, value in namespace.items() if name not in before or before[name] is not value)
