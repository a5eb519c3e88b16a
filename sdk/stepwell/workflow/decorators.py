"""The decorators that make a class or function a workflow, and its methods what they are."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, overload

from ..converter.signatures import CallableSignature, signature_of
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
from .dynamic import DYNAMIC, HANDLER_TAKES, dynamic_signature
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
    dynamic: bool = False,
    failure_exception_types: Sequence[type[BaseException]] = (),
) -> Callable[[FunctionT], FunctionT]: ...
def defn(
    target: Any = None,
    /,
    *,
    name: str | None = None,
    sandboxed: bool = True,
    dynamic: bool = False,
    failure_exception_types: Sequence[type[BaseException]] = (),
) -> Any:
    """Make a class, or a plain ``async def``, a workflow.

    ``name`` is the workflow type; the class's or function's own name when not given. ``sandboxed=False`` lifts the
    run-time guards on clock, randomness, files and network. A ``dynamic`` one takes the types that its worker has no
    workflow for: its run function takes one ``Sequence[RawValue]``, and ``info()`` has the type.
    ``failure_exception_types`` are further exceptions that fail the workflow instead of the task (ER-04).

    Raises ``ValueError`` when the class has no ``@workflow.run`` method of its own, or more than one, or the function
    is not ``async def``.
    """

    def decorate(decorated: Any) -> Any:
        if name is not None and not name:
            raise ValueError("workflow.defn: name must not be empty; leave it out to use the own name")
        _refuse_named_dynamic("workflow.defn", name, dynamic)
        if isinstance(decorated, type):
            definition = class_definition(decorated, name, tuple(failure_exception_types), sandboxed, dynamic)
        else:
            definition = function_definition(decorated, name, tuple(failure_exception_types), sandboxed, dynamic)
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
    dynamic: bool = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Callable[[FunctionT], FunctionT]: ...
def signal(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    dynamic: bool = False,
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON,
    description: str | None = None,
) -> Any:
    """Mark a method, ``def`` or ``async def``, that handles the signal of its name. It must return nothing.

    A ``dynamic`` one takes all signals without a handler: their name, and their arguments as ``Sequence[RawValue]``.
    """

    def decorate(decorated: Any) -> Any:
        setattr(
            decorated,
            SIGNAL_MARK,
            _signal_definition(name, decorated, unfinished_policy, description or "", dynamic),
        )
        return decorated

    return decorate if fn is None else decorate(fn)


@overload
def query(fn: FunctionT, /) -> FunctionT: ...
@overload
def query(
    *, name: str | None = None, dynamic: bool = False, description: str | None = None
) -> Callable[[FunctionT], FunctionT]: ...
def query(fn: Any = None, /, *, name: str | None = None, dynamic: bool = False, description: str | None = None) -> Any:
    """Mark a method that answers the query of its name: read-only, and never ``async``. ``dynamic`` as for signals."""

    def decorate(decorated: Any) -> Any:
        if is_async(decorated):
            raise ValueError(f"workflow.query: {decorated.__qualname__} must be 'def', since a query cannot wait")
        query_name, signature = name_and_signature("query", name, decorated, dynamic)
        definition = QueryDefinition(query_name, decorated, signature, description=description or "", dynamic=dynamic)
        setattr(decorated, QUERY_MARK, definition)
        return decorated

    return decorate if fn is None else decorate(fn)


def _signal_definition(
    name: str | None, fn: Callable[..., Any], policy: HandlerUnfinishedPolicy, description: str, dynamic: bool
) -> SignalDefinition:
    own_name, signature = name_and_signature("signal", name, fn, dynamic)
    return SignalDefinition(
        own_name, fn, signature, is_async(fn), unfinished_policy=policy, description=description, dynamic=dynamic
    )


def name_and_signature(
    kind: str, name: str | None, fn: Callable[..., Any], dynamic: bool
) -> tuple[str, CallableSignature]:
    """Of a handler, as its decorator found it."""
    _refuse_named_dynamic(f"workflow.{kind}", name, dynamic)
    if dynamic:
        return DYNAMIC, dynamic_signature(fn, kind, takes=HANDLER_TAKES, method=True)
    own_name = name or fn.__name__
    return own_name, signature_of(fn, f"{kind} {own_name!r}", method=True)


def _refuse_named_dynamic(decorator: str, name: str | None, dynamic: bool) -> None:
    if dynamic and name is not None:
        raise ValueError(f"{decorator}: a dynamic definition takes every name, so it cannot have one of its own")
