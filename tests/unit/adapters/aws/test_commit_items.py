from datetime import timedelta

import msgspec
import pytest
from stepwell.api import limits
from stepwell.api.payloads import Payload

from stepwell_server.adapters.aws import commit_items
from stepwell_server.adapters.aws.attributes import from_attributes
from stepwell_server.adapters.aws.commit_items import ItemTooLarge
from stepwell_server.history.commit import Commit
from stepwell_server.history.ports import StateTooLarge
from tests.support.sample_commits import EPOCH, SampleRun, chain

SECOND = timedelta(seconds=1)


def stored(commit: Commit) -> dict[str, object]:
    return from_attributes(commit_items.encode(commit, "S", limits.MAX_STATE_BYTES)[0])


def test_every_commit_is_read_back_as_it_was() -> None:
    for commit in [*SampleRun(1).commits(), *(commit for run in chain(2) for commit in run)]:
        item = stored(commit)
        assert commit_items.decode(item) == commit
        assert commit_items.key_of(item) == commit.key
        assert commit_items.seq_of(item) == commit.seq


def test_what_the_feed_asks_stands_beside_the_parts() -> None:
    first, second = chain(3)
    start, shared, close = first[0], second[0], second[-1]
    assert stored(start).keys() == {"pk", "sk", "run", "h", "e", "w"}, "what the parts say is not said again"
    assert stored(start)["run"] == start.run_id
    assert (stored(shared)["run"], stored(shared)["cr"]) == (shared.run_id, start.run_id)
    assert close.expires_at is not None
    assert stored(close)["rx"] == int(close.expires_at.timestamp()) + 1


def test_a_run_is_shown_until_its_retention_is_over() -> None:
    *_, close = SampleRun(4).commits()
    item = stored(close)
    assert close.expires_at is not None
    assert commit_items.shows(item, close.run_id, close.expires_at - SECOND)
    assert not commit_items.shows(item, close.run_id, close.expires_at + SECOND)
    assert commit_items.is_there(item, close.expires_at + SECOND)


def test_a_commit_of_two_runs_shows_each_for_as_long_as_that_lasts() -> None:
    shared = chain(5)[1][0]
    assert shared.closed is not None
    item = {**stored(shared), "cx": int(EPOCH.timestamp())}
    assert not commit_items.shows(item, shared.closed.run_id, EPOCH)
    assert commit_items.shows(item, shared.run_id, EPOCH)
    expired = {**item, "x": int(EPOCH.timestamp())}
    assert not commit_items.is_there(expired, EPOCH) and not commit_items.shows(expired, shared.run_id, EPOCH)


def test_more_than_dynamodb_takes_is_refused_by_name() -> None:
    start = next(SampleRun(6).commits())
    data = bytes((number * number * 2_654_435_761 >> 13) & 255 for number in range(450_000))
    large = (Payload(metadata={"encoding": "binary/plain"}, data=data),)
    event = start.events[0]
    event = msgspec.structs.replace(event, attributes=msgspec.structs.replace(event.attributes, input=large))
    attributes, _ = commit_items.encode(msgspec.structs.replace(start, events=(event,)), "S", limits.MAX_STATE_BYTES)
    with pytest.raises(ItemTooLarge, match=r"commit 1 of workflow 'order-000006' .* DynamoDB takes 400000"):
        commit_items.check_size("commit 1 of workflow 'order-000006'", attributes)


def test_a_state_over_the_limit_is_refused_as_everywhere() -> None:
    start, *_, close = SampleRun(7).commits()
    with pytest.raises(StateTooLarge, match="the most is 100"):
        commit_items.encode(start, "W", 100)
    assert commit_items.encode(close, "W", 100)[0]["w"] == {"S": "W"}
