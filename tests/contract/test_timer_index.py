"""The contract of TimerIndex, and of arming together with a write."""

from datetime import timedelta

import msgspec
import pytest

from stepwell_server.adapters.backend import Backend
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.ports import Conflict
from tests.support.sample_commits import EPOCH, SampleRun, owing, sample_item

A, B = ExecutionKey("default", "a"), ExecutionKey("default", "b")
SECOND = timedelta(seconds=1)


async def test_nothing_is_armed_at_first(backend: Backend) -> None:
    assert await backend.timers.next_fire() is None
    assert await backend.timers.due(EPOCH, 10) == []


async def test_what_is_due_comes_oldest_first_until_it_is_said_to_have_fired(backend: Backend) -> None:
    await backend.timers.arm(A, EPOCH + 2 * SECOND)
    await backend.timers.arm(B, EPOCH + SECOND)
    await backend.timers.arm(A, EPOCH + 9 * SECOND)
    assert await backend.timers.next_fire() == EPOCH + SECOND
    due = await backend.timers.due(EPOCH + 2 * SECOND, 10)
    assert due == [(EPOCH + SECOND, B), (EPOCH + 2 * SECOND, A)]
    assert await backend.timers.due(EPOCH + 2 * SECOND, 10) == due
    assert await backend.timers.due(EPOCH + 2 * SECOND, 1) == due[:1]
    await backend.timers.fired(due)
    assert await backend.timers.due(EPOCH + 2 * SECOND, 10) == []
    assert await backend.timers.next_fire() == EPOCH + 9 * SECOND


async def test_times_keep_their_microseconds(backend: Backend) -> None:
    time = EPOCH + timedelta(days=3_650, microseconds=1)
    await backend.timers.arm(A, time)
    assert await backend.timers.due(time - timedelta(microseconds=1), 5) == []
    assert await backend.timers.due(time, 5) == [(time, A)]


async def test_arming_twice_is_arming_once(backend: Backend) -> None:
    await backend.timers.arm(A, EPOCH)
    await backend.timers.arm(A, EPOCH)
    await backend.timers.fired(await backend.timers.due(EPOCH, 10))
    assert await backend.timers.next_fire() is None


async def test_firing_what_is_not_armed_is_harmless(backend: Backend) -> None:
    await backend.timers.fired([(EPOCH, A)])
    await backend.timers.fired([])
    assert await backend.timers.next_fire() is None


async def test_many_rows_fire_together(backend: Backend) -> None:
    keys = [ExecutionKey("default", f"w-{number:03}") for number in range(150)]
    for number, key in enumerate(keys):
        await backend.timers.arm(key, EPOCH + number * SECOND)
    due = await backend.timers.due(EPOCH + 139 * SECOND, 1_000)
    assert [key for _, key in due] == keys[:140]
    await backend.timers.fired(due)
    assert [key for _, key in await backend.timers.due(EPOCH + 999 * SECOND, 1_000)] == keys[140:]


async def test_a_write_arms_with_itself(backend: Backend) -> None:
    run = SampleRun(1)
    start = next(run.commits())
    await backend.log.append(start, arm=EPOCH + SECOND)
    await backend.log.put_activity(sample_item(run), arm=EPOCH + 2 * SECOND)
    assert await backend.timers.due(EPOCH + 5 * SECOND, 5) == [
        (EPOCH + SECOND, start.key),
        (EPOCH + 2 * SECOND, start.key),
    ]


async def test_a_write_without_arm_changes_no_deadline(backend: Backend) -> None:
    start, second, *_ = SampleRun(2).commits()
    await backend.log.append(start, arm=EPOCH)
    await backend.log.append(second)
    with pytest.raises(Conflict):
        await backend.log.append(second)
    assert await backend.timers.due(EPOCH + SECOND, 5) == [(EPOCH, start.key)]


async def test_a_close_strikes_off_what_was_armed_unless_the_run_owes(backend: Backend) -> None:
    for number, owes in ((3, False), (4, True)):
        run = SampleRun(number)
        *before, close = run.commits()
        armed = close.state.armed
        assert armed is not None
        for commit in before:
            await backend.log.append(commit)
        await backend.timers.arm(close.key, armed)
        await backend.log.append(owing(close, run.run_id) if owes else close)
        due = [key for _, key in await backend.timers.due(armed, 9)]
        assert (close.key in due) is owes
    state = msgspec.structs.replace(close.state, seq=close.seq + 1)
    await backend.log.append(msgspec.structs.replace(close, seq=close.seq + 1, state=state, events=()))
    assert await backend.timers.due(armed, 9) == []  # discharged
