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


async def test_nothing_is_armed_at_first(embedded: Backend) -> None:
    assert await embedded.timers.next_fire() is None
    assert await embedded.timers.due(EPOCH, 10) == []


async def test_what_is_due_comes_oldest_first_until_it_is_said_to_have_fired(embedded: Backend) -> None:
    await embedded.timers.arm(A, EPOCH + 2 * SECOND)
    await embedded.timers.arm(B, EPOCH + SECOND)
    await embedded.timers.arm(A, EPOCH + 9 * SECOND)
    assert await embedded.timers.next_fire() == EPOCH + SECOND
    due = await embedded.timers.due(EPOCH + 2 * SECOND, 10)
    assert due == [(EPOCH + SECOND, B), (EPOCH + 2 * SECOND, A)]
    assert await embedded.timers.due(EPOCH + 2 * SECOND, 10) == due
    assert await embedded.timers.due(EPOCH + 2 * SECOND, 1) == due[:1]
    await embedded.timers.fired(due)
    assert await embedded.timers.due(EPOCH + 2 * SECOND, 10) == []
    assert await embedded.timers.next_fire() == EPOCH + 9 * SECOND


async def test_times_keep_their_microseconds(embedded: Backend) -> None:
    time = EPOCH + timedelta(days=3_650, microseconds=1)
    await embedded.timers.arm(A, time)
    assert await embedded.timers.due(time - timedelta(microseconds=1), 5) == []
    assert await embedded.timers.due(time, 5) == [(time, A)]


async def test_arming_twice_is_arming_once(embedded: Backend) -> None:
    await embedded.timers.arm(A, EPOCH)
    await embedded.timers.arm(A, EPOCH)
    await embedded.timers.fired(await embedded.timers.due(EPOCH, 10))
    assert await embedded.timers.next_fire() is None


async def test_firing_what_is_not_armed_is_harmless(embedded: Backend) -> None:
    await embedded.timers.fired([(EPOCH, A)])
    await embedded.timers.fired([])
    assert await embedded.timers.next_fire() is None


async def test_many_rows_fire_together(embedded: Backend) -> None:
    keys = [ExecutionKey("default", f"w-{number:03}") for number in range(150)]
    for number, key in enumerate(keys):
        await embedded.timers.arm(key, EPOCH + number * SECOND)
    due = await embedded.timers.due(EPOCH + 139 * SECOND, 1_000)
    assert [key for _, key in due] == keys[:140]
    await embedded.timers.fired(due)
    assert [key for _, key in await embedded.timers.due(EPOCH + 999 * SECOND, 1_000)] == keys[140:]


async def test_a_write_arms_with_itself(embedded: Backend) -> None:
    run = SampleRun(1)
    start = next(run.commits())
    await embedded.log.append(start, arm=EPOCH + SECOND)
    await embedded.log.put_activity(sample_item(run), arm=EPOCH + 2 * SECOND)
    assert await embedded.timers.due(EPOCH + 5 * SECOND, 5) == [
        (EPOCH + SECOND, start.key),
        (EPOCH + 2 * SECOND, start.key),
    ]


async def test_a_write_without_arm_changes_no_deadline(embedded: Backend) -> None:
    start, second, *_ = SampleRun(2).commits()
    await embedded.log.append(start, arm=EPOCH)
    await embedded.log.append(second)
    with pytest.raises(Conflict):
        await embedded.log.append(second)
    assert await embedded.timers.due(EPOCH + SECOND, 5) == [(EPOCH, start.key)]


async def test_a_close_strikes_off_what_was_armed_unless_the_run_owes(embedded: Backend) -> None:
    for number, owes in ((3, False), (4, True)):
        run = SampleRun(number)
        *before, close = run.commits()
        armed = close.state.armed
        assert armed is not None
        for commit in before:
            await embedded.log.append(commit)
        await embedded.timers.arm(close.key, armed)
        await embedded.log.append(owing(close, run.run_id) if owes else close)
        due = [key for _, key in await embedded.timers.due(armed, 9)]
        assert (close.key in due) is owes
    state = msgspec.structs.replace(close.state, seq=close.seq + 1)
    await embedded.log.append(msgspec.structs.replace(close, seq=close.seq + 1, state=state, events=()))
    assert await embedded.timers.due(armed, 9) == []  # discharged
