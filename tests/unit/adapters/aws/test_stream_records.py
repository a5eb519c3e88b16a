"""Which records of the stream are commits, in the form that functions get and in the one that GetRecords answers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from stepwell_server.adapters.aws import commit_items, stream_records
from stepwell_server.history.codec import UnreadableRecord
from stepwell_server.history.commit import Commit
from tests.support.aws.event_pump import insert_record
from tests.support.sample_commits import SampleRun

COMMITS = list(SampleRun(1).commits())
LANDED = 1_790_000_000.0


def item_of(commit: Commit, hands_on: commit_items.HandsOn = "S") -> dict[str, Any]:
    return commit_items.encode(commit, hands_on, 10**9)[0]


def as_answered(record: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """By GetRecords through boto."""
    stamp = datetime.fromtimestamp(LANDED, UTC)
    return {**record, "dynamodb": {**record["dynamodb"], "NewImage": item, "ApproximateCreationDateTime": stamp}}


@pytest.mark.parametrize("commit", COMMITS, ids=lambda commit: str(commit.seq))
@pytest.mark.parametrize("hands_on", ["S", "W"])
def test_a_commit_comes_back_as_it_was_written(commit: Commit, hands_on: commit_items.HandsOn) -> None:
    item = item_of(commit, hands_on)
    record = insert_record(item, 7, LANDED)
    for form in (record, as_answered(record, item)):
        parsed = stream_records.parse(form)
        assert parsed is not None and parsed.commit == commit
        assert (parsed.key, parsed.seq, parsed.hands_on) == (commit.key, commit.seq, hands_on == "S")
        assert parsed.landed == datetime.fromtimestamp(LANDED, UTC)
    assert stream_records.number_of(record).endswith("7")


@pytest.mark.parametrize("part", ["er", "hr"])
def test_parts_that_are_kept_elsewhere_are_left_to_the_store(part: str) -> None:
    item = item_of(COMMITS[1])
    item.pop("h" if part == "hr" else "e")
    parsed = stream_records.parse(insert_record({**item, part: {"S": "a key"}}, 1, LANDED))
    assert parsed is not None and parsed.commit is None
    assert (parsed.key, parsed.seq) == (COMMITS[1].key, 2)


@pytest.mark.parametrize("sort_key", ["A#run#00000005", "R#key", "B#run#0000000001"])
def test_other_items_are_nothing_to_the_feed(sort_key: str) -> None:
    item = {"pk": {"S": "0001#default#order#a5"}, "sk": {"S": sort_key}, "b": {"B": b"x"}}
    assert stream_records.parse(insert_record(item, 1, LANDED)) is None


@pytest.mark.parametrize("change", ["MODIFY", "REMOVE"])
def test_expiry_is_nothing_to_the_feed(change: str) -> None:
    record = {**insert_record(item_of(COMMITS[0]), 1, LANDED), "eventName": change}
    if change == "REMOVE":
        del record["dynamodb"]["NewImage"]
    assert stream_records.parse(record) is None


def test_a_workflow_id_may_hold_what_keys_are_parted_by() -> None:
    commit = next(iter(SampleRun(2, workflow_id="a#b#C#1").commits()))
    parsed = stream_records.parse(insert_record(item_of(commit), 1, LANDED))
    assert parsed is not None and parsed.key.workflow_id == "a#b#C#1"


def test_a_damaged_commit_is_refused_and_named_without_its_payload() -> None:
    item = {**item_of(COMMITS[0]), "h": {"B": b"\x01secret"}}
    record = insert_record(item, 1, LANDED)
    with pytest.raises(UnreadableRecord):
        stream_records.parse(record)
    assert COMMITS[0].workflow_id in stream_records.name_of(record)
    assert "secret" not in stream_records.name_of(record)
    assert stream_records.name_of({}) == "? ?"
