"""Which of the user's modules a workflow's code reaches, so that names which they bound early are guarded as well.

Reached is what the globals of a reached module lead to: modules, the homes of functions, classes and other values, and
modules that are imported inside of functions and loaded by now. The standard library, installed packages (unless the
workflow is in the same package) and modules imported under ``workflow.unsafe.imports_passed_through()`` are where the
search ends.
"""

import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

Namespace = dict[str, Any]

_INSTALLED = ("site-packages", "dist-packages")
_OURS = ("stepwell", "stepwell_server", "builtins")
_PRESENT = frozenset({"now", "utcnow", "today"})

_passed_through: set[str] = set()


def pass_through(values: Iterable[Any]) -> None:
    """The modules that these values are, or come from, stay as they are."""
    for value in values:
        _passed_through.update(namespace.get("__name__", "") for namespace in _homes(value))


def reached_from(roots: list[Namespace]) -> list[Namespace]:
    """Globals of the modules that code in ``roots`` reaches, without ``roots``."""
    packages = {_package(root) for root in roots}
    seen = {id(root) for root in roots}
    found: list[Namespace] = []
    pending = list(roots)
    while pending:
        namespace = pending.pop()
        for other in _leads_to(namespace):
            if id(other) not in seen:
                seen.add(id(other))
                if _is_users(other, packages):
                    found.append(other)
                    pending.append(other)
    return found


def asks_for_the_present(namespace: Namespace) -> bool:
    """True when its functions look like users of ``datetime.now`` and the like. Others keep the real ``datetime``,
    which libraries recognise in annotations by identity.
    """
    return any(not _PRESENT.isdisjoint(code.co_names) for code in _codes(namespace))


def _package(namespace: Namespace) -> str:
    return str(namespace.get("__name__", "")).partition(".")[0]


def _is_users(namespace: Namespace, packages: set[str]) -> bool:
    package = _package(namespace)
    if package in _OURS or package in sys.stdlib_module_names or namespace.get("__name__") in _passed_through:
        return False
    if package in packages:
        return True
    places = [namespace.get("__file__"), *(namespace.get("__path__") or ())]
    return not any(installed in place for place in places if isinstance(place, str) for installed in _INSTALLED)


def _leads_to(namespace: Namespace) -> Iterator[Namespace]:
    for value in list(namespace.values()):
        yield from _homes(value)
    package = str(namespace.get("__package__") or "")
    for code in _codes(namespace):
        for name in code.co_names:
            for imported in (name, f"{package}.{name}"):
                if imported in sys.modules:
                    yield from _module(imported)


def _homes(value: Any) -> Iterator[Namespace]:
    """Looks at types only: a value may be a proxy that fails, or loads something, when it is asked."""
    kind = type(value)
    if kind is ModuleType:
        yield value.__dict__
    elif kind is FunctionType:
        yield value.__globals__
        yield from _module(value.__module__)
    else:
        yield from _module(value.__module__ if issubclass(kind, type) else kind.__module__)


def _module(name: Any) -> Iterator[Namespace]:
    module = sys.modules.get(name) if isinstance(name, str) else None
    if type(module) is ModuleType:
        yield module.__dict__


def _codes(namespace: Namespace) -> Iterator[CodeType]:
    """Of the functions and methods that are defined here, with those inside of them."""
    name = namespace.get("__name__")
    pending: list[Any] = []
    for value in list(namespace.values()):
        if not issubclass(type(value), type):
            pending.append(value)
        elif value.__module__ == name:
            pending += vars(value).values()
    codes = [function.__code__ for function in map(_function, pending) if function is not None]
    while codes:
        code = codes.pop()
        yield code
        codes += [constant for constant in code.co_consts if type(constant) is CodeType]


def _function(value: Any) -> FunctionType | None:
    """What a decorator, ``classmethod``, ``staticmethod`` or ``property`` stands around."""
    if type(value) in (classmethod, staticmethod):
        value = value.__func__
    elif type(value) is property:
        value = value.fget
    for _ in range(20):
        inner = value.__dict__.get("__wrapped__") if type(value) is FunctionType else None
        if inner is None:
            break
        value = inner
    return value if type(value) is FunctionType else None
