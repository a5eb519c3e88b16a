"""Where payloads are in records: a walk over all of them, and over nothing else. Pure.

Which fields of a type may hold some is read off its annotations, once; so the walk over an event or a state without
payloads looks at a few empty fields.
"""

import typing
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from stepwell.api.payloads import Payload

T = TypeVar("T")

_fields: dict[type, tuple[str, ...]] = {}


def with_payloads(value: T, change: Callable[[Payload], Payload]) -> T:
    """``value`` (records, tuples, dicts) with each payload exchanged for what ``change`` makes of it. What has none
    that changed is the same object."""
    changed: T = _changed(value, change)
    return changed


def _changed(value: Any, change: Callable[[Payload], Payload]) -> Any:
    kind = type(value)
    if kind is Payload:
        return change(value)
    if kind is tuple:
        items = [_changed(item, change) for item in value]
        return tuple(items) if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if kind is dict:
        entries = {name: _changed(item, change) for name, item in value.items()}
        return entries if any(entries[name] is not item for name, item in value.items()) else value
    changes: dict[str, Any] = {}
    for name in fields_with_payloads(kind):
        if (old := getattr(value, name)) and (new := _changed(old, change)) is not old:
            changes[name] = new
    return msgspec.structs.replace(value, **changes) if changes else value


def each_payload(value: Any, visit: Callable[[Payload], None]) -> None:
    """Calls ``visit`` with each payload of ``value``. Every read goes through here, so it makes nothing."""
    kind = type(value)
    if kind is Payload:
        visit(value)
    elif kind is tuple:
        for item in value:
            each_payload(item, visit)
    elif kind is dict:
        for item in value.values():
            each_payload(item, visit)
    else:
        fields = _fields.get(kind)
        if fields is None:
            fields = fields_with_payloads(kind)
        for name in fields:
            if held := getattr(value, name):
                each_payload(held, visit)


def fields_with_payloads(kind: type) -> tuple[str, ...]:
    """Names of the fields of a record in which there may be payloads, however deep."""
    known = _fields.get(kind)
    if known is None:
        known = ()
        if issubclass(kind, msgspec.Struct) and kind is not Payload:
            hints = typing.get_type_hints(kind)
            known = tuple(name for name in kind.__struct_fields__ if _may_hold(hints[name], frozenset()))
        _fields[kind] = known
    return known


def _may_hold(annotation: Any, inside: frozenset[type]) -> bool:
    """``inside``: the types that are being looked at; a type within itself adds nothing."""
    if annotation is Payload:
        return True
    if typing.get_origin(annotation) is None and isinstance(annotation, type):
        if annotation in inside or not issubclass(annotation, msgspec.Struct):
            return False
        hints = typing.get_type_hints(annotation)
        return any(_may_hold(hints[name], inside | {annotation}) for name in annotation.__struct_fields__)
    return any(_may_hold(argument, inside) for argument in typing.get_args(annotation))
