"""Which shards of a stream are to be read, by whom and from where. Pure.

A shard ends after some hours and others follow it; a record about an item is in the child only when all earlier ones
are in the parent. So a shard is read when its parent has been read to the end, or is gone. Where nobody has read yet,
reading begins at the oldest record that is still there: what came in between two readers is never left out.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Shard(NamedTuple):
    shard_id: str
    parent: str = ""
    """Empty when it has none."""


class ShardLease(NamedTuple):
    """Who reads a shard, and how far they are. Only a courtesy: two who read the same cost a repeat, no more."""

    shard_id: str
    owner: str = ""
    counter: int = 0
    """One more with every change: who has an old lease changes nothing any more. 0: there is none yet."""
    until_ms: int = 0
    after: str = ""
    """Sequence number of the last record that was handled; empty: begin with the oldest."""
    done: bool = False
    """The shard has ended, and all of it was handled."""

    def changed(self, owner: str, until_ms: int, after: str = "", *, done: bool = False) -> "ShardLease":
        return ShardLease(self.shard_id, owner, self.counter + 1, until_ms, after or self.after, done)


def to_read(
    shards: Iterable[Shard], leases: Mapping[str, ShardLease], mine: Iterable[str], now_ms: int
) -> list[ShardLease]:
    """Leases of shards that may be taken now: not read to the end, by nobody else, and not before their parent.
    ``mine``: shards that this reader reads already."""
    known = {shard.shard_id: shard for shard in shards}
    taken = set(mine)
    found = []
    for shard in known.values():
        lease = leases.get(shard.shard_id, ShardLease(shard.shard_id))
        if shard.shard_id in taken or lease.done or (lease.owner and now_ms < lease.until_ms):
            continue
        parent = leases.get(shard.parent)
        if shard.parent in known and (parent is None or not parent.done):
            continue
        found.append(lease)
    return found
