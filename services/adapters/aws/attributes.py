"""Items as plain dicts of text, whole numbers and bytes, and as DynamoDB has them; and what they weigh. Pure."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

Value = str | int | bytes
Item = dict[str, Any]
"""Values are of :data:`Value`; readers know which attribute is what."""

Attributes = Mapping[str, Mapping[str, Any]]

WRITE_UNIT = 1_024
READ_UNIT = 4_096


def value(of: Value) -> dict[str, Any]:
    if isinstance(of, str):
        return {"S": of}
    if isinstance(of, int):
        return {"N": str(of)}
    return {"B": of}


def to_attributes(item: Mapping[str, Value]) -> dict[str, Any]:
    return {name: value(of) for name, of in item.items()}


def from_attributes(attributes: Attributes) -> Item:
    """Bytes may come as they are or, in the events of functions, in base64."""
    item: Item = {}
    for name, typed in attributes.items():
        ((kind, of),) = typed.items()
        if kind == "N":
            of = int(of)
        elif kind == "B" and isinstance(of, str):
            of = b64decode(of)
        item[name] = of
    return item


def size(attributes: Attributes) -> int:
    """Bytes of an item as DynamoDB counts them: for its limit of 400 KB, and for its units."""
    return sum(len(name.encode()) + _size_of(typed) for name, typed in attributes.items())


def _size_of(typed: Mapping[str, Any]) -> int:
    ((kind, of),) = typed.items()
    if kind == "S":
        return len(of.encode())
    if kind == "N":
        digits = of.lstrip("-").replace(".", "").strip("0")
        return 1 + (len(digits) + 1) // 2 + (1 if of.startswith("-") else 0)
    if kind == "B":
        return len(of)
    if kind in ("BOOL", "NULL"):
        return 1
    if kind == "M":
        return 3 + len(of) + size(of)
    if kind == "L":
        return 3 + len(of) + sum(_size_of(each) for each in of)
    return sum(_size_of({kind[0]: each}) for each in of)  # SS, NS, BS


def write_units(item_bytes: int) -> int:
    return max(1, -(-item_bytes // WRITE_UNIT))


def read_units(read_bytes: int, *, strong: bool) -> float:
    units = max(1, -(-read_bytes // READ_UNIT))
    return float(units) if strong else units / 2
