"""Large payloads on the whole store: as objects in the bucket, counted; items over DynamoDB's limit; retention."""

import random
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import events as ev
from stepwell.api.payloads import Payload

from stepwell_server.adapters.aws import commit_items
from stepwell_server.adapters.aws.attributes import size
from stepwell_server.adapters.aws.backend import aws_backend
from stepwell_server.adapters.aws.faults import AwsRefused
from stepwell_server.adapters.aws.settings import AwsSettings
from stepwell_server.adapters.aws.stream_records import parse
from stepwell_server.history.commit import BEGINNING, Commit
from stepwell_server.history.feed import Feed
from stepwell_server.history.ports import Conflict
from stepwell_server.history.run_blobs import Owner, PayloadLost
from stepwell_server.history.state import BufferedEvent
from tests.integration.aws.conftest import Store
from tests.support.aws.cells import Provisioning
from tests.support.blobs import noise, with_input, with_memo
from tests.support.sample_commits import EPOCH, SampleRun, chain, sample_item

LARGE = 100_000
DAY = timedelta(days=1)


def blobs_of(store: Store, provisioning: Provisioning, prefix: str = "p/") -> list[str]:
    answer = provisioning.s3.list_objects_v2(Bucket=store.cell.bucket, Prefix=prefix)
    return [entry["Key"] for entry in answer.get("Contents", ())]


def s3_calls(store: Store) -> dict[str, int]:
    return {name.split()[1]: calls for name, calls in store.counter.calls.items() if name.startswith("s3 ")}


async def test_a_large_payload_is_one_put_and_one_get_and_a_small_one_none(store: Store) -> None:
    small = with_input(next(SampleRun(1).commits()), noise(1_024))
    await store.log.append(small)
    assert await store.log.head(small.key) == small
    assert s3_calls(store) == {}
    large = with_input(next(SampleRun(2).commits()), noise(LARGE))
    await store.log.append(large)
    assert s3_calls(store) == {"put_object": 1}
    other = await store.another_process()
    for _ in range(2):
        assert (await other.log.read_events(large.key, large.run_id, 0, 10)).events == large.events
        assert await other.log.head(large.key) == large
    assert s3_calls(other) == {"get_object": 1}
    assert all(size(item) < 3_000 for item in store.items())
    await other.backend.close()


def many_events(commit: Commit, count: int, each: int) -> Commit:
    """With signals whose payloads are too small to be blobs of their own."""
    events = list(commit.events)
    for number in range(count):
        attributes = ev.WorkflowExecutionSignaled(signal_name="s", input=(noise(each, number),))
        events.append(ev.HistoryEvent(event_id=len(events) + 1, event_time=commit.time, attributes=attributes))
    return msgspec.structs.replace(commit, events=tuple(events))


def much_buffered(commit: Commit, count: int, each: int) -> Commit:
    buffered = tuple(
        BufferedEvent(
            index=number,
            time=commit.time,
            attributes=ev.WorkflowExecutionSignaled(signal_name="s", input=(noise(each, number),)),
            size=each,
        )
        for number in range(1, count + 1)
    )
    return msgspec.structs.replace(commit, state=msgspec.structs.replace(commit.state, buffered=buffered))


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda commit: many_events(commit, 80, 7_000), {"er"}),
        (lambda commit: much_buffered(commit, 80, 7_000), {"hr"}),
        (lambda commit: much_buffered(many_events(commit, 80, 7_000), 80, 7_001), {"er", "hr"}),
        (lambda commit: with_input(commit, *(noise(500_000, number) for number in range(4))), set()),
    ],
    ids=["events", "head", "both", "payloads"],
)
async def test_a_commit_never_exceeds_the_item_limit(store: Store, make: Any, parts: set[str]) -> None:
    start, second, *_ = SampleRun(3).commits()
    start = make(start)
    await store.log.append(start)
    (item,) = [item for item in store.items() if item["sk"]["S"].startswith("C#")]
    assert {"er", "hr"} & item.keys() == parts and size(item) < commit_items.MAX_ITEM_BYTES
    other = await store.another_process()
    for store_ in (store, other):
        assert await store_.log.head(start.key) == start
        assert await store_.log.get(start.key, 1) == start
        assert await store_.log.find_run(start.key, start.run_id) == start
        page = await store_.log.read_events(start.key, start.run_id, 0, 10)
        assert page.events == start.events
        with pytest.raises(Conflict) as refused:
            await store_.log.append(msgspec.structs.replace(start, nonce="other"))
        assert refused.value.existing == start
    await other.log.append(second)
    assert (await other.log.read_events(start.key, start.run_id, 0, 1_000)).events == (*start.events, *second.events)
    await other.backend.close()


async def test_a_part_of_a_prefix_may_be_as_large(store: Store) -> None:
    base = many_events(next(SampleRun(4, run=1).commits()), 80, 7_000)
    await store.log.append(base)
    run = SampleRun(4, run=2, first_seq=2)
    opening = next(run.commits())
    state = msgspec.structs.replace(opening.state, prefix_tail_seq=BEGINNING + 1)
    opening = msgspec.structs.replace(opening, state=state)
    await store.log.put_prefix(base.key, run.run_id, BEGINNING + 1, base.events, now=EPOCH)
    await store.log.append(opening)
    page = await store.log.read_events(base.key, run.run_id, BEGINNING, 1_000)
    assert page.events == (*base.events, *opening.events)


