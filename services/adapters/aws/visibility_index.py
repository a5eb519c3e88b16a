"""Items of ``vis`` by which runs are found by their custom search attributes: one per attribute with one value. Pure.

They stand in partitions of their own (a workflow id never begins with a control character), one set for each attribute
of a namespace, and are sorted by value, then by start time. An item may be of a value that the run has no more: who
reads one checks the run's record. Texts and lists have none; they are looked for among what else the filter demands.
"""

import struct
from datetime import datetime

from ...history.commit import ExecutionKey
from ...visibility.attributes import Value, ValueType
from . import keys
from .attributes import Item
from .visibility_rows import INDEX_PARTITIONS, custom, to_us

KINDS: dict[ValueType, str] = {
    ValueType.BOOL: "b",
    ValueType.DATETIME: "d",
    ValueType.DOUBLE: "f",
    ValueType.INT: "i",
    ValueType.KEYWORD: "k",
}
_MARK = "\x01"
_BEHIND_VALUE = "\x00"
BEFORE_ALL, BEHIND_ALL = "\x00", "\U0010ffff"
_KEYWORD_BYTES = 512
"""Of a keyword that count for the order; a sort key has 1,024."""

_OFFSET = 2**63
_SIGN = 1 << 63


def partitions(namespace: str, name: str, kind: ValueType) -> list[str]:
    return [_partition(namespace, name, kind, number) for number in range(INDEX_PARTITIONS)]


def _partition(namespace: str, name: str, kind: ValueType, number: int) -> str:
    return f"{namespace}#{_MARK}{KINDS[kind]}{number}#{name}"


def entries(record: Item) -> dict[tuple[str, str], Item]:
    """The items of a record, by key."""
    key = keys.parse_visible_key(record["pk"])
    found: dict[tuple[str, str], Item] = {}
    for name, (kind, value) in custom(record).items():
        if kind not in KINDS:
            continue
        pk = _partition(key.namespace, name, kind, keys.shard(key) % INDEX_PARTITIONS)
        sk = f"{encoded(value)}{_BEHIND_VALUE}{record['gs']}"
        item: Item = {"pk": pk, "sk": sk, "w": key.workflow_id, "seq": record["seq"]}
        if "x" in record:
            item["x"] = record["x"]
        found[pk, sk] = item
    return found


def is_entry(item: Item) -> bool:
    """Whether an item of the table is one of these, and not a run's record or stone."""
    return "w" in item


def split(sort_key: str) -> tuple[str, str]:
    """The value as it is encoded, and the start with the run."""
    value, _, start = sort_key.partition(_BEHIND_VALUE)
    return value, start


def joined(value: str, start: str) -> str:
    return f"{value}{_BEHIND_VALUE}{start}"


def before_start(sort_key: str) -> int:
    """How many characters stand before the start."""
    return sort_key.index(_BEHIND_VALUE) + 1


def record_key(namespace: str, item: Item) -> tuple[str, str]:
    _, start = split(item["sk"])
    return keys.visible_key(ExecutionKey(namespace, item["w"])), start.partition("#")[2]


def encoded(value: Value) -> str:
    """Text that sorts as the value does."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, datetime):
        value = to_us(value)
    if isinstance(value, int):
        return f"{value + _OFFSET:020d}"
    if isinstance(value, float):
        (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))
        return f"{bits ^ (_SIGN | (-(bits >> 63) & (_SIGN - 1))):016x}"
    escaped = str(value).replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return escaped.encode(errors="replace")[:_KEYWORD_BYTES].decode(errors="ignore")
