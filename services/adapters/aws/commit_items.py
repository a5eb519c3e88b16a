"""Commits as items of ``exec``. Pure: the parts are those of the codec; what else an item has, keys and conditions ask.

Attributes: ``run`` the run that it is of (of two: the one that it opens), ``cr`` the run that it closes beside that,
``h`` and ``e`` the parts (or ``hr`` and ``er``, the blobs that they are, ``large_parts``), ``o`` when some payloads are
blobs, ``w`` who hands on what it owes (``S`` the feed, ``W`` its writer). What the parts say (nonce, time, deadline) is
not said again: a small commit is one write unit, of 1,024 bytes. Times in epoch seconds: ``x`` from when on the item
counts for nothing, ``rx`` from when on the run that it is of does (it closed it), ``cx`` the same of ``cr``.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from ...history import codec
from ...history.commit import Commit, EncodedCommit, ExecutionKey
from ...history.ports import StateTooLarge
from ...timer_sweeper.buckets import to_ms
from . import keys
from .attributes import Attributes, Item, size, to_attributes

HandsOn = Literal["S", "W"]

HEAD_KEPT = timedelta(days=7)
"""How much longer than the rest of its run the newest commit of a log is kept."""

MAX_ITEM_BYTES = 400_000
"""DynamoDB takes 409,600 with names; attributes that expiry adds later must fit as well."""


class ItemTooLarge(StateTooLarge):
    """Nothing was written: DynamoDB takes no item of that size."""

    def __init__(self, what: str, item_bytes: int) -> None:
        Exception.__init__(
            self,
            f"{what} would be an item of {item_bytes} bytes, DynamoDB takes {MAX_ITEM_BYTES}; "
            "wait for fewer things at once, and keep large data elsewhere",
        )


def encode(commit: Commit, hands_on: HandsOn, limit: int) -> tuple[dict[str, Any], int]:
    """The item, of whatever size, and the bytes of its state before compression. Raises StateTooLarge for an open run's
    state of more than ``limit`` bytes."""
    head, events, state_bytes = codec.encode_sized_commit(commit)
    if state_bytes > limit and commit.state.close_time is None:
        raise StateTooLarge(state_bytes, limit)
    item: Item = {
        "pk": keys.log_key(commit.key),
        "sk": keys.commit_key(commit.seq),
        "run": commit.run_id,
        "h": head,
        "w": hands_on,
    }
    if events:
        item["e"] = events
    if commit.closed is not None:
        item["cr"] = commit.closed.run_id
    if commit.expires_at is not None:
        item["rx"] = seconds(commit.expires_at)
        if commit.state.deleted:
            item["rx"] -= 1  # not a part of a second from now
            item["x"] = seconds(commit.expires_at + HEAD_KEPT)
    if type(commit) is EncodedCommit and commit.referring:
        item["o"] = 1
    return to_attributes(item), state_bytes


def says_all(item: Item) -> bool:
    """Whether the commit can be read off the item alone."""
    return "h" in item and "er" not in item and "o" not in item


def check_size(what: str, attributes: Attributes) -> None:
    if (item_bytes := size(attributes)) > MAX_ITEM_BYTES:
        raise ItemTooLarge(what, item_bytes)


def decode(item: Item) -> Commit:
    """Raises UnreadableRecord."""
    return codec.decode_commit(item["h"], item.get("e", b""))


def key_of(item: Item) -> ExecutionKey:
    return keys.parse_log_key(item["pk"])


def seq_of(item: Item) -> int:
    return keys.parse_commit_key(item["sk"])


def is_there(item: Item, now: datetime) -> bool:
    """An item that has expired counts for nothing, whether or not it was deleted yet."""
    return not _over(item.get("x"), now)


def is_of(item: Item, run_id: str) -> bool:
    return run_id in (item["run"], item.get("cr"))


def shows(item: Item, run_id: str, now: datetime) -> bool:
    """Whether who reads for that run may see it: not once the retention of the run is over, also where the item stays
    longer, as the head of its log or as a commit of the next run."""
    over = item.get("rx") if item["run"] == run_id else item.get("cx")
    return is_there(item, now) and not _over(over, now)


def seconds(time: datetime) -> int:
    """Epoch seconds, rounded up."""
    return -(-to_ms(time) // 1_000)


def _over(expires: int | None, now: datetime) -> bool:
    return expires is not None and expires <= now.timestamp()