async def test_the_feed_reads_through_the_log_what_a_record_does_not_say(
    store: Store, provisioning: Provisioning
) -> None:
    """A memo that is a blob is shown in lists; a record without references is used as it is."""
    seen: list[Commit] = []

    async def note(commit: Commit) -> None:
        seen.append(commit)

    async def fire(key: object, deadline: object) -> None:
        raise AssertionError("nothing is late")

    feed = Feed(store.log, project=note, hand_on=note, fire=fire)
    commits = [with_memo(next(SampleRun(5).commits()), note=noise(LARGE)), next(SampleRun(6).commits())]
    for commit in commits:
        await store.log.append(commit)
    items = [item for item in store.items() if item["sk"]["S"].startswith("C#")]
    for item in items:
        keys = {"pk": item["pk"], "sk": item["sk"]}
        change = {"Keys": keys, "NewImage": item, "ApproximateCreationDateTime": EPOCH}
        record = parse({"eventName": "INSERT", "dynamodb": change})
        assert record is not None and (record.commit is None) == ("o" in item)
        await feed.handle(record)
    by_key = {commit.key: commit for commit in commits}
    assert {commit.key for commit in seen} == by_key.keys() and all(by_key[commit.key] == commit for commit in seen)


async def collect(store: Store) -> int:
    assert store.backend.collect is not None
    return (await store.backend.collect(60.0)).deleted


async def test_blobs_go_when_their_run_does(store: Store, provisioning: Provisioning) -> None:
    """Not before, in whatever order the table deletes; and a head that outlives its run is read all the same."""
    chance = random.Random(1)
    first, second = chain(7)
    first[0] = many_events(with_input(first[0], noise(LARGE)), 80, 7_000)
    second = [with_memo(commit, note=noise(LARGE, 1)) for commit in second]
    commits = [*first, *second]
    run = SampleRun(7)
    await store.append_all(commits)
    await store.log.put_activity(msgspec.structs.replace(sample_item(run), result=(noise(LARGE, 2),)))
    assert len(blobs_of(store, provisioning)) >= 4
    store.clock.go(3 * DAY)
    before = blobs_of(store, provisioning)
    await collect(store)
    assert len(blobs_of(store, provisioning)) >= len(before) - 1  # the item is of no activity that was scheduled
    await store.expire(commits)
    store.clock.go(5 * DAY)
    store.delete_expired(chance)
    await collect(store)
    left = [key for key in blobs_of(store, provisioning) if key.startswith(Owner(first[0].key, first[0].run_id).prefix)]
    assert len(left) <= 1  # of what the table has not deleted yet
    other = await store.another_process()
    head = await other.log.head(second[-1].key)
    assert head is not None and head.seq == second[-1].seq
    store.clock.go(10 * DAY)
    store.delete_expired()
    assert await other.log.head(second[-1].key) is None
    await collect(store)
    assert blobs_of(store, provisioning) == []
    await other.backend.close()


async def test_a_commit_that_lost_the_race_leaves_its_parts_to_the_collector(
    store: Store, provisioning: Provisioning
) -> None:
    start, *_ = SampleRun(8).commits()
    winner = many_events(start, 80, 7_000)
    loser = msgspec.structs.replace(many_events(start, 81, 7_000), nonce="loser")
    await store.log.append(winner)
    with pytest.raises(Conflict):
        await store.log.append(loser)
    assert len(blobs_of(store, provisioning)) == 2
    store.clock.go(2 * DAY)
    assert await collect(store) == 1
    other = await store.another_process()
    assert await other.log.head(start.key) == winner
    await other.backend.close()


async def test_a_part_that_somebody_deleted_is_told_by_run_and_key(store: Store, provisioning: Provisioning) -> None:
    start = many_events(next(SampleRun(9).commits()), 80, 7_000)
    await store.log.append(start)
    (key,) = blobs_of(store, provisioning)
    provisioning.s3.delete_object(Bucket=store.cell.bucket, Key=key)
    with pytest.raises(PayloadLost, match=start.run_id) as lost:
        await store.log.head(start.key)
    assert key in str(lost.value)


async def test_a_process_without_a_bucket_does_what_needs_none(store: Store) -> None:
    """And says what is missing for the rest, before anything is written."""
    backend = await aws_backend(AwsSettings(store.cell.names.cell), clients=store.clients, clock=store.clock)
    small, large = next(SampleRun(10).commits()), with_input(next(SampleRun(11).commits()), noise(LARGE))
    await backend.log.append(small)
    assert await backend.log.head(small.key) == small
    with pytest.raises(AwsRefused, match="STEPWELL_BUCKET"):
        await backend.log.append(large)
    await store.log.append(large)
    with pytest.raises(AwsRefused, match="STEPWELL_BUCKET"):
        await backend.log.head(large.key)


def test_payloads_are_what_they_seem() -> None:
    """The noise above does not compress, else nothing here would be large."""
    assert isinstance(noise(10), Payload) and noise(10) != noise(10, 1) and len(noise(10).data) == 10
