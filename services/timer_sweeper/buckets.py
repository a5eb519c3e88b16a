"""Where an armed deadline stands in the timer table, and what a reader of it has to look at. Pure arithmetic.

A row stands in a **bucket** of ten seconds of one **partition** (its partition key), under the time at which it fires
(its sort key); the hash of the workflow id chooses the partition. What fires in more than a day stands in a bucket of
one hour and is put among the others (**promoted**) when it comes near, so that a change of the number of partitions is
over within a day: writers use the newest layout, readers read the older ones as well until they are empty.

A row is put before the write that needs it. So there are rows whose write comes later, or never; ``Awaited`` names it,
so that whoever fires can tell. A row is never deleted: readers keep a cursor, and the table expires it.

Times are milliseconds since 1970, rounded up, so that no row is due before its deadline. A deadline that is past when
it is armed stands at the time of arming: otherwise its place would be behind all cursors.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

from ..history.commit import UNKNOWN as UNKNOWN
from ..history.commit import Awaited as Awaited
from ..history.commit import ExecutionKey

BUCKET_MS = 10_000
FAR_BUCKET_MS = 3_600_000
FAR_MS = 24 * FAR_BUCKET_MS
"""What fires later than this stands in an hour's bucket."""

PROMOTE_MS = 22 * FAR_BUCKET_MS
"""An hour's bucket is promoted this long before it begins: an hour after the last row can have been put into it by a
writer that looked at the clock just before, and a day before the bucket ends."""

KEPT_SECONDS = 7 * 86_400
"""Rows expire this long behind their time: so long may nobody fire deadlines without losing one."""

FAR_PARTITIONS = 16
"""The same in all layouts. An hour's bucket is read once."""

YOUNG_MS = 60_000
"""A row whose write cannot be seen is kept so long behind its first firing: the write may still be under way."""

CLOCKS_MS = 300_000
"""Clocks of two processes of a cell are at most so far apart; AWS refuses requests of one that is off by more."""

ARM_AGAIN_MS = 5_000
"""A writer that took longer than this arms again: well within ``YOUNG_MS`` and within what readers read again."""

_US_PER_MS = 1_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HASH_BYTES = 8
_FAR = "far"


class Layout(NamedTuple):
    """How near rows are spread. A new number of partitions is a new ``version``."""

    version: int = 1
    partitions: int = 4
    from_ms: int = 0
    """When writers begin to use it."""


class Partition(NamedTuple):
    """Of one layout, or, with ``version`` 0, of the hours' buckets. Who reads it has its lease."""

    version: int
    number: int

    @property
    def is_far(self) -> bool:
        return self.version == 0


class TimerRow(NamedTuple):
    """One armed deadline. ``fire_at`` is exact; the row stands at ``place_ms``, which is not before it."""

    key: ExecutionKey
    fire_at: datetime
    place_ms: int
    armed_ms: int
    """When its writer looked at the clock, before the put."""
    awaited: Awaited = UNKNOWN
    queued: bool = False
    """Its writer had sent it to the delay queue before the row was put."""

    @property
    def sort_key(self) -> str:
        return f"{self.place_ms:013d}#{hash_of(self.key)}"

    @property
    def is_far(self) -> bool:
        return self.place_ms - self.armed_ms > FAR_MS

    @property
    def expires(self) -> int:
        """Epoch seconds."""
        return self.place_ms // 1_000 + KEPT_SECONDS

    def partition(self, layout: Layout) -> Partition:
        return partition_of(self.key, layout, far=self.is_far)

    def partition_key(self, layout: Layout) -> str:
        return bucket_key(self.partition(layout), bucket_of(self.place_ms, far=self.is_far))


def row(key: ExecutionKey, fire_at: datetime, now: datetime, awaited: Awaited = UNKNOWN) -> TimerRow:
    """What a writer puts that looked at the clock at ``now``."""
    armed_ms = to_ms(now)
    return TimerRow(key, fire_at, max(ceil_ms(fire_at), armed_ms), armed_ms, awaited)


def must_arm_again(armed: TimerRow, now: datetime) -> bool:
    """To be asked when the row has been put, and once more when its write has landed. The row may stand where nobody
    looks any more, or have been fired and dropped, if the writer was held up for long."""
    now_ms = to_ms(now)
    return now_ms - armed.armed_ms > ARM_AGAIN_MS and armed.place_ms <= now_ms + ARM_AGAIN_MS


def young_for(armed_ms: int, now_ms: int) -> int:
    """For how many milliseconds from its first firing on the write that a row awaits may still come. A writer whose
    clock is slow says that it was armed long before it was, so the age counts only beyond what clocks may be apart."""
    return min(max(armed_ms + YOUNG_MS + CLOCKS_MS - now_ms, 0), YOUNG_MS)


def hash_of(key: ExecutionKey) -> str:
    return _digest(key).hex()


def partition_of(key: ExecutionKey, layout: Layout, *, far: bool = False) -> Partition:
    number = int.from_bytes(_digest(key), "big")
    return Partition(0, number % FAR_PARTITIONS) if far else Partition(layout.version, number % layout.partitions)


def partitions_of(layout: Layout) -> list[Partition]:
    """The near ones of a layout."""
    return [Partition(layout.version, number) for number in range(layout.partitions)]


FAR = [Partition(0, number) for number in range(FAR_PARTITIONS)]


def bucket_of(place_ms: int, *, far: bool = False) -> int:
    """The time at which the bucket begins."""
    size = FAR_BUCKET_MS if far else BUCKET_MS
    return place_ms // size * size


def bucket_key(partition: Partition, bucket_ms: int) -> str:
    """The partition key of a bucket."""
    version = _FAR if partition.is_far else str(partition.version)
    return f"{version}#{partition.number:03d}#{bucket_ms // 1_000:011d}"


def buckets(from_ms: int, to_ms: int) -> Iterator[int]:
    """The near buckets that rows of ``from_ms`` up to, not with, ``to_ms`` stand in, oldest first."""
    return iter(range(bucket_of(from_ms), to_ms, BUCKET_MS) if from_ms < to_ms else ())


def sort_bounds(from_ms: int, to_ms: int) -> tuple[str, str]:
    """First and last sort key (both included) of rows from ``from_ms`` up to, not with, ``to_ms``."""
    return f"{max(from_ms, 0):013d}#", f"{max(to_ms, 0) - 1:013d}#~"


def to_ms(time: datetime) -> int:
    return (time - EPOCH) // _MICROSECOND // _US_PER_MS


def ceil_ms(time: datetime) -> int:
    return ((time - EPOCH) // _MICROSECOND + _US_PER_MS - 1) // _US_PER_MS


def from_ms(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _digest(key: ExecutionKey) -> bytes:
    return blake2b(f"{key.namespace}#{key.workflow_id}".encode(), digest_size=_HASH_BYTES).digest()
