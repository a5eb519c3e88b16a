"""The stored form of commits and items."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepwell.api.payloads import Payload

from stepwell_server.history import codec
from tests.support.sample_commits import SampleRun, chain, sample_item


@pytest.mark.parametrize("number", range(5))
def test_commits_come_back_as_they_were(number: int) -> None:
    for commit in SampleRun(number, namespace="prod", workflow_id="日本#1").commits():
        assert codec.decode_commit(*codec.encode_commit(commit)) == commit


def test_items_come_back_as_they_were() -> None:
    for version in (1, 2):
        item = sample_item(SampleRun(1), version=version)
        assert codec.decode_activity_item(codec.encode_activity_item(item)) == item


def test_events_are_a_part_of_their_own() -> None:
    commit = next(SampleRun(2).commits())
    stored = codec.encode_commit(commit)
    assert codec.decode_events(stored.events) == commit.events
    silent = msgspec.structs.replace(commit, events=())
    assert codec.encode_commit(silent).events == b""
    assert codec.decode_events(b"") == ()


def test_a_commit_must_agree_with_its_state() -> None:
    commit = next(SampleRun(3).commits())
    for change in ({"seq": 2}, {"run_id": "other"}, {"workflow_id": "other"}, {"namespace": "other"}):
        with pytest.raises(ValueError, match="carries the state of commit 1"):
            codec.encode_commit(msgspec.structs.replace(commit, **change))


def test_fields_of_a_later_release_are_ignored() -> None:
    commit = next(SampleRun(4).commits())
    stored = codec.encode_commit(commit)
    head = msgspec.msgpack.decode(codec.unpack(stored.head))
    head["invented_later"] = {"a": 1}
    head["state"]["invented_later"] = [1, 2]
    later = codec.pack(msgspec.msgpack.encode(head))
    assert codec.decode_commit(later, stored.events) == commit


def test_a_run_of_three_steps_is_small() -> None:
    """Bytes of the two parts of all five commits; with keys and indexes it must stay below 3 KB (peers.md)."""
    parts = [part for commit in SampleRun(123_457).commits() for part in codec.encode_commit(commit)]
    assert sum(map(len, parts)) < 1_800


def test_the_format_of_a_later_release_is_refused_by_name() -> None:
    with pytest.raises(codec.UnreadableRecord, match=r"format 9.*newer release"):
        codec.unpack(b"\x09abc")
    with pytest.raises(codec.UnreadableRecord):
        codec.unpack(b"")


def test_damage_is_found() -> None:
    stored = codec.encode_commit(next(SampleRun(5).commits()))
    for position in range(1, len(stored.head)):
        damaged = bytearray(stored.head)
        damaged[position] ^= 0x55
        with pytest.raises(codec.UnreadableRecord):
            codec.decode_commit(bytes(damaged), stored.events)


def test_a_part_of_the_wrong_kind_is_refused() -> None:
    stored = codec.encode_commit(next(SampleRun(6).commits()))
    with pytest.raises(codec.UnreadableRecord, match="does not fit"):
        codec.decode_commit(stored.events, stored.head)


def test_visible_attributes() -> None:
    memo = {"note": Payload(data=b"x")}
    assert codec.decode_visible_attributes(codec.encode_visible_attributes(memo, {})) == (memo, {})
    assert codec.encode_visible_attributes({}, {}) is None
    assert codec.decode_visible_attributes(None) == ({}, {})


@given(st.binary(max_size=2_000))
def test_any_bytes_can_be_packed(data: bytes) -> None:
    packed = codec.pack(data)
    assert codec.unpack(packed) == data
    assert len(packed) <= len(data) + 1


def test_a_commit_of_two_runs_has_the_events_of_each_apart() -> None:
    first, second = chain(4)
    shared = second[0]
    assert shared.closed is not None
    stored = codec.encode_commit(shared)
    assert codec.decode_commit(*stored) == shared
    assert stored.events[0] == codec.FORMAT_TWO_RUNS
    assert codec.decode_events(stored.events) == shared.events
    assert codec.decode_closed_events(stored.events) == shared.closed.events
    silent = msgspec.structs.replace(shared, events=())
    assert codec.decode_commit(*codec.encode_commit(silent)) == silent
    for part in (codec.encode_commit(first[0]).events, b""):
        assert codec.decode_closed_events(part) == ()


def test_a_commit_of_one_run_is_stored_as_before() -> None:
    """Releases before this one read it, and what they wrote is read."""
    commit = next(SampleRun(5).commits())
    stored = codec.encode_commit(commit)
    head = msgspec.msgpack.decode(codec.unpack(stored.head))
    assert "closed" not in head and stored.events == codec.pack(msgspec.msgpack.encode(commit.events))
    *_, close = SampleRun(5).commits()
    head = msgspec.msgpack.decode(codec.unpack(codec.encode_commit(close).head))
    assert head["state"]["completion"].keys() == {"nonce", "seq", "started_event_id"}


def test_a_commit_of_two_runs_must_agree_with_both_states() -> None:
    shared = chain(6)[1][0]
    assert shared.closed is not None
    for change in ({"seq": 99}, {"run_id": shared.run_id}, {"workflow_id": "other"}, {"namespace": "other"}):
        state = msgspec.structs.replace(shared.closed.state, **change)
        closed = msgspec.structs.replace(shared.closed, state=state)
        with pytest.raises(ValueError, match="carries the state of commit"):
            codec.encode_commit(msgspec.structs.replace(shared, closed=closed))


def test_a_damaged_part_of_two_runs_says_so() -> None:
    stored = codec.encode_commit(chain(7)[1][0])
    for cut in (1, 4, 30):
        with pytest.raises(codec.UnreadableRecord):
            codec.decode_closed_events(stored.events[:cut])
        with pytest.raises(codec.UnreadableRecord):
            codec.decode_events(stored.events[:cut])
