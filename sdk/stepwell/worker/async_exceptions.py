"""Exceptions raised from outside in a thread that runs code of the user, and taken back when that code has ended first.

Such an exception must not simply be replaced by none: CPython would go on looking for it, in every thread and for ever,
which makes each call slower and hangs profilers.
"""

import ctypes
import threading


def raise_in(thread_id: int, error: type[BaseException]) -> None:
    """At the next instruction of the thread; it takes the place of one that is still on its way."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(error))


def take_back(error: type[BaseException]) -> None:
    """In the thread itself: whatever is on its way to it is gone behind this."""
    try:
        raise_in(threading.get_ident(), error)
        for _ in range(1_000):
            pass  # it comes here
    except error:
        pass
