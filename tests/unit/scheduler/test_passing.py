"""Times that come, or came while nobody looked: outages, pauses, jitter, backfills (LC-29, LC-30, LC-34, WC-16)."""

from datetime import datetime, timedelta

import msgspec
import pytest
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleCatchUpPolicy as CatchUp
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.schedules import (
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler.requests import Update
from tests.support.schedule_machine import HOUR, HOURLY, MINUTE, SECOND, T0, Machine, backfill, hours, schedule


def test_after_an_outage_what_is_within_the_window_runs_and_the_rest_is_missed() -> None:
    """WC-17: window of 10 minutes, every 5, down for 22."""
    every_five = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=5 * MINUTE),))
    machine = Machine.of(schedule(every_five, overlap_policy=Overlap.ALLOW_ALL, catchup_window=10 * MINUTE))
    machine.at(T0 + 22 * MINUTE)
    assert machine.nominal == [T0 + 15 * MINUTE, T0 + 20 * MINUTE]
    assert machine.record.missed_catchup_window == 2


def test_a_long_outage_is_gone_through_in_pieces() -> None:
    seconds = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=SECOND),))
    machine = Machine.of(schedule(seconds, catchup_window=timedelta(seconds=10)))
    machine.at(T0 + timedelta(seconds=2_500))
    assert machine.last.wake_at == machine.now and not machine.started
    machine.at(machine.now).at(machine.now)
    assert machine.record.missed_catchup_window == 2_489
    assert machine.nominal == [T0 + timedelta(seconds=2_490)]


@pytest.mark.parametrize(
    ("policy", "ran", "missed"),
    [(CatchUp.SKIP, [], 3), (CatchUp.ONE, [3], 2), (CatchUp.ALL, [1, 2, 3], 0)],
)
def test_what_becomes_of_the_times_of_a_pause(policy: CatchUp, ran: list[int], missed: int) -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL, catch_up_on_unpause=policy))
    machine.patch(pause="stop")
    assert machine.last.wake_at is None
    machine.at(T0 + 3 * HOUR + MINUTE)
    machine.patch(unpause="go on")
    assert (machine.nominal, machine.record.missed_paused) == (hours(*ran), missed)
    assert machine.record.schedule.state == ScheduleState(note="go on")
    assert machine.at(T0 + 4 * HOUR).nominal == hours(*ran, 4)


def jittered() -> tuple[Machine, datetime, datetime]:
    """With the next time, and when it is acted on."""
    spec = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=5 * MINUTE),), jitter=MINUTE)
    machine = Machine.of(schedule(spec))
    at = machine.last.wake_at
    assert at is not None
    assert T0 + 5 * MINUTE + 2 * SECOND < at < T0 + 6 * MINUTE, "choose another id, the jitter is too small"
    return machine, T0 + 5 * MINUTE, at


@pytest.mark.parametrize("change", ["same", "note", "pause", "spec"])
def test_changes_between_a_time_and_its_jitter_leave_the_run_where_it_was(change: str) -> None:
    """WC-17."""
    machine, nominal, at = jittered()
    machine.now = nominal + SECOND
    if change == "same":
        machine.tell(Update(schedule=machine.record.schedule))
    elif change == "note":
        machine.tell(Update(schedule=msgspec.structs.replace(machine.record.schedule, state=ScheduleState(note="x"))))
    elif change == "spec":
        spec = msgspec.structs.replace(machine.record.schedule.spec, end_at=T0 + 5 * HOUR)
        machine.tell(Update(schedule=msgspec.structs.replace(machine.record.schedule, spec=spec)))
    else:
        machine.patch(pause="")
        machine.patch(unpause="")
    assert machine.last.wake_at == at and not machine.started
    machine.at(at).at(at)
    assert machine.nominal == [nominal]


def test_a_pause_over_the_time_of_a_run_is_not_made_up_for() -> None:
    """WC-17 (d)."""
    machine, nominal, at = jittered()
    machine.now = nominal + SECOND
    machine.patch(pause="")
    machine.now = at + SECOND
    machine.patch(unpause="")
    assert (machine.nominal, machine.record.missed_paused) == ([], 1)


def test_a_new_spec_does_not_reach_back() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL))
    machine.now = T0 + HOUR + 30 * MINUTE
    minutes = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=MINUTE),))
    machine.tell(Update(schedule=schedule(minutes, overlap_policy=Overlap.ALLOW_ALL)))
    assert machine.nominal == hours(1), "what was due by the old one before is done"
    assert machine.last.wake_at == machine.now + MINUTE


def test_actions_that_are_given_later_do_not_reach_back() -> None:
    machine = Machine.of(schedule(state=ScheduleState(limited_actions=True)))
    machine.now = T0 + 3 * HOUR + MINUTE
    machine.tell(Update(schedule=schedule(state=ScheduleState(limited_actions=True, remaining_actions=1))))
    assert machine.nominal == [] and machine.last.wake_at == T0 + 4 * HOUR


@pytest.mark.parametrize(
    ("policy", "at_once", "waiting", "skipped"),
    [(Overlap.ALLOW_ALL, 6, 0, 0), (Overlap.BUFFER_ALL, 1, 5, 0), (None, 1, 0, 5)],
)
@pytest.mark.parametrize("state", [ScheduleState(), ScheduleState(paused=True), ScheduleState(limited_actions=True)])
def test_a_backfill_goes_by_its_own_policy(
    policy: Overlap | None, at_once: int, waiting: int, skipped: int, state: ScheduleState
) -> None:
    """WC-16: also while it is paused, or has no actions left; the same request twice is once."""
    machine = Machine.of(schedule(state=state))
    for _ in range(2):
        machine.patch("b", backfill=(backfill(T0 - 6 * HOUR, T0, policy),))
    assert (len(machine.started), len(machine.record.buffer)) == (at_once, waiting)
    assert machine.record.overlap_skipped == skipped
    for index in range(waiting):
        machine.end(machine.started[index])
    if waiting or at_once > 1:
        assert machine.nominal == hours(*range(-5, 1)), "the start is not in, the end is"


@pytest.mark.parametrize("jitter", [timedelta(0), 5 * MINUTE])
def test_jitter_adds_and_removes_no_time_of_a_backfill(jitter: timedelta) -> None:
    spec = msgspec.structs.replace(HOURLY, jitter=jitter)
    machine = Machine.of(schedule(spec), r.SchedulePatch(backfill=(backfill(T0 - HOUR, T0, Overlap.ALLOW_ALL),)))
    assert machine.nominal == hours(0)


def test_a_large_backfill_goes_through_the_buffer_in_pieces_and_drops_nothing() -> None:
    machine = Machine.of(schedule(ScheduleSpec(intervals=(ScheduleIntervalSpec(every=MINUTE),))))
    machine.allowance = 30
    machine.patch(pause="", backfill=(backfill(T0 - 1_200 * MINUTE, T0, Overlap.ALLOW_ALL),))
    rounds = 0
    while machine.record.backfills or machine.record.buffer:
        assert machine.last.wake_at is not None and machine.last.wake_at <= machine.now + SECOND
        machine.at(machine.now + SECOND)
        rounds += 1
        assert rounds < 100
    assert len(set(machine.nominal)) == len(machine.started) == 1_200
    assert machine.record.buffer_dropped == 0
