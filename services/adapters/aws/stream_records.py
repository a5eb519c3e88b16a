"""Records of the stream of ``exec``: which are commits, and what they say. Pure.

The form is that of DynamoDB Streams, as Lambda's events have it (bytes in base64, times in epoch seconds) and as
GetRecords answers (bytes, datetimes).
"""

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from ...history.feed import FeedRecord
from . import commit_items, keys
from .attributes import from_attributes

Record = Mapping[str, Any]


def parse(record: Record) -> FeedRecord | None:
    """None for what is no new commit: activity items, whose writer wakes the run, markers, what expiry changes or
    deletes. Raises UnreadableRecord, and KeyError or ValueError for what is no record of this table."""
    change = record["dynamodb"]
    if record["eventName"] != "INSERT" or not _sort_key(change).startswith(keys.COMMITS):
        return None
    item = from_attributes({name: _typed(typed) for name, typed in change["NewImage"].items()})
    return FeedRecord(
        key=commit_items.key_of(item),
        seq=commit_items.seq_of(item),
        # Payloads and parts that were too large for the item are blobs; the log reads them.
        commit=commit_items.decode(item) if commit_items.says_all(item) else None,
        hands_on=item.get("w") == "S",
        landed=_time(change["ApproximateCreationDateTime"]),
    )


def number_of(record: Record) -> str:
    """Names the record within its shard, and says where it stands: larger is later."""
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


def name_of(record: Record) -> str:
    """For people: whose commit it is, as far as that can be read. No payloads."""
    found = record.get("dynamodb", {}).get("Keys", {})
    return " ".join(str(found.get(name, {}).get("S", "?"))[:300] for name in ("pk", "sk"))


def _sort_key(change: Mapping[str, Any]) -> str:
    sort_key: str = change["Keys"]["sk"]["S"]
    return sort_key


def _typed(typed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Events are JSON, where bytes are in base64."""
    ((kind, of),) = typed.items()
    return {kind: b64decode(of)} if kind == "B" and isinstance(of, str) else typed


def _time(stamp: datetime | float) -> datetime:
    return stamp if isinstance(stamp, datetime) else datetime.fromtimestamp(stamp, UTC)
