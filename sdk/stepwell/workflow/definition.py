"""What a workflow is: its name, its run function and its handlers, gathered once from the decorators.

A workflow is a class with one ``async`` method marked ``@run``, or a plain ``async def`` (function style, PM-03).
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ParamSpec, TypeVar, overload

from ..converter.signatures import CallableSignature, signature_of, untyped_signature

P = ParamSpec("P")
R = TypeVar("R")
ClassT = TypeVar("ClassT", bound=type)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
CoroutineFunctionT = TypeVar("CoroutineFunctionT", bound=Callable[..., Awaitable[Any]])

_WORKFLOW = "__stepwell_workflow_definition__"
_RUN = "__stepwell_workflow_run__"
_INIT = "__stepwell_workflow_init__"
_SIGNAL = "__stepwell_workflow_signal__"
_QUERY = "__stepwell_workflow_query__"


def _is_async(fn: object) -> bool:
    return inspect.iscoroutinefunction(fn)


class HandlerUnfinishedPolicy(Enum):
    """What happens when the workflow ends while a handler still runs (MS-13)."""

    WARN_AND_ABANDON = 1
    ABANDON = 2


@dataclass(frozen=True)
class SignalDefinition:
    """A signal handler. ``fn`` is unbound (takes the instance first) unless ``bound``."""

    name: str
    fn: Callable[..., Any]
    signature: CallableSignature
    is_async: bool
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON
    bound: bool = False
    description: str = ""


@dataclass(frozen=True)
class QueryDefinition:
    """A query handler, always synchronous and read-only (MS-19)."""

    name: str
    fn: Callable[..., Any]
    signature: CallableSignature
    bound: bool = False
    description: str = ""


@dataclass(frozen=True)
class WorkflowDefinition:
    """A workflow type. ``cls`` is None for a function-style workflow, whose ``run_fn`` takes only its arguments."""

    name: str
    run_fn: Callable[..., Awaitable[Any]]
    signature: CallableSignature
    """Of the run function, without ``self``; ``signature.result_type`` is the result's."""
    cls: type | None = None
    init_takes_arguments: bool = False
    signals: dict[str, SignalDefinition] = field(default_factory=dict)
    queries: dict[str, QueryDefinition] = field(default_factory=dict)
    failure_exception_types: tuple[type[BaseException], ...] = ()
    sandboxed: bool = True

    @classmethod
    def of(cls, workflow: Any) -> "WorkflowDefinition | None":
        """The definition of a decorated class, of its run method, or of a decorated function; None otherwise."""
        if isinstance(workflow, WorkflowDefinition):
            return workflow
        if isinstance(workflow, type):
            found = workflow.__dict__.get(_WORKFLOW)
        else:
            found = getattr(workflow, _WORKFLOW, None)
        return found if isinstance(found, WorkflowDefinition) else None

    @classmethod
    def must_of(cls, workflow: Any) -> "WorkflowDefinition":
        """Raises ``ValueError`` when it is not a workflow."""
        definition = cls.of(workflow)
        if definition is None:
            name = getattr(workflow, "__qualname__", repr(workflow))
            if isinstance(workflow, type) and getattr(workflow, _WORKFLOW, None) is not None:
                raise ValueError(f"{name} inherits from a workflow but has no @workflow.defn of its own; add it")
            raise ValueError(f"{name} is not a workflow; decorate it with @workflow.defn")
        return definition


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
            definition = _class_definition(decorated, name, tuple(failure_exception_types), sandboxed)
        else:
            definition = _function_definition(decorated, name, tuple(failure_exception_types), sandboxed)
        setattr(decorated, _WORKFLOW, definition)
        return decorated

    return decorate if target is None else decorate(target)


def run(fn: CoroutineFunctionT) -> CoroutineFunctionT:
    """Mark the method that is the workflow. Raises ``ValueError`` unless it is ``async def``."""
    if not _is_async(fn):
        raise ValueError(f"workflow.run: {fn.__qualname__} must be 'async def'")
    setattr(fn, _RUN, True)
    return fn


def init(init_fn: FunctionT) -> FunctionT:
    """Mark an ``__init__`` that takes the same parameters as the run method (PM-04)."""
    if init_fn.__name__ != "__init__":
        raise ValueError(f"workflow.init: decorate __init__, not {init_fn.__qualname__}")
    setattr(init_fn, _INIT, True)
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
            _SIGNAL,
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
        if _is_async(decorated):
            raise ValueError(f"workflow.query: {decorated.__qualname__} must be 'def', since a query cannot wait")
        query_name = name or decorated.__name__
        signature = signature_of(decorated, f"query {query_name!r}", method=True)
        setattr(decorated, _QUERY, QueryDefinition(query_name, decorated, signature, description=description or ""))
        return decorated

    return decorate if fn is None else decorate(fn)


def _signal_definition(
    name: str, fn: Callable[..., Any], policy: HandlerUnfinishedPolicy, description: str
) -> SignalDefinition:
    signature = signature_of(fn, f"signal {name!r}", method=True)
    return SignalDefinition(name, fn, signature, _is_async(fn), unfinished_policy=policy, description=description)


def bound_signal(name: str, fn: Callable[..., Any]) -> SignalDefinition:
    """A handler set while the workflow runs (``workflow.set_signal_handler``)."""
    return SignalDefinition(name, fn, signature_of(fn, f"signal {name!r}"), _is_async(fn), bound=True)


