"""Times that come, or came while nobody looked: outages, pauses, jitter, backfills (LC-29, LC-30, LC-34, WC-16)."""

from datetime import datetime, timedelta

import msgspec
import pytest
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleCatchUpPolicy as CatchUp
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.errors import InvalidArgument
from stepwell.api.schedules import (
    ScheduleCalendarSpec,
    ScheduleIntervalSpec,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler import passing, step
from stepwell_server.scheduler.requests import Update
from stepwell_server.scheduler.spec import matching_times, next_time
from stepwell_server.scheduler.state import encode
from tests.support.schedule_machine import HOUR, HOURLY, MINUTE, SECOND, T0, Machine, backfill, hours, schedule


def test_after_an_outage_what_is_within_the_window_runs_and_the_rest_is_missed() -> None:
    """WC-17: window of 10 minutes, every 5, down for 22."""
    every_five = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=5 * MINUTE),))
    machine = Machine.of(schedule(every_five, overlap_policy=Overlap.ALLOW_ALL, catchup_window=10 * MINUTE))
    machine.at(T0 + 22 * MINUTE)
    assert machine.nominal == [T0 + 15 * MINUTE, T0 + 20 * MINUTE]
    assert machine.record.missed_catchup_window == 2


SECONDLY = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=SECOND),))
YEAR = timedelta(days=365)


def settled(machine: Machine, most: int) -> None:
    """Wake-ups that come at once; each is a step of bounded work."""
    steps = 0
    while machine.last.wake_at == machine.now:
        machine.at(machine.now)
        steps += 1
        assert steps <= most


@pytest.mark.parametrize("years", [1 / 10_000, 1, 10])
def test_an_outage_of_any_length_is_counted_by_the_day(years: float) -> None:
    down = int(years * YEAR / SECOND) * SECOND
    machine = Machine.of(schedule(SECONDLY, catchup_window=timedelta(seconds=10)))
    machine.at(T0 + down)
    settled(machine, 12)
    assert machine.record.missed_catchup_window == down / SECOND - 11
    assert machine.nominal == [T0 + down - 10 * SECOND]
    assert machine.record.overlap_skipped == 10


@pytest.mark.parametrize(
    ("policy", "ran", "skipped", "dropped"),
    [
        (Overlap.SKIP, 1, 10 * YEAR / SECOND - 1, 0),
        (Overlap.BUFFER_ONE, 1, 10 * YEAR / SECOND - 2, 0),
        (Overlap.BUFFER_ALL, 1, 0, 10 * YEAR / SECOND - 1_001),
    ],
)
def test_a_crowd_that_came_in_years_goes_by_the_overlap_policy(
    policy: Overlap, ran: int, skipped: int, dropped: int
) -> None:
    machine = Machine.of(schedule(SECONDLY, overlap_policy=policy, catchup_window=20 * YEAR))
    machine.at(T0 + 10 * YEAR)
    settled(machine, 12)
    record = machine.record
    assert (len(machine.started), record.overlap_skipped, record.buffer_dropped) == (ran, skipped, dropped)
    assert machine.nominal == [T0 + SECOND]


def test_the_newest_of_a_crowd_is_what_replaces() -> None:
    machine = Machine.of(schedule(SECONDLY, overlap_policy=Overlap.CANCEL_OTHER, catchup_window=20 * YEAR))
    machine.at(T0 + 5 * YEAR)
    settled(machine, 12)
    assert [*machine.nominal, *[each.nominal for each in machine.record.buffer]][-1] == T0 + 5 * YEAR
    assert len(machine.started) + len(machine.record.buffer) + machine.record.overlap_skipped == 5 * YEAR / SECOND


def test_of_a_crowd_as_many_run_as_may_run_at_the_same_time() -> None:
    machine = Machine.of(
        schedule(SECONDLY, overlap_policy=Overlap.ALLOW_ALL, concurrency_limit=100, catchup_window=20 * YEAR)
    )
    machine.at(T0 + YEAR)
    settled(machine, 2)
    assert len(machine.started) == 100
    assert machine.record.overlap_skipped == YEAR / SECOND - 100


