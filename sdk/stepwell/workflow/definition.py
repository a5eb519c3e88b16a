"""What a workflow is: its name, its run function and its handlers, and how callers refer to them.

``decorators`` mark the parts and ``gathering`` puts a definition together from them, once.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..converter.signatures import CallableSignature, signature_of, untyped_signature

# The decorators leave what they know under these names.
WORKFLOW_MARK = "__stepwell_workflow_definition__"
RUN_MARK = "__stepwell_workflow_run__"
INIT_MARK = "__stepwell_workflow_init__"
SIGNAL_MARK = "__stepwell_workflow_signal__"
QUERY_MARK = "__stepwell_workflow_query__"
UPDATE_MARK = "__stepwell_workflow_update__"


def is_async(fn: object) -> bool:
    """True for ``async def``."""
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
    dynamic: bool = False
    """Takes all signals without a handler of their own; ``name`` is then that of the signal at hand."""


@dataclass(frozen=True)
class QueryDefinition:
    """A query handler, always synchronous and read-only (MS-19)."""

    name: str
    fn: Callable[..., Any]
    signature: CallableSignature
    bound: bool = False
    description: str = ""
    dynamic: bool = False
    """As for signals."""


@dataclass(frozen=True)
class UpdateDefinition:
    """A handler of updates, with what may reject them (MS-25)."""

    name: str
    fn: Callable[..., Any]
    signature: CallableSignature
    is_async: bool
    unfinished_policy: HandlerUnfinishedPolicy = HandlerUnfinishedPolicy.WARN_AND_ABANDON
    bound: bool = False
    description: str = ""
    dynamic: bool = False
    """As for signals."""
    validator: Callable[..., None] | None = None
    """Bound as ``fn`` is."""


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
    updates: dict[str, UpdateDefinition] = field(default_factory=dict)
    failure_exception_types: tuple[type[BaseException], ...] = ()
    sandboxed: bool = True
    dynamic: bool = False
    """Runs every type that its worker has no workflow for."""

    @classmethod
    def of(cls, workflow: Any) -> "WorkflowDefinition | None":
        """The definition of a decorated class, of its run method, or of a decorated function; None otherwise."""
        if isinstance(workflow, WorkflowDefinition):
            return workflow
        if isinstance(workflow, type):
            found = workflow.__dict__.get(WORKFLOW_MARK)
        else:
            found = getattr(workflow, WORKFLOW_MARK, None)
        return found if isinstance(found, WorkflowDefinition) else None

    @classmethod
    def must_of(cls, workflow: Any) -> "WorkflowDefinition":
        """Raises ``ValueError`` when it is not a workflow."""
        definition = cls.of(workflow)
        if definition is None:
            name = getattr(workflow, "__qualname__", repr(workflow))
            if isinstance(workflow, type) and getattr(workflow, WORKFLOW_MARK, None) is not None:
                raise ValueError(f"{name} inherits from a workflow but has no @workflow.defn of its own; add it")
            raise ValueError(f"{name} is not a workflow; decorate it with @workflow.defn")
        return definition


def bound_signal(name: str, fn: Callable[..., Any]) -> SignalDefinition:
    """A handler set while the workflow runs (``workflow.set_signal_handler``)."""
    return SignalDefinition(name, fn, signature_of(fn, f"signal {name!r}"), is_async(fn), bound=True)


def bound_query(name: str, fn: Callable[..., Any]) -> QueryDefinition:
    """A handler set while the workflow runs (``workflow.set_query_handler``)."""
    if is_async(fn):
        raise ValueError(f"query handler {name!r} must not be 'async def', since a query cannot wait")
    return QueryDefinition(name, fn, signature_of(fn, f"query {name!r}"), bound=True)


def bound_update(name: str, fn: Callable[..., Any]) -> UpdateDefinition:
    """A handler set while the workflow runs (``workflow.set_update_handler``)."""
    return UpdateDefinition(name, fn, signature_of(fn, f"update {name!r}"), is_async(fn), bound=True)


# --- how callers refer to a workflow and its handlers --------------------------------------------------------------


def workflow_reference(workflow: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Type and signature for a start: by name, class, run method or function. Raises ``ValueError`` if it is none."""
    if isinstance(workflow, str):
        return workflow, untyped_signature(f"workflow {workflow!r}")
    definition = WorkflowDefinition.must_of(workflow)
    if definition.dynamic:
        raise ValueError(f"{definition.name} is a dynamic workflow; name the type to start in quotes")
    return definition.name, definition.signature


def signal_reference(signal_ref: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Name and signature for sending a signal: by name or decorated method."""
    if isinstance(signal_ref, str):
        return signal_ref, untyped_signature(f"signal {signal_ref!r}")
    definition = getattr(signal_ref, SIGNAL_MARK, None)
    if not isinstance(definition, SignalDefinition):
        raise ValueError(
            f"{getattr(signal_ref, '__qualname__', signal_ref)} is not a signal; decorate it with @workflow.signal"
        )
    if definition.dynamic:
        raise ValueError(f"{definition.fn.__qualname__} is dynamic; name the signal to send in quotes")
    return definition.name, definition.signature


def query_reference(query_ref: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Name and signature for asking a query: by name or decorated method."""
    if isinstance(query_ref, str):
        return query_ref, untyped_signature(f"query {query_ref!r}")
    definition = getattr(query_ref, QUERY_MARK, None)
    if not isinstance(definition, QueryDefinition):
        raise ValueError(
            f"{getattr(query_ref, '__qualname__', query_ref)} is not a query; decorate it with @workflow.query"
        )
    if definition.dynamic:
        raise ValueError(f"{definition.fn.__qualname__} is dynamic; name the query to ask in quotes")
    return definition.name, definition.signature


def update_reference(update_ref: str | Callable[..., Any]) -> tuple[str, CallableSignature]:
    """Name and signature for sending an update: by name or decorated method."""
    if isinstance(update_ref, str):
        return update_ref, untyped_signature(f"update {update_ref!r}")
    definition = getattr(update_ref, UPDATE_MARK, None)
    if not isinstance(definition, UpdateDefinition):
        raise ValueError(
            f"{getattr(update_ref, '__qualname__', update_ref)} is not an update; decorate it with @workflow.update"
        )
    return definition.name, definition.signature
