"""Who takes which partition: all are held, evenly, and no faster than one at a time from others."""

from stepwell_server.timer_sweeper import leasing
from stepwell_server.timer_sweeper.buckets import FAR, Layout, Partition, partitions_of
from stepwell_server.timer_sweeper.ports import Lease

NOW = 1_000_000
PARTITIONS = partitions_of(Layout(1, 8))


def held_by(owners: str, until_ms: int = NOW + 1) -> dict[Partition, Lease]:
    return {
        partition: Lease(partition, owner, 3, until_ms, 500)
        for partition, owner in zip(PARTITIONS, owners, strict=False)
        if owner != "."
    }


def taken(leases: dict[Partition, Lease], owner: str) -> list[Partition]:
    return [lease.partition for lease in leasing.to_take(PARTITIONS, leases, owner, NOW)]


def test_the_first_takes_all_and_goes_on_at_their_cursors() -> None:
    leases = leasing.to_take(PARTITIONS, {PARTITIONS[2]: Lease(PARTITIONS[2], "", 7, 0, 500)}, "a", NOW)
    assert sorted(lease.partition for lease in leases) == PARTITIONS
    by_partition = {lease.partition: lease for lease in leases}
    assert by_partition[PARTITIONS[2]] == Lease(PARTITIONS[2], "a", 8, NOW + leasing.LEASE_MS, 500)
    assert by_partition[PARTITIONS[0]] == Lease(PARTITIONS[0], "a", 1, NOW + leasing.LEASE_MS, 0)


def test_a_second_takes_one_at_a_time_up_to_its_share() -> None:
    assert taken(held_by("aaaaaaaa"), "b") == [PARTITIONS[7]]
    assert taken(held_by("aaaaabbb"), "b") == [PARTITIONS[4]]
    assert taken(held_by("aaaabbbb"), "b") == [] == taken(held_by("aaaabbbb"), "a")
    assert taken(held_by("aaaabbbb"), "c") == [PARTITIONS[3]]


def test_what_nobody_holds_goes_before_what_others_hold() -> None:
    assert taken(held_by("aaaaaaa."), "b") == [PARTITIONS[7]]
    assert set(taken(held_by("aaaaaaaa", until_ms=NOW), "b")) == set(PARTITIONS)  # all have ended
    assert len(taken(held_by("aaaa...."), "b")) == 4 and len(taken(held_by("aaaa...."), "a")) == 4


def test_a_lease_is_renewed_when_a_third_of_it_is_over() -> None:
    for partition, length in ((PARTITIONS[0], leasing.LEASE_MS), (FAR[0], leasing.FAR_LEASE_MS)):
        lease = leasing.taken(partition, None, "a", NOW)
        assert not leasing.must_renew(lease, NOW + length // 3 - 1)
        assert leasing.must_renew(lease, NOW + length // 3)
        again = leasing.renewed(lease, 77, NOW + 5_000)
        assert again == Lease(partition, "a", 2, NOW + 5_000 + length, 77)
        assert not leasing.released(again, 78).is_held(NOW)


NOON = 100_000_000


def test_whose_clock_is_slow_keeps_what_it_renews() -> None:
    """By this clock, its lease has ended before it was taken."""
    watch, lease = leasing.Watch(), Lease(PARTITIONS[0], "slow", 1, NOON - 200_000, 0)
    for turn in range(10):
        renewed = lease._replace(counter=1 + turn, until_ms=lease.until_ms + turn * 5_000)
        assert watch.as_seen(renewed, NOON + turn * 5_000, turn * 5_000).is_held(NOON + turn * 5_000)
    assert watch.as_seen(renewed, NOON + 59_000, 59_000).is_held(NOON + 59_000)
    assert not watch.as_seen(renewed, NOON + 60_000, 60_000).is_held(NOON + 60_000)


def test_a_fast_clock_holds_nothing_for_longer_than_a_lease_lasts() -> None:
    watch, lease = leasing.Watch(), Lease(PARTITIONS[0], "fast", 7, NOON + 200_000, 0)
    assert watch.as_seen(lease, NOON, 0).until_ms == NOON + leasing.LEASE_MS
    assert not watch.as_seen(lease, NOON + leasing.LEASE_MS, leasing.LEASE_MS).is_held(NOON + leasing.LEASE_MS)


def test_what_a_lease_says_of_its_end_counts_where_it_may_be_true() -> None:
    def until(lease: Lease) -> int:
        return leasing.Watch().as_seen(lease, NOON, 0).until_ms

    assert until(Lease(PARTITIONS[0], "a", 1, NOON + 4_000, 0)) == NOON + 4_000
    assert until(Lease(PARTITIONS[0], "a", 1, NOON - 4_000, 0)) == NOON + leasing.LEASE_MS
    assert until(Lease(PARTITIONS[0], "a", 1, NOON - 400_000, 0)) == NOON - 400_000
    assert until(Lease(PARTITIONS[0], "", 1, 0, 0)) == 0
