"""The contract of ControlStore: versions, conflicts, lists in order, and the size of a record."""

import asyncio

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.common.control import (
    MAX_VALUE_BYTES,
    ControlConflict,
    ControlRecord,
    ControlTooLarge,
    wake_up_id,
)
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import StoreUnavailable
from tests.support.sample_commits import EPOCH

FIRST = ControlRecord("schedule", "default", "nightly", 1, b"\x00first")
SECOND = FIRST._replace(version=2, value=b"second")


def second_of(first: ControlRecord) -> ControlRecord:
    return SECOND._replace(incarnation=first.incarnation)


async def test_nothing_is_there_at_first(backend: Backend) -> None:
    assert await backend.control.get("schedule", "default", "nightly") is None
    assert await backend.control.list("schedule", "default", limit=10) == []


async def test_a_record_is_read_as_it_was_put(backend: Backend) -> None:
    control = backend.control
    first = await control.put(FIRST)
    assert await control.get("schedule", "default", "nightly") == first
    second = await control.put(second_of(first))
    assert await control.get("schedule", "default", "nightly") == second
    empty = await control.put(ControlRecord("namespace", "", "日本 #1/2", 1, b""))
    assert await control.get("namespace", "", "日本 #1/2") == empty


async def test_kinds_and_namespaces_are_apart(backend: Backend) -> None:
    control = backend.control
    likes = [FIRST, FIRST._replace(kind="batch"), FIRST._replace(namespace="other"), FIRST._replace(namespace="")]
    records = [await control.put(like) for like in likes]
    for record in records:
        assert await control.list(record.kind, record.namespace, limit=10) == [record]
    await control.delete(records[0])
    assert [await control.get(*record[:3]) for record in records] == [None, *records[1:]]


@pytest.mark.parametrize("version", [1, 2, 4])
async def test_a_version_that_does_not_follow_is_refused_with_what_is_there(backend: Backend, version: int) -> None:
    control = backend.control
    second = await control.put(second_of(await control.put(FIRST)))
    with pytest.raises(ControlConflict) as refused:
        await control.put(second._replace(version=version, value=b"mine"), arm=EPOCH)
    assert refused.value.existing == second and "version 2" in str(refused.value)
    assert await control.get("schedule", "default", "nightly") == second


async def test_who_changes_what_is_gone_is_told(backend: Backend) -> None:
    with pytest.raises(ControlConflict, match="gone") as refused:
        await backend.control.put(SECOND)
    assert refused.value.existing is None
    assert await backend.control.get("schedule", "default", "nightly") is None


async def test_of_two_who_write_at_once_one_wins(backend: Backend) -> None:
    control = backend.control
    second = second_of(await control.put(FIRST))
    values = [f"writer {number}".encode() for number in range(5)]
    outcomes = await asyncio.gather(
        *(control.put(second._replace(value=value)) for value in values), return_exceptions=True
    )
    (won,) = [value for value, outcome in zip(values, outcomes, strict=True) if isinstance(outcome, ControlRecord)]
    assert sum(isinstance(outcome, ControlConflict) for outcome in outcomes) == 4
    assert await control.get("schedule", "default", "nightly") == second._replace(value=won)


async def test_two_who_write_the_same_do_not_both_win(backend: Backend) -> None:
    outcomes = await asyncio.gather(*(backend.control.put(FIRST) for _ in range(2)), return_exceptions=True)
    assert sum(isinstance(outcome, ControlConflict) for outcome in outcomes) == 1


async def test_a_delete_knows_the_version_and_may_be_repeated(backend: Backend) -> None:
    control = backend.control
    first = await control.put(FIRST)
    second = await control.put(second_of(first))
    with pytest.raises(ControlConflict) as refused:
        await control.delete(first)
    assert refused.value.existing == second
    await control.delete(second)
    await control.delete(second)
    assert await control.get("schedule", "default", "nightly") is None
    again = await control.put(FIRST)
    assert await control.get("schedule", "default", "nightly") == again


async def test_lists_are_in_the_order_of_ids_and_go_on_behind_one(backend: Backend) -> None:
    control = backend.control
    ids = sorted(["a", "a1", "a-1", "b", "é", "日本", "Z", "\U0001f600", "\uffee"], key=str.encode)
    for id in reversed(ids):
        await control.put(FIRST._replace(id=id))
    assert [record.id for record in await control.list("schedule", "default", limit=99)] == ids
    paged: list[str] = []
    while page := await control.list("schedule", "default", after=paged[-1] if paged else "", limit=2):
        assert len(page) <= 2
        paged += [record.id for record in page]
    assert paged == ids
    assert [record.id for record in await control.list("schedule", "default", after="a0", limit=2)] == ["a1", "b"]


async def test_a_list_of_large_records_is_whole(backend: Backend) -> None:
    value = b"x" * MAX_VALUE_BYTES
    for number in range(4):
        await backend.control.put(ControlRecord("batch", "default", f"b{number}", 1, value))
    assert [each.id for each in await backend.control.list("batch", "default", limit=9)] == ["b0", "b1", "b2", "b3"]


async def test_a_record_over_the_limit_is_refused(backend: Backend) -> None:
    with pytest.raises(ControlTooLarge, match="schedule 'nightly' would have 380001 bytes, above the limit of 380000"):
        await backend.control.put(FIRST._replace(value=b"x" * (MAX_VALUE_BYTES + 1)), arm=EPOCH)
    assert await backend.control.get("schedule", "default", "nightly") is None


async def test_a_wake_up_is_armed_with_its_write_and_struck_off_like_a_deadline(embedded: Backend) -> None:
    control, timers = embedded.control, embedded.timers
    nightly, other = (ExecutionKey("default", wake_up_id("schedule", id)) for id in ("nightly", "w"))
    workflow = ExecutionKey("default", "w")
    late = EPOCH.replace(year=2100)
    await timers.arm(workflow, EPOCH.replace(second=1))
    second = second_of(await control.put(FIRST, arm=EPOCH.replace(second=2)))
    assert await timers.next_fire() == EPOCH.replace(second=1)
    await control.put(second, arm=EPOCH)
    await timers.arm(other, EPOCH.replace(second=3))
    with pytest.raises(ControlConflict):
        await control.put(second, arm=EPOCH.replace(second=9))
    due = await timers.due(late, 10)
    assert due == [
        (EPOCH, nightly),
        (EPOCH.replace(second=1), workflow),
        (EPOCH.replace(second=2), nightly),
        (EPOCH.replace(second=3), other),
    ]
    assert await timers.next_fire() == EPOCH
    assert await timers.due(late, 2) == due[:2] and await timers.due(EPOCH, 10) == due[:1]
    await timers.fired(due[:2])
    assert await timers.due(late, 10) == due[2:] and await timers.next_fire() == due[2][0]
    await timers.fired(due)
    assert await timers.next_fire() is None


async def test_a_closed_store_refuses(embedded: Backend) -> None:
    await embedded.close()
    with pytest.raises(StoreUnavailable):
        await embedded.control.put(FIRST)
