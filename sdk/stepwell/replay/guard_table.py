"""What workflow code must not use, and what to use instead."""

import asyncio
import asyncio.tasks
import concurrent.futures.thread
import os
import random  # noqa: TID251 - named here to be refused
import secrets  # noqa: TID251 - named here to be refused
import sys
import threading
import time
import uuid
import zoneinfo
from collections.abc import Callable
from typing import Any

from . import guard_datetime
from .guards import check, guarded, running, watch_collector

_CLOCK = "use workflow.now(), workflow.time() or workflow.time_ns()"
_SLEEP = "use workflow.sleep() or asyncio.sleep()"
_RANDOM = "use workflow.random() or workflow.uuid4()"
_SECRET = "make secrets in an activity, or use workflow.random() for what need not be secret"
_ENVIRON = "read it before the worker starts, or in an activity, and pass it as an argument"
_FILES = "read and write files in an activity"
_NETWORK = "do it in an activity (workflow.execute_activity)"
_THREADS = "use asyncio tasks, or do the work in an activity"
_BLOCKING = "use asyncio.Event, asyncio.Lock, asyncio.Queue or workflow.wait_condition()"

_FUNCTIONS: tuple[tuple[Any, str, str], ...] = (
    (time, "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns", _CLOCK),
    (time, "process_time process_time_ns thread_time thread_time_ns clock_gettime clock_gettime_ns", _CLOCK),
    (time, "sleep", _SLEEP),
    (uuid, "uuid1 uuid4 uuid6 uuid7", "use workflow.uuid4() or workflow.uuid7()"),
    (secrets, "token_bytes token_hex token_urlsafe choice randbelow randbits", _SECRET),
    (os, "urandom getrandom", _RANDOM),
    (os, "getenv getenvb", _ENVIRON),
    (os, "stat lstat access getcwd", _FILES),
    (os, "getloadavg times cpu_count", "ask for it in an activity"),
)
_METHODS: tuple[tuple[type, str, str, str], ...] = (
    (type(os.environ), "__getitem__ __iter__ __len__ __setitem__ __delitem__ copy", "os.environ", _ENVIRON),
    (threading.Condition, "wait", "blocking waits of threading and queue", _BLOCKING),
    (threading.Thread, "start join", "threads", _THREADS),
    (concurrent.futures.thread.ThreadPoolExecutor, "submit", "thread pools", _THREADS),
)
_WITHOUT_TIME = "localtime gmtime ctime asctime strftime"
_ORDERED = "its order differs between processes; use workflow.{0}(), which has the same arguments"

_EVENTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rmdir", "os.remove", "os.rename"), ("files", _FILES)
    ),
    **dict.fromkeys(("os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime"), ("files", _FILES)),
    **dict.fromkeys(("shutil.copyfile", "shutil.move", "shutil.rmtree", "tempfile.mkstemp"), ("files", _FILES)),
    **dict.fromkeys(("sqlite3.connect", "dbm.open"), ("databases", _NETWORK)),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), ("os.environ", _ENVIRON)),
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty"), ("subprocesses", _NETWORK)),
    **dict.fromkeys(("os.posix_spawn", "os.spawn", "os.startfile", "pty.spawn"), ("subprocesses", _NETWORK)),
    **dict.fromkeys(("_thread.start_new_thread", "_thread.start_joinable_thread"), ("threads", _THREADS)),
    "builtins.input": ("input()", "send the workflow a signal"),
}

_TIME_ZONES = tuple(zoneinfo.TZPATH)

_replacements: dict[int, tuple[Any, Any]] = {}


def replacements() -> dict[int, tuple[Any, Any]]:
    """What a name bound early may stand for, by ``id``: the original and its guarded stand-in."""
    return _replacements


def put_up() -> None:
    """Put up all guards; the second call does nothing.

    Event loops get the clock as it was, since they read it at every turn: workflow code has a loop of its own.
    """
    if _replacements:
        return
    monotonic = time.monotonic
    for owner, names, instead in _FUNCTIONS:
        for name in names.split():
            _replace(owner, name, f"{owner.__name__}.{name}()", instead)
    for name in _WITHOUT_TIME.split():
        _replace(time, name, f"time.{name}() of the present", _CLOCK, only_if=_lacks_time(name))
    asyncio.BaseEventLoop.time = staticmethod(monotonic)  # type: ignore[assignment,method-assign]
    for owner, names, what, instead in _METHODS:
        for name in names.split():
            setattr(owner, name, guarded(getattr(owner, name), what, instead))
    _put_up_random()
    for name in ("wait", "as_completed"):
        _replace_in_asyncio(name)
    for original, replacement in guard_datetime.pairs():
        _replacements[id(original)] = (original, replacement)
    watch_collector()
    sys.addaudithook(_audit)


def _put_up_random() -> None:
    for name in random.__all__:
        if getattr(getattr(random, name), "__self__", None) is random._inst:
            _replace(random, name, f"random.{name}()", _RANDOM)
    _replace(random, "_urandom", "random.SystemRandom", _SECRET)
    unseeded = "random.Random() without a seed"
    random.Random.__init__ = guarded_if(  # type: ignore[method-assign]
        random.Random.__init__, unseeded, "use workflow.random() or workflow.new_random()", _lacks_seed
    )


def _replace(
    owner: Any,
    name: str,
    what: str,
    instead: str,
    only_if: Callable[[tuple[Any, ...], dict[str, Any]], bool] | None = None,
) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return
    replacement = guarded(original, what, instead) if only_if is None else guarded_if(original, what, instead, only_if)
    setattr(owner, name, replacement)
    _replacements[id(original)] = (original, replacement)


def _replace_in_asyncio(name: str) -> None:
    original = getattr(asyncio, name)
    replacement = guarded(original, f"asyncio.{name}()", _ORDERED.format(name))
    for owner in (asyncio, asyncio.tasks):
        setattr(owner, name, replacement)
    _replacements[id(original)] = (original, replacement)


def guarded_if(
    original: Callable[..., Any],
    what: str,
    instead: str,
    applies: Callable[[tuple[Any, ...], dict[str, Any]], bool],
) -> Callable[..., Any]:
    """As ``guarded``, for some calls only."""
    strict = guarded(original, what, instead)

    def look_first(*args: Any, **kwargs: Any) -> Any:
        if running and applies(args, kwargs):
            return strict(*args, **kwargs)
        return original(*args, **kwargs)

    look_first.__name__ = getattr(original, "__name__", what)
    look_first.__doc__ = original.__doc__
    return look_first


def _lacks_time(name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], bool]:
    needed = 2 if name == "strftime" else 1
    return lambda args, kwargs: len(args) < needed or args[needed - 1] is None


def _lacks_seed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return (args[1] if len(args) > 1 else kwargs.get("x")) is None


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if not running:
        return
    found = _EVENTS.get(event)
    if found is not None:
        if event == "open" and str(args[0]).startswith(_TIME_ZONES):
            return  # read by zoneinfo, which is written in C and leaves no frame to be recognised by
        check(*found)
    elif event.startswith("socket."):
        check("the network", _NETWORK)
