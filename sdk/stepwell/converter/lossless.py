"""Finds where a value would change on its way through JSON; slow, and only used when something may be wrong.

:func:`fault` looks at a value alone, :func:`difference` compares it with what the receiver would get. Both answer with
a sentence that names the path, such as ``$.lines[2].price``.
"""

import dataclasses
import math
from collections.abc import Awaitable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

_LEAVES = (str, bytes, bool, int, float, Decimal, UUID, datetime, date, time, timedelta, Enum, type(None), bytearray)
_MAX_DEPTH = 200
_KEY_TYPES = (str, int, float, UUID, datetime, date, timedelta, Enum, Decimal, bytes)


def is_known(kind: type) -> bool:
    """True for classes that say by themselves how to decode them."""
    return (
        issubclass(kind, (*_LEAVES, msgspec.Struct))
        or dataclasses.is_dataclass(kind)
        or hasattr(kind, "__pydantic_validator__")
    )


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Steps of a path, and what lies behind them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f".{key}" if isinstance(key, str) and key.isidentifier() else f"[{key!r}]", item
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    else:
        for name in _names(value):
            if hasattr(value, name):
                yield f".{name}", getattr(value, name)


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(field.name for field in dataclasses.fields(value))
    return tuple(getattr(type(value), "model_fields", ()))


def fault(value: Any, path: str = "$", depth: int = 0, *, typed: bool = False) -> str | None:
    """What JSON cannot hold at all, wherever it sits; None when nothing was found.

    Inside classes with annotations (``typed``), keys may be of other types than text.
    """
    if depth > _MAX_DEPTH:
        return f"nesting deeper than {_MAX_DEPTH} levels at {path[:100]}…: does the value contain itself?"
    if isinstance(value, _LEAVES):
        return _leaf_fault(value, path)
    if isinstance(value, dict):
        problem = _keys_fault(value, path, typed)
        if problem:
            return problem
    elif not isinstance(value, list | tuple | set | frozenset) and not is_known(type(value)):
        return cannot_encode(value, f" at {path}")
    inside = typed or not isinstance(value, dict | list | tuple | set | frozenset)
    for step, item in _fields(value):
        problem = fault(item, path + step, depth + 1, typed=inside)
        if problem:
            return problem
    return None


def cannot_encode(value: Any, where: str = "") -> str:
    """Why a value of a class that nobody knows is refused, and the way out."""
    kind = type(value)
    refusal = f"objects of type {kind.__module__}.{kind.__qualname__}{where} cannot be encoded"
    if isinstance(value, Awaitable):
        return f"{refusal}; forgot await? What was called has not ended yet"
    return (
        f"{refusal}; use a dataclass, a msgspec Struct or a pydantic model, or set a payload converter that knows the "
        "type"
    )


def _leaf_fault(value: Any, path: str) -> str | None:
    if isinstance(value, Enum):
        return None if isinstance(value.value, str | int) else _enum_fault(value, path)
    if isinstance(value, str):
        return _text_fault(value, path)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} at {path}: JSON has no such number; send it as text or None"
    return _offset_fault(value, path) if isinstance(value, datetime | time) else None


def _enum_fault(value: Enum, path: str) -> str:
    kind = type(value).__qualname__
    return f"{value} at {path}: enums travel by value, and {kind} has values that are neither str nor int"


def _text_fault(value: str, path: str) -> str | None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return (
            f"text at {path} has the lone surrogate U+{ord(value[error.start]):04X} at position {error.start}, which "
            "UTF-8 cannot hold; send bytes, or clean it with text.encode('utf-8', 'replace').decode()"
        )
    return None


def _offset_fault(value: datetime | time, path: str) -> str | None:
    offset = value.utcoffset()
    if offset is not None and offset % timedelta(minutes=1):
        return f"{value!r} at {path}: an offset from UTC with seconds cannot be kept; convert it to UTC"
    return None


def _keys_fault(value: dict[Any, Any], path: str, typed: bool) -> str | None:
    for key in value:
        if isinstance(key, str):
            problem = _text_fault(key, f"a key of {path}")
            if problem:
                return problem
        elif not typed:
            return (
                f"key {key!r} of {path} is {type(key).__qualname__}, and JSON turns keys into text; annotate the "
                f"receiver's parameter, such as dict[{type(key).__qualname__}, …], and pass the function, not its name"
            )
        elif not isinstance(key, _KEY_TYPES) or isinstance(key, bool):
            return f"key {key!r} of {path} is {type(key).__qualname__}, which cannot be a key in JSON"
    return None


def difference(value: Any, back: Any, path: str = "$") -> str | None:
    """Where ``back``, decoded from the JSON of ``value``, differs in value or type; None when it does not."""
    kind = type(value)
    if kind is not type(back):
        if kind is int and type(back) is float and int(back) == value:
            return None
        if isinstance(value, dict) and type(back) is dict and value == back:
            return None
        return f"{_short(value)} at {path} is {kind.__qualname__} and would arrive as {type(back).__qualname__}"
    if isinstance(value, _LEAVES):
        return None if value == back else f"{_short(value)} at {path} would arrive as {_short(back)}"
    if isinstance(value, set | frozenset):
        return None if value == back else f"the set at {path} would arrive changed"
    if isinstance(value, dict) and value.keys() != back.keys():
        return f"the keys of {path} would arrive changed"
    if isinstance(value, dict):
        return _first_difference([(f"[{k!r}]", v, back[k]) for k, v in value.items()], path)
    mine, theirs = list(_fields(value)), list(_fields(back))
    if len(mine) != len(theirs):
        return f"{path} has {len(mine)} parts and would arrive with {len(theirs)}"
    return _first_difference([(a[0], a[1], b[1]) for a, b in zip(mine, theirs, strict=True)], path)


def _first_difference(parts: list[tuple[str, Any, Any]], path: str) -> str | None:
    for step, mine, theirs in parts:
        problem = difference(mine, theirs, path + step)
        if problem:
            return problem
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
