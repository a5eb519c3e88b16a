"""Which partitions a sweeper takes, so that all are read and each has its share. Pure.

A lease protects nothing but its cursor: two who read the same partition fire the same deadlines, which is harmless. So
a holder that is held up and goes on costs a repeat and loses nothing. Clocks may be minutes apart, and then what a
lease says of its end is of no use: a slow clock would lose it all the time. So others watch its counter.
"""

from collections.abc import Iterable, Mapping, Sequence

from .buckets import CLOCKS_MS, Partition
from .ports import Lease

LEASE_MS = 15_000
FAR_LEASE_MS = 180_000
"""Of hours' buckets, which are read once an hour and a day ahead."""

LOOK_SECONDS = 5.0
"""Between looks at the leases."""


class Watch:
    """Ends of others' leases, by one's own clock: one that nobody has renewed for as long as it lasts is over."""

    def __init__(self) -> None:
        self._seen: dict[Partition, tuple[int, int]] = {}
        """Counters, and until when (monotonic) there must be another one."""

    def as_seen(self, lease: Lease, now_ms: int, monotonic_ms: int) -> Lease:
        """The lease with its end by this clock. One that is seen for the first time may say itself when it ends, if
        that is in time; one that has ended, or is too far ahead, may be of another clock, and is given its whole time.
        """
        left_ms = lease.until_ms - now_ms
        if not lease.owner or left_ms <= -CLOCKS_MS or not lease.until_ms:
            return lease
        counter, ends_ms = self._seen.get(lease.partition, (0, 0))
        if counter != lease.counter:
            whole_ms = lease_ms(lease.partition)
            trusted = not counter and 0 < left_ms <= whole_ms
            ends_ms = monotonic_ms + (left_ms if trusted else whole_ms)
            self._seen[lease.partition] = (lease.counter, ends_ms)
        return lease._replace(until_ms=now_ms + max(ends_ms - monotonic_ms, 0))


def to_take(partitions: Sequence[Partition], leases: Mapping[Partition, Lease], owner: str, now_ms: int) -> list[Lease]:
    """The leases to take now, as they would be; of missing ones the cursor is 0. What is free first, up to one's share;
    when nothing is, one from who has more than the share, so that it moves slowly."""
    held = [lease for lease in leases.values() if lease.is_held(now_ms)]
    shares = len({lease.owner for lease in held} | {owner})
    share = -(-len(partitions) // shares)
    room = share - sum(lease.owner == owner for lease in held)
    free = [partition for partition in partitions if not _held(leases.get(partition), now_ms)]
    if free:
        # Sweepers that start together begin at different ends.
        offset = sum(owner.encode()) % len(free)
        chosen: Iterable[Partition] = (free[offset:] + free[:offset])[: max(room, 0)]
    else:
        chosen = _from_the_richest(held, owner, share)[: max(min(room, 1), 0)]
    return [taken(partition, leases.get(partition), owner, now_ms) for partition in chosen]


def lease_ms(partition: Partition) -> int:
    return FAR_LEASE_MS if partition.is_far else LEASE_MS


def must_renew(lease: Lease, now_ms: int) -> bool:
    """When a third of it is over."""
    return 3 * (lease.until_ms - now_ms) <= 2 * lease_ms(lease.partition)


def taken(partition: Partition, there: Lease | None, owner: str, now_ms: int) -> Lease:
    counter, cursor_ms = (there.counter, there.cursor_ms) if there is not None else (0, 0)
    return Lease(partition, owner, counter + 1, now_ms + lease_ms(partition), cursor_ms)


def renewed(lease: Lease, cursor_ms: int, now_ms: int) -> Lease:
    until_ms = now_ms + lease_ms(lease.partition)
    return lease._replace(counter=lease.counter + 1, until_ms=until_ms, cursor_ms=cursor_ms)


def released(lease: Lease, cursor_ms: int) -> Lease:
    return lease._replace(owner="", counter=lease.counter + 1, until_ms=0, cursor_ms=cursor_ms)


def _held(lease: Lease | None, now_ms: int) -> bool:
    return lease is not None and lease.is_held(now_ms)


def _from_the_richest(held: Sequence[Lease], owner: str, share: int) -> list[Partition]:
    by_owner: dict[str, list[Partition]] = {}
    for lease in held:
        if lease.owner != owner:
            by_owner.setdefault(lease.owner, []).append(lease.partition)
    richest = max(by_owner.values(), key=len, default=[])
    return richest[-1:] if len(richest) > share else []
