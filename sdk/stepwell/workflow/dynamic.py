"""Definitions that take what no other definition is named for: workflows, signals, queries (PM-05, PM-06).

They are looked up last, and take raw values, since there are no annotations to read them by.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ..api.payloads import Payloads
from ..common import RawValue
from ..converter.payload_converter import PayloadConverter
from ..converter.signatures import CallableSignature, signature_of
from .definition import (
    QueryDefinition,
    SignalDefinition,
    UpdateDefinition,
    WorkflowDefinition,
    bound_query,
    bound_signal,
    bound_update,
)

H = TypeVar("H", SignalDefinition, QueryDefinition, UpdateDefinition)

DYNAMIC = ""
"""Stands for the name, which cannot be empty otherwise."""


def workflow_for(definitions: Mapping[str, WorkflowDefinition], workflow_type: str) -> WorkflowDefinition | None:
    """Of that type, else the dynamic one, else None."""
    return definitions.get(workflow_type) or definitions.get(DYNAMIC)


def handler_for(handlers: Mapping[str, H], name: str) -> H | None:
    """Of that name, else the dynamic one under that name, else None. Names with two underscores in front are not
    a user's.
    """
    found = handlers.get(name)
    if found is None and DYNAMIC in handlers and not name.startswith("__"):
        return replace(handlers[DYNAMIC], name=name)
    return found


def names(handlers: Mapping[str, Any]) -> str:
    """For messages."""
    return ", ".join(sorted(filter(None, handlers))) or "none"


def handler_arguments(
    handler: SignalDefinition | QueryDefinition | UpdateDefinition, converter: PayloadConverter, input: Payloads
) -> list[Any]:
    """What its function takes behind the instance. Raises ``ArgumentError``."""
    if handler.dynamic:
        return [handler.name, [RawValue(payload) for payload in input]]
    return handler.signature.decode(converter, input)


def workflow_arguments(definition: WorkflowDefinition, converter: PayloadConverter, input: Payloads) -> list[Any]:
    """What its run function takes behind the instance. Raises ``ArgumentError``."""
    if definition.dynamic:
        return [[RawValue(payload) for payload in input]]
    return definition.signature.decode(converter, input)


def dynamic_signature(fn: Callable[..., Any], what: str, *, takes: str, method: bool) -> CallableSignature:
    """Raises ``ValueError`` when the function does not take what a dynamic one is given."""
    signature = signature_of(fn, f"dynamic {what}", method=method)
    expected = len(takes.split(", "))
    if len(signature.names) < expected or signature.required > expected:
        raise ValueError(f"a dynamic {what} takes {takes}; {fn.__qualname__} does not")
    return signature


def dynamic_signal(fn: Callable[..., Any]) -> SignalDefinition:
    """Of a function that is bound to its instance."""
    signature = dynamic_signature(fn, "signal", takes=HANDLER_TAKES, method=False)
    return replace(bound_signal(DYNAMIC, fn), signature=signature, dynamic=True)


def dynamic_query(fn: Callable[..., Any]) -> QueryDefinition:
    """Of a function that is bound to its instance."""
    signature = dynamic_signature(fn, "query", takes=HANDLER_TAKES, method=False)
    return replace(bound_query(DYNAMIC, fn), signature=signature, dynamic=True)


def dynamic_update(fn: Callable[..., Any]) -> UpdateDefinition:
    """Of a function that is bound to its instance."""
    signature = dynamic_signature(fn, "update", takes=HANDLER_TAKES, method=False)
    return replace(bound_update(DYNAMIC, fn), signature=signature, dynamic=True)


HANDLER_TAKES = "name: str, args: Sequence[RawValue]"
WORKFLOW_TAKES = "args: Sequence[RawValue]"
