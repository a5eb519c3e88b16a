"""The decorators that make a class or function a workflow, and its methods what they are."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, overload

from ..converter.signatures import signature_of
from .definition import (
    INIT_MARK,
    QUERY_MARK,
    RUN_MARK,
    SIGNAL_MARK,
    WORKFLOW_MARK,
    HandlerUnfinishedPolicy,
    QueryDefinition,
    SignalDefinition,
    is_async,
)
from .gathering import class_definition, function_definition

ClassT = TypeVar("ClassT", bound=type)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
CoroutineFunctionT = TypeVar("CoroutineFunctionT", bound=Callable[..., Awaitable[Any]])


@overload
def defn(target: ClassT, /) -> ClassT: ...
@overload
def defn(target: CoroutineFunctionT, /) -> CoroutineFunctionT: ...
@overload
def defn(
    *,
    name: str | None = None,
    sandboxed: bool = True,
    failure_exception_types: Sequence[type[BaseException]] = (),
) -> Callable[[FunctionT], FunctionT]: ...
def defn(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    sandboxed: bool = True,
    failure_exception_types: Sequence[type[BaseException]] = (),
) -> Any:
    """Make a class, or a plain ``async def``, a workflow.

    ``name`` is the workflow type; the class's or function's own name when not given. ``sandboxed=False`` lifts the
    run-time guards on clock, randomness, files and network. ``failure_exception_types`` are further exceptions that
    fail the workflow instead of the task (ER-04). Raises ``ValueError`` when the class has no ``@workflow.run``
    method of its own, or more than one, or the function is not ``async def``.
    """

    def decorate(decorated: Any) -> Any:
        if name is not None and not name:
            raise ValueError("workflow.defn: name must not be empty; leave it out to use the own name")
        if isinstance(decorated, type):
            definition = class_definition(decorated, name, tuple(failure_exception_types), sandboxed)
        else:
            definition = function_definition(decorated, name, tuple(failure_exception_types), sandboxed)
        setattr(decorated, WORKFLOW_MARK, definition)
        return decorated

    return decorate if target is None else decorate(target)


def run(fn: CoroutineFunctionT) -> CoroutineFunctionT:
    """Mark the method that is the workflow. Raises ``ValueError`` unless it is ``async def``."""
    if not is_async(fn):
        raise ValueError(f"workflow.run: {fn.__qualname__} must be 'async def'")
    setattr(fn, RUN_MARK, True)
    return fn


def init(init_fn: FunctionT) -> FunctionT:
    """Mark an ``__init__`` that takes the same parameters as the run method (PM-04)."""
    if init_fn.__name__ != "__init__":
        raise ValueError(f"workflow.init: decorate __init__, not {init_fn.__qualname__}")
    setattr(init_fn, INIT_MARK, True)
    return init_fn


@overload
def signal(fn: FunctionT, /) -> FunctionT: ...
@overload
def signal(
    *,
    name: str | None = None,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Callable[[FunctionT], FunctionT]: ...
def signal(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Any:
    """Mark a method, ``def`` or ``async def``, that handles the signal of its name. It must return nothing."""

    def decorate(decorated: Any) -> Any:
        setattr(
            decorated,
            SIGNAL_MARK,
            _signal_definition(name or decorated.__name__, decorated, unfinished_policy, description or ""),
        )
        return decorated

    return decorate if fn is None else decorate(fn)


@overload
def query(fn: FunctionT, /) -> FunctionT: ...
@overload
def query(*, name: str | None = None, description: str | None = None) -> Callable[[FunctionT], FunctionT]: ...
def query(fn: Any = None, /, *, name: str | None = None, description: str | None = None) -> Any:
    """Mark a method that answers the query of its name: read-only, and never ``async``."""

    def decorate(decorated: Any) -> Any:
        if is_async(decorated):
            raise ValueError(f"workflow.query: {decorated.__qualname__} must be 'def', since a query cannot wait")
        query_name = name or decorated.__name__
        signature = signature_of(decorated, f"query {query_name!r}", method=True)
        setattr(decorated, QUERY_MARK, QueryDefinition(query_name, decorated, signature, description=description or ""))
        return decorated

    return decorate if fn is None else decorate(fn)


def _signal_definition(
    name: str, fn: Callable[..., Any], policy: HandlerUnfinishedPolicy, description: str
) -> SignalDefinition:
    signature = signature_of(fn, f"signal {name!r}", method=True)
    return SignalDefinition(name, fn, signature, is_async(fn), unfinished_policy=policy, description=description)
