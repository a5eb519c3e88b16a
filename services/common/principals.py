"""Who is known to have asked for what is carried out now (MT-10): the principal whose credentials a transport has
verified, such as an ARN of IAM or the id of a key. Nobody can say it of themselves, unlike an identity.

It goes with the task that carries the request out. The engine takes it over when it makes its own request of it; from
there on it is data. What is spawned to the background is not the caller's any more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context

NOBODY = ""
"""Known: a caller in the same process, an engine without credentials, the engine itself."""

MOST_BYTES = 1_000

_principal: ContextVar[str] = ContextVar("principal", default=NOBODY)


def current() -> str:
    return _principal.get()


@contextmanager
def acting(principal: str) -> Iterator[None]:
    """``principal``: verified, or ``NOBODY``."""
    before = _principal.set(principal.encode(errors="replace")[:MOST_BYTES].decode(errors="ignore"))
    try:
        yield
    finally:
        _principal.reset(before)


def nobodys_context() -> Context | None:
    """For a task that goes on by itself; None: the caller's, which is nobody's as it is."""
    if not _principal.get():
        return None
    context = copy_context()
    context.run(_principal.set, NOBODY)
    return context
