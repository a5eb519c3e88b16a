"""Which shards are read: parents first, from the beginning where nothing is known, each by one reader."""

from hypothesis import given
from hypothesis import strategies as st

from stepwell_server.adapters.aws.stream_shards import Shard, ShardLease, to_read

NOW = 1_000_000
PARENT, CHILD, OTHER = Shard("parent", "gone long ago"), Shard("child", "parent"), Shard("other")


def ids(leases: list[ShardLease]) -> list[str]:
    return [lease.shard_id for lease in leases]


def test_a_child_waits_for_its_parent_and_nobody_waits_for_one_that_is_gone() -> None:
    assert ids(to_read([CHILD, PARENT, OTHER], {}, (), NOW)) == ["parent", "other"]
    half = {"parent": ShardLease("parent", "me", 3, NOW + 9, "7")}
    assert ids(to_read([CHILD, PARENT], half, (), NOW)) == []
    done = {"parent": ShardLease("parent", "", 4, 0, "9", True)}
    assert ids(to_read([CHILD, PARENT], done, (), NOW)) == ["child"]
    assert ids(to_read([CHILD], {}, (), NOW)) == ["child"]


def test_what_nobody_has_read_begins_at_its_oldest_record_and_what_somebody_left_where_they_were() -> None:
    assert to_read([OTHER], {}, (), NOW) == [ShardLease("other")]
    left = ShardLease("other", "dead", 5, NOW, "42")
    assert to_read([OTHER], {"other": left}, (), NOW) == [left]
    assert left.changed("me", NOW + 9) == ShardLease("other", "me", 6, NOW + 9, "42")


def test_what_is_read_by_others_or_by_this_reader_already_is_left() -> None:
    assert to_read([OTHER], {"other": ShardLease("other", "them", 1, NOW + 1)}, (), NOW) == []
    assert to_read([OTHER], {"other": ShardLease("other", "me", 1, NOW - 1)}, ("other",), NOW) == []


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_every_shard_is_read_once_and_none_before_its_parent(count: int, rng) -> None:
    shards = [Shard("0")] + [Shard(str(n), str(rng.randrange(n))) for n in range(1, count)]
    leases: dict[str, ShardLease] = {}
    order: list[str] = []
    while ready := to_read(rng.sample(shards, len(shards)), leases, (), NOW):
        taken = rng.choice(ready)
        order.append(taken.shard_id)
        leases[taken.shard_id] = taken.changed("", 0, done=True)
    assert sorted(order) == sorted(shard.shard_id for shard in shards)
    for shard in shards:
        if shard.parent:
            assert order.index(shard.parent) < order.index(shard.shard_id)
