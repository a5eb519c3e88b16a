import pytest

from stepwell_server.adapters.aws import keys
from stepwell_server.history.commit import BEGINNING, ExecutionKey


@pytest.mark.parametrize("workflow_id", ["order-1", "a#b", "#", "x#a3", "日本", " "])
def test_an_id_is_read_back_from_its_key_whatever_it_holds(workflow_id: str) -> None:
    key = ExecutionKey("default", workflow_id)
    assert keys.parse_log_key(keys.log_key(key)) == key
    assert keys.parse_visible_key(keys.visible_key(key)) == key


def test_keys_are_those_of_stored_items() -> None:
    """They are found by them for ever: a change here loses what is stored."""
    key = ExecutionKey("default", "order-1")
    assert keys.log_key(key) == "08a7#default#order-1"
    assert keys.commit_key(17) == "C#000000000017"
    assert keys.items_key(key, 21) == "08a7#default#order-1#a5"
    assert keys.item_key("run", 21) == "A#run#00000021"
    assert keys.prefix_key("run", BEGINNING + 3) == "B#run#0000000003"
    assert keys.marker_key("one") == "R#one"


def test_seqs_sort_as_their_keys_do() -> None:
    seqs = [1, 2, 9, 10, 99, 100, 51_200, 10**9]
    assert [keys.parse_commit_key(key) for key in sorted(keys.commit_key(seq) for seq in seqs)] == seqs
    parts = [BEGINNING + number for number in (1, 2, 10, 1_000)] + [-1]
    assert [keys.parse_prefix_key(key) for key in sorted(keys.prefix_key("r", seq) for seq in parts)] == parts


def test_shards_are_spread() -> None:
    shards = [keys.shard(ExecutionKey("default", f"order-{number}")) for number in range(20_000)]
    assert min(shards) < 50 and max(shards) > keys.SHARDS - 50 and max(shards) < keys.SHARDS
    assert max(shards.count(shard) for shard in set(shards)) < 25
