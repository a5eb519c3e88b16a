"""Slices of an export: each run is in one, none is passed over, and none is shorter than it has to be."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from stepwell.api.codec import encode_json
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import ExportFormat, ExportState
from stepwell.api.exports import ExportFailure

from stepwell_server.exporter import objects, step
from stepwell_server.exporter.records import Done, Job, Target

T0 = datetime(2026, 1, 5, 9, tzinfo=UTC)
SETTLE = timedelta(minutes=10)
INTERVAL = timedelta(minutes=5)
RUN = Target("order-1", "run-1", "order", "COMPLETED", T0, T0)


def job(**more: Any) -> Job:
    values = {"namespace": "default", "id": "job", "destination": "d", "format": ExportFormat.JSON, "started": T0}
    return Job(**(values | {"next_at": T0} | more))


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def slices(one: Job, until: datetime) -> list[tuple[datetime, datetime]]:
    """All that are looked at, each at the time for which it is armed."""
    found, now = [], T0
    while now < until and not step.is_complete(one):
        one = step.with_slice(one, now, SETTLE, INTERVAL)
        if one.slice_end is None:
            assert one.next_at > now
            now = one.next_at
        else:
            found.append((step.begins_at(one), one.slice_end))
            one = step.slice_done(one, now)
    return found


def test_a_window_ends_where_it_was_told_to() -> None:
    assert slices(job(closed_before=T0), T0 + timedelta(days=1)) == [
        (step.BEGINNING, T0 - SETTLE),
        (T0 - SETTLE, T0 - minutes(5)),
        (T0 - minutes(5), T0),
    ]
    assert slices(job(closed_before=T0 - minutes(60), closed_after=T0 - minutes(90)), T0 + minutes(60)) == [
        (T0 - minutes(90), T0 - minutes(60))
    ]


def test_one_that_goes_on_looks_at_each_interval() -> None:
    found = slices(job(), T0 + minutes(60))
    assert all(before[1] == after[0] for before, after in itertools.pairwise(found))
    assert [(end - begin) for begin, end in found[1:]] == [minutes(5)] * 11
    later = slices(job(closed_after=T0 + minutes(7)), T0 + minutes(60))
    assert later[0] == (T0 + minutes(7), T0 + minutes(12)) and len(later) == 8


def test_filters_are_narrowed_to_the_slice() -> None:
    one = step.with_slice(job(query="a OR b", closed_after=T0 - minutes(20)), T0, SETTLE, INTERVAL)
    assert step.query_of(one) == (
        "(a OR b) AND CloseTime >= '2026-01-05T08:40:00Z' AND CloseTime < '2026-01-05T08:50:00Z'"
    )


def test_what_cannot_be_read_is_tried_again_and_fails_in_the_end() -> None:
    failure = ExportFailure(execution=WorkflowExecution(workflow_id="order-1"), code="UNAVAILABLE", message="no")
    one, now, rounds = step.claimed(job(), (RUN,), T0), T0, 0
    while one.burst is not None:
        rounds += 1
        outcome = Done(target=one.burst.targets[0], failure=failure, later=True)
        one = step.finished(one, [outcome], now)
        now = step.wakes_at(one)
        if one.again:
            assert one.trouble == "no" and one.failed == 0
            one = step.claimed(one, one.again, now)
    assert (rounds, one.failed, one.done, one.trouble) == (step.MAX_TRIES, 1, 0, "")
    assert now - T0 < minutes(15)


def test_what_nobody_got_to_comes_first_and_a_stop_stays_a_stop() -> None:
    two = msgspec.structs.replace(RUN, run_id="run-2")
    outcomes = [Done(target=RUN, object="o", size=7), Done(target=two, left=True)]
    one = step.finished(step.claimed(job(), (RUN, two), T0), outcomes, T0)
    assert (one.done, one.size, one.again, one.next_at) == (1, 7, (two,), T0)
    stopped = step.closed(step.claimed(job(), (RUN, two), T0), ExportState.STOPPED, "enough", T0)
    over = step.finished(stopped, outcomes, T0)
    assert (over.state, over.done, over.again) == (ExportState.STOPPED, 1, ())
    assert step.wakes_at(over) == T0 + step.KEPT


def test_names_lead_nowhere_else_and_are_told_apart() -> None:
    ids = ["a/b", "a=2Fb", "../..", ".hidden", "-x", "Ü" * 300, "order-1", "ORDER-1", "a\x7f", "."]
    names = {objects.history_name(job(), msgspec.structs.replace(RUN, workflow_id=text)) for text in ids}
    assert len(names) == len(ids)
    places = {objects.list_prefix(job(id=text)) for text in ids} | {
        objects.prefix_of(job(namespace=text)) for text in ids
    }
    assert len(places) == 2 * len(ids)
    for name in (*names, *places):
        parts = name.removesuffix("/").split("/")
        assert all(part.isascii() and len(part) < 200 and (part[0].isalnum() or part[0] == "=") for part in parts)
        assert len(encode_json(name)) < 900
