"""Puts a workflow's definition together from what its decorators have marked.

A workflow is a class with one ``async`` method marked ``@run``, or a plain ``async def`` (function style, PM-03).
"""

import inspect
from collections.abc import Callable
from typing import Any

from ..converter.signatures import CallableSignature, signature_of
from .definition import (
    INIT_MARK,
    QUERY_MARK,
    RUN_MARK,
    SIGNAL_MARK,
    UPDATE_MARK,
    WORKFLOW_MARK,
    WorkflowDefinition,
    is_async,
)
from .dynamic import WORKFLOW_TAKES, dynamic_signature


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


def class_definition(
    cls: type,
    name: str | None,
    failure_types: tuple[type[BaseException], ...],
    sandboxed: bool,
    dynamic: bool = False,
) -> WorkflowDefinition:
    """Raises ``ValueError`` when the class is not a workflow."""
    members = _members(cls)
    runs = [member for member in members.values() if getattr(member, RUN_MARK, False)]
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
        signature=_run_signature(run_fn, workflow_name, method=True, dynamic=dynamic),
        cls=cls,
        init_takes_arguments=_check_init(cls, run_fn),
        signals=_named(cls, members, SIGNAL_MARK),
        queries=_named(cls, members, QUERY_MARK),
        updates=_named(cls, members, UPDATE_MARK),
        failure_exception_types=failure_types,
        sandboxed=sandboxed,
        dynamic=dynamic,
    )
    if run_fn.__qualname__ == f"{cls.__qualname__}.{run_fn.__name__}":
        setattr(run_fn, WORKFLOW_MARK, definition)
    return definition


def _run_signature(fn: Callable[..., Any], name: str, *, method: bool, dynamic: bool) -> CallableSignature:
    if dynamic:
        return dynamic_signature(fn, "workflow", takes=WORKFLOW_TAKES, method=method)
    return signature_of(fn, f"workflow {name!r}", method=method)


_MARKS = ((SIGNAL_MARK, "signal"), (QUERY_MARK, "query"), (UPDATE_MARK, "update"), (RUN_MARK, "run"))


def _refuse_lost_marks(cls: type, members: dict[str, Any]) -> None:
    """An override without the decorator would silently take a handler away."""
    for member_name, member in members.items():
        for mark, decorator in _MARKS:
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
            if definition.dynamic:
                raise ValueError(f"{cls.__qualname__} has two dynamic handlers of one kind; keep one")
            raise ValueError(f"{cls.__qualname__} has two handlers named {definition.name!r}; rename one")
        found[definition.name] = definition
    return found


def _check_init(cls: type, run_fn: Callable[..., Any]) -> bool:
    """True when ``__init__`` takes the run arguments."""
    init_fn = cls.__init__  # type: ignore[misc]
    parameters = [] if init_fn is object.__init__ else list(inspect.signature(init_fn).parameters.values())[1:]
    if not getattr(init_fn, INIT_MARK, False):
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


def function_definition(
    fn: Any, name: str | None, failure_types: tuple[type[BaseException], ...], sandboxed: bool, dynamic: bool = False
) -> WorkflowDefinition:
    """Raises ``ValueError`` unless it is ``async def``."""
    if not is_async(fn):
        raise ValueError(
            f"workflow.defn: {getattr(fn, '__qualname__', fn)!r} must be a class or an 'async def' function"
        )
    workflow_name = name or fn.__name__
    return WorkflowDefinition(
        name=workflow_name,
        run_fn=fn,
        signature=_run_signature(fn, workflow_name, method=False, dynamic=dynamic),
        failure_exception_types=failure_types,
        sandboxed=sandboxed,
        dynamic=dynamic,
    )