@pytest.mark.parametrize("jitter", [timedelta(0), timedelta(milliseconds=900)])
@pytest.mark.parametrize(
    ("policy", "window", "ran", "paused", "late"),
    [
        (CatchUp.SKIP, HOUR, 0, 5 * YEAR / SECOND, 0),
        (CatchUp.ONE, HOUR, 1, HOUR / SECOND, (5 * YEAR - HOUR) / SECOND - 1),
        (CatchUp.ONE, 20 * YEAR, 1, 5 * YEAR / SECOND - 1, 0),
        (CatchUp.ALL, 10 * SECOND, 11, 0, 5 * YEAR / SECOND - 11),
    ],
)
def test_a_pause_of_years_is_counted_by_the_day(
    policy: CatchUp, window: timedelta, ran: int, paused: int, late: int, jitter: timedelta
) -> None:
    spec = msgspec.structs.replace(SECONDLY, jitter=jitter)
    machine = Machine.of(
        schedule(spec, overlap_policy=Overlap.ALLOW_ALL, catch_up_on_unpause=policy, catchup_window=window)
    )
    machine.patch(pause="stop")
    machine.now = T0 + 5 * YEAR + (jitter and 950 * jitter / 900)
    machine.patch(unpause="go on")
    settled(machine, 12)
    record = machine.record
    fates = (len(machine.started), record.missed_paused, record.missed_catchup_window)
    if not jitter:
        assert fates == (ran, paused, late)
        assert machine.nominal == [T0 + 5 * YEAR - number * SECOND for number in reversed(range(ran))]
    else:
        assert sum(fates) == 5 * YEAR / SECOND, "each of them has one fate"
        assert abs(len(machine.started) - ran) <= 1


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


@pytest.mark.parametrize(
    ("policy", "ran", "skipped"),
    [
        (None, T0 - 10 * YEAR + SECOND, 10 * YEAR / SECOND - 1),
        (Overlap.BUFFER_ONE, T0 - 10 * YEAR + SECOND, 10 * YEAR / SECOND - 2),
        (Overlap.TERMINATE_OTHER, T0, 10 * YEAR / SECOND - 1),
    ],
)
def test_a_backfill_of_years_leaves_out_what_its_policy_leaves_out_by_the_day(
    policy: Overlap | None, ran: datetime, skipped: int
) -> None:
    machine = Machine.of(schedule(SECONDLY, overlap_policy=Overlap.SKIP))
    machine.patch(pause="", backfill=(backfill(T0 - 10 * YEAR, T0, policy),))
    settled(machine, 12)
    record = machine.record
    assert not record.backfills
    assert record.overlap_skipped + len(machine.started) + len(record.buffer) == 10 * YEAR / SECOND
    if policy is not Overlap.TERMINATE_OTHER:
        assert (machine.nominal, record.overlap_skipped) == ([ran], skipped)
    else:
        assert [*machine.nominal, *[each.nominal for each in record.buffer]][-1] == ran


@pytest.mark.parametrize("policy", [Overlap.ALLOW_ALL, Overlap.BUFFER_ALL])
def test_a_backfill_of_more_runs_than_can_be_is_refused_with_their_number(policy: Overlap) -> None:
    machine = Machine.of(schedule(SECONDLY))
    before = encode(machine.record)
    with pytest.raises(
        InvalidArgument, match=r"would start 31,536,000 runs, since .*at most 1,000,000.*SKIP or BUFFER_ONE"
    ):
        machine.patch(backfill=(backfill(T0 - YEAR, T0, policy),))
    assert encode(machine.record) == before
    machine.allowance = 0
    machine.patch(pause="", backfill=(backfill(T0 - 1_000_000 * SECOND, T0, policy),))
    assert machine.record.buffer


def rarely() -> ScheduleSpec:
    """Sixty intervals, all of which are excluded but for one second of a day."""
    sixty, hours_of_day = (ScheduleRange(0, 59),), (ScheduleRange(0, 23),)
    others = (ScheduleRange(1, 59),)
    return ScheduleSpec(
        intervals=tuple(ScheduleIntervalSpec(every=timedelta(hours=3, seconds=number)) for number in range(1, 61)),
        skip=(
            ScheduleCalendarSpec(second=others, minute=sixty, hour=hours_of_day),
            ScheduleCalendarSpec(second=sixty, minute=others, hour=hours_of_day),
            ScheduleCalendarSpec(second=sixty, minute=sixty, hour=(ScheduleRange(1, 23),)),
        ),
    )


@pytest.mark.parametrize("jitter", [timedelta(0), HOUR])
def test_what_is_hard_to_find_is_found_in_steps(monkeypatch: pytest.MonkeyPatch, jitter: timedelta) -> None:
    """As far as a step may look is kept in the record, by schedules and by backfills."""
    spec = msgspec.structs.replace(rarely(), jitter=jitter)
    found = list(matching_times(spec, T0, T0 + YEAR / 2))
    assert len(found) > 5
    first = next_time(spec, T0, "s")
    assert first is not None
    for module in (passing, step):
        monkeypatch.setattr(module, "LOOKS_AT_ONCE", 250)
    machine, steps = Machine.of(schedule(spec)), 0
    while machine.last.wake_at == T0:
        before = machine.record.search
        machine.at(T0)
        assert machine.record.search != before, "it gets on"
        steps += 1
    assert 0 < steps < 40 and machine.last.wake_at == first.at
    machine.patch(pause="", backfill=(backfill(T0, T0 + YEAR / 2, Overlap.ALLOW_ALL),))
    settled(machine, 400)
    assert machine.nominal == found