def bound_query(name: str, fn: Callable[..., Any]) -> QueryDefinition:
    """A handler set while the workflow runs (``workflow.set_query_handler``)."""
    if _is_async(fn):
        raise ValueError(f"query handler {name!r} must not be 'async def', since a query cannot wait")
    return QueryDefinition(name, fn, signature_of(fn, f"query {name!r}"), bound=True)


def _members(cls: type) -> dict[str, Any]:
    """Attributes by name, those of subclasses before those of their bases."""
    found: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        found.update(vars(owner))
    return found


def _inherited_mark(cls: type, name: str, mark: str) -> Any:
    for owner in cls.__mro__:
        value = vars(owner).get(name)
        marked = getattr(value, mark, None) if value is not None else None
        if marked is not None:
            return marked
    return None


def _class_definition(
    cls: type, name: str | None, failure_types: tuple[type[BaseException], ...], sandboxed: bool
) -> WorkflowDefinition:
    members = _members(cls)
    runs = [member for member in members.values() if getattr(member, _RUN, False)]
    if len(runs) != 1:
        raise ValueError(
            f"{cls.__qualname__} has {len(runs)} methods with @workflow.run"
            + (": " + ", ".join(r.__name__ for r in runs) if runs else "")
            + "; a workflow has exactly one"
        )
    run_fn = runs[0]
    workflow_name = name or cls.__name__
    _refuse_lost_marks(cls, members)
    definition = WorkflowDefinition(
        name=workflow_name,
        run_fn=run_fn,
        signature=signature_of(run_fn, f"workflow {workflow_name!r}", method=True),
        cls=cls,
        init_takes_arguments=_check_init(cls, run_fn),
        signals=_named(cls, members, _SIGNAL),
        queries=_named(cls, members, _QUERY),
        failure_exception_types=failure_types,
        sandboxed=sandboxed,
    )
    if run_fn.__qualname__ == f"{cls.__qualname__}.{run_fn.__name__}":
        setattr(run_fn, _WORKFLOW, definition)
    return definition


def _refuse_lost_marks(cls: type, members: dict[str, Any]) -> None:
    """An override without the decorator would silently take a handler away."""
    for member_name, member in members.items():
        for mark, decorator in ((_SIGNAL, "signal"), (_QUERY, "query"), (_RUN, "run")):
            if getattr(member, mark, None) is None and _inherited_mark(cls, member_name, mark) is not None:
                raise ValueError(
                    f"{cls.__qualname__}.{member_name} overrides a method with @workflow.{decorator}; "
                    "repeat the decorator"
                )


def _named(cls: type, members: dict[str, Any], mark: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in members.values():
        definition = getattr(member, mark, None)
        if definition is None:
            continue
        if definition.name in found:
            raise ValueError(f"{cls.__qualname__} has two handlers named {definition.name!r}; rename one")
        found[definition.name] = definition
    return found


def _check_init(cls: type, run_fn: Callable[..., Any]) -> bool:
    """True when ``__init__`` takes the run arguments."""
    init_fn = cls.__init__  # type: ignore[misc]
    parameters = [] if init_fn is object.__init__ else list(inspect.signature(init_fn).parameters.values())[1:]
    if not getattr(init_fn, _INIT, False):
        if any(p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            raise ValueError(
                f"{cls.__qualname__}.__init__ takes arguments; decorate it with @workflow.init to give it those of run"
            )
        return False
    run_parameters = list(inspect.signature(run_fn).parameters.values())[1:]
    if [(p.name, p.annotation) for p in parameters] != [(p.name, p.annotation) for p in run_parameters]:
        raise ValueError(
            f"{cls.__qualname__}.__init__ has @workflow.init and must take the same parameters as {run_fn.__name__}"
        )
    return True


def _function_definition(
    fn: Any, name: str | None, failure_types: tuple[type[BaseException], ...], sandboxed: bool
) -> WorkflowDefinition:
    if not _is_async(fn):
        raise ValueError(
            f"workflow.defn: {getattr(fn, '__qualname__', fn)!r} must be a class or an 'async def' function"
        )
    workflow_name = name or fn.__name__
    return WorkflowDefinition(
        name=workflow_name,
        run_fn=fn,
        signature=signature_of(fn, f"workflow {workflow_name!r}"),
        failure_exception_types=failure_types,
        sandboxed=sandboxed,
    )


# --- how callers refer to a workflow and its handlers --------------------------------------------------------------


def workflow_reference(workflow: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Type and signature for a start: by name, class, run method or function. Raises ``ValueError`` if it is none."""
    if isinstance(workflow, str):
        return workflow, untyped_signature(f"workflow {workflow!r}")
    definition = WorkflowDefinition.must_of(workflow)
    return definition.name, definition.signature


def signal_reference(signal_ref: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Name and signature for sending a signal: by name or decorated method."""
    if isinstance(signal_ref, str):
        return signal_ref, untyped_signature(f"signal {signal_ref!r}")
    definition = getattr(signal_ref, _SIGNAL, None)
    if not isinstance(definition, SignalDefinition):
        raise ValueError(
            f"{getattr(signal_ref, '__qualname__', signal_ref)} is not a signal; decorate it with @workflow.signal"
        )
    return definition.name, definition.signature


def query_reference(query_ref: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Name and signature for asking a query: by name or decorated method."""
    if isinstance(query_ref, str):
        return query_ref, untyped_signature(f"query {query_ref!r}")
    definition = getattr(query_ref, _QUERY, None)
    if not isinstance(definition, QueryDefinition):
        raise ValueError(
            f"{getattr(query_ref, '__qualname__', query_ref)} is not a query; decorate it with @workflow.query"
        )
    return definition.name, definition.signature
