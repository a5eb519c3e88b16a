"""Guards around workflow code: what replay cannot repeat raises, naming what to use instead (PM-24).

Theory of operation. While workflow code runs, its thread is noted in ``running``; outside of that, every guard costs
one look at an empty dict. There are three kinds of guard, all put up once per process, with the first guarded
workflow:

- functions of the standard library are replaced by ones that look first (``guard_table``);
- an audit hook sees what cannot be replaced: files, sockets, subprocesses, new threads;
- in the modules that define workflows and in those of the user that they reach (``guard_modules``), names bound before
  that (``from time import time``) and the classes ``datetime`` and ``date``, which are written in C, are exchanged for
  guarded ones (``guard_datetime``).

A violation fails the workflow task even when the code catches the error. Imports, logging, tracebacks, time zone data
and debuggers may do what they need. This finds mistakes; it is no security boundary.
"""

import gc
import signal
import sys
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from ..workflow.definition import WorkflowDefinition
from .errors import Evicted, ForbiddenInWorkflowError
from .guard_modules import asks_for_the_present, reached_from

if TYPE_CHECKING:
    from .runtime import WorkflowRuntime

running: dict[int, "WorkflowRuntime"] = {}
"""Whose code runs, by thread. Written by ``run``, at each turn of a workflow."""
this_thread = get_ident
_collecting = False
_installed: dict[int, tuple[WorkflowDefinition, int]] = {}
_END_OF_USER_CODE = frozenset({"stepwell.replay.loop", "stepwell.replay.main", "stepwell.replay.queries"})
_MAY = (
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "logging",
    "linecache",
    "tokenize",
    "warnings",
    "zoneinfo",
    "encodings",
    "weakref",
    "bdb",
    "pdb",
    "pydevd",
    "coverage",
)
_NETWORK = frozenset({"urllib.request", "http.client"})
"""Looks for proxies in the environment first, and reads files of certificates, which is not what its caller meant."""

ORIGINALS = "__stepwell_originals__"
"""Global of a module whose names were exchanged: these, with what they stood for."""


def check(what: str, instead: str) -> None:
    """Raises when guarded workflow code is running in this thread."""
    if running:
        runtime = running.get(get_ident())
        if runtime is not None and not runtime.unguarded:
            _violated(runtime, what, instead)


def _violated(runtime: "WorkflowRuntime", what: str, instead: str) -> None:
    if _collecting:
        return  # a finalizer of somebody else's object, which the collector happened to find now
    frame: FrameType | None = sys._getframe(2)
    bystanders = _bystanders()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name in _END_OF_USER_CODE:
            break
        if name in _MAY or name.partition(".")[0] in _MAY or frame.f_code in bystanders:
            return
        if name in _NETWORK:
            what, instead = "the network", "do it in an activity (workflow.execute_activity)"
        frame = frame.f_back
    if runtime.evicting:
        raise Evicted
    error = ForbiddenInWorkflowError(f"workflow code cannot use {what}, since a replay could not repeat it; {instead}")
    runtime.code_failed(error)
    raise error


def _bystanders() -> set[CodeType]:
    """Code that may run in the middle of any other: callbacks of the collector, handlers of OS signals."""
    functions: list[Any] = [*gc.callbacks, *(signal.getsignal(number) for number in signal.valid_signals())]
    codes = (getattr(getattr(function, "__func__", function), "__code__", None) for function in functions)
    return {code for code in codes if code is not None}


def watch_collector() -> None:
    """Know when finalizers run that have nothing to do with the code they interrupt."""
    gc.callbacks.insert(0, _note_collection)


def _note_collection(phase: str, info: dict[str, int]) -> None:
    global _collecting
    _collecting = phase == "start"


def guarded(original: Callable[..., Any], what: str, instead: str) -> Callable[..., Any]:
    """A function that does the same, but not inside of workflow code."""

    @wraps(original)
    def look_first(*args: Any, **kwargs: Any) -> Any:
        if running:
            check(what, instead)
        return original(*args, **kwargs)

    return look_first


def install(definition: WorkflowDefinition) -> None:
    """Put up the guards, once per process, and around the names that the workflow's modules, and those that they
    reach, have bound. Modules that were loaded since the last call are found by the next one.
    """
    loaded = len(sys.modules)
    known = _installed.get(id(definition))
    if known is not None and known[0] is definition and known[1] == loaded:
        return
    _installed[id(definition)] = (definition, loaded)
    from . import guard_datetime, guard_table  # late: they need this module

    guard_table.put_up()
    replacements = guard_table.replacements()
    roots = _modules_of(definition)
    for namespace in roots:
        _exchange(namespace, replacements)
    without_datetime = {key: pair for key, pair in replacements.items() if key not in guard_datetime.ORIGINAL_IDS}
    for namespace in reached_from(roots):
        _exchange(namespace, replacements if asks_for_the_present(namespace) else without_datetime)


def _modules_of(definition: WorkflowDefinition) -> list[dict[str, Any]]:
    functions = [definition.run_fn]
    for owner in definition.cls.__mro__ if definition.cls is not None else ():
        functions += [member for member in vars(owner).values() if hasattr(member, "__globals__")]
    found = {id(space): space for space in (getattr(function, "__globals__", None) for function in functions) if space}
    return list(found.values())


def _exchange(namespace: dict[str, Any], replacements: dict[int, tuple[Any, Any]]) -> None:
    module = namespace.get("__name__", "")
    if module.partition(".")[0] in ("stepwell", "builtins"):
        return
    exchanged = namespace.setdefault(ORIGINALS, {})
    for name, value in list(namespace.items()):
        found = replacements.get(id(value))
        if found is not None and found[0] is value:
            exchanged[name] = value
            namespace[name] = found[1]
