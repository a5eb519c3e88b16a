"""The contract of ControlStore for records that are deleted and made anew under their id: who stood still meanwhile
changes nothing of the new one, though its version is the one that is waited for."""

import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.common.control import ControlConflict, ControlRecord, is_another
from tests.support.sample_commits import EPOCH

FIRST = ControlRecord("schedule", "default", "nightly", 1, b"first")


def next_of(record: ControlRecord, value: bytes = b"next") -> ControlRecord:
    return record._replace(version=record.version + 1, value=value)


async def made_anew(backend: Backend) -> tuple[ControlRecord, ControlRecord]:
    """What somebody knows who stood still, and what is there now, at the same version."""
    control = backend.control
    known = await control.put(next_of(await control.put(FIRST)))
    await control.delete(known)
    return known, await control.put(next_of(await control.put(FIRST)))


async def test_an_incarnation_is_drawn_with_the_first_version_and_stays(backend: Backend) -> None:
    control = backend.control
    first = await control.put(FIRST._replace(incarnation="made up"))
    assert first.incarnation not in ("", "made up") and first == FIRST._replace(incarnation=first.incarnation)
    assert await control.get(*FIRST[:3]) == first
    second = await control.put(next_of(first))
    assert second == next_of(first) == await control.get(*FIRST[:3])
    assert await control.list("schedule", "default", limit=9) == [second]
    other = await control.put(FIRST._replace(id="other"))
    assert other.incarnation != first.incarnation


async def test_a_late_write_does_not_change_one_made_anew(backend: Backend) -> None:
    known, there = await made_anew(backend)
    assert there.version == known.version and is_another(there, known)
    for late in (next_of(known, b"late"), next_of(known._replace(incarnation=""), b"late")):
        with pytest.raises(ControlConflict) as refused:
            await backend.control.put(late, arm=EPOCH)
        assert refused.value.existing == there
    assert await backend.control.get(*FIRST[:3]) == there
    assert await backend.control.put(next_of(there)) == next_of(there)


async def test_a_late_delete_leaves_one_made_anew(backend: Backend) -> None:
    """What it was for is gone, so it is no conflict: who reads again and tries again would delete the new one."""
    known, there = await made_anew(backend)
    await backend.control.delete(known)
    await backend.control.delete(known._replace(incarnation=""))
    assert await backend.control.get(*FIRST[:3]) == there
    await backend.control.delete(there)
    assert await backend.control.get(*FIRST[:3]) is None


async def test_a_first_version_does_not_follow_what_is_there(backend: Backend) -> None:
    there = await backend.control.put(FIRST)
    with pytest.raises(ControlConflict) as refused:
        await backend.control.put(there)
    assert refused.value.existing == there
