"""Which actions are started, and what makes room for them (LC-27, LC-28, LC-35, LC-42)."""

from datetime import timedelta

import pytest
from stepwell.api import limits
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.schedules import (
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler.requests import Attempted, Look, RunEnd
from stepwell_server.scheduler.state import encode
from stepwell_server.scheduler.step import step
from tests.support.schedule_machine import HOUR, SECOND, T0, Machine, hours, schedule


def test_skip() -> None:
    machine = Machine.of(schedule()).at(T0 + HOUR).at(T0 + 2 * HOUR)
    assert (machine.nominal, machine.record.overlap_skipped) == (hours(1), 1)
    machine.end(machine.started[0])
    assert machine.at(T0 + 3 * HOUR).nominal == hours(1, 3)


def test_buffer_one() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.BUFFER_ONE))
    for number in (1, 2, 3):
        machine.at(T0 + number * HOUR)
    assert (machine.nominal, len(machine.record.buffer), machine.record.overlap_skipped) == (hours(1), 1, 1)
    machine.end(machine.started[0])
    assert (machine.nominal, machine.record.buffer) == (hours(1, 2), ())


def test_buffer_all_runs_them_one_after_the_other() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.BUFFER_ALL))
    for number in (1, 2, 3):
        machine.at(T0 + number * HOUR)
    machine.end(machine.started[0])
    machine.end(machine.started[0])  # the news come twice
    assert machine.nominal == hours(1, 2)
    machine.end(machine.started[1])
    assert machine.nominal == hours(1, 2, 3)


def test_a_full_buffer_drops_and_counts() -> None:
    machine = Machine.of(
        schedule(ScheduleSpec(intervals=(ScheduleIntervalSpec(every=SECOND),)), overlap_policy=Overlap.BUFFER_ALL)
    )
    for _ in range(3):
        machine.at(T0 + timedelta(seconds=1_500))
    record = machine.record
    assert (len(record.buffer), record.buffer_dropped) == (limits.MAX_SCHEDULE_BUFFER, 499)
    assert len(encode(record)) < 100_000


def test_cancel_other_waits_for_the_end_and_only_the_newest_is_done() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.CANCEL_OTHER)).at(T0 + HOUR).at(T0 + 2 * HOUR)
    (stop,) = machine.last.stops
    assert (stop.run_id, stop.stop) == (machine.started[0].run_id, "cancel")
    machine.tell(Attempted(stopped=(stop.run_id,)))
    assert machine.last.stops == ()
    machine.at(T0 + 3 * HOUR)
    assert (machine.nominal, machine.last.stops, machine.record.overlap_skipped) == (hours(1), (), 1)
    machine.end(machine.started[0], Status.CANCELED)
    assert machine.nominal == hours(1, 3)


def test_terminate_other_also_what_was_asked_to_cancel() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.CANCEL_OTHER)).at(T0 + HOUR).at(T0 + 2 * HOUR)
    machine.tell(Attempted(stopped=(machine.started[0].run_id,)))
    machine.patch(trigger_immediately=r.TriggerImmediatelyRequest(overlap_policy=Overlap.TERMINATE_OTHER))
    (stop,) = machine.last.stops
    assert stop.stop == "terminate"
    ended = RunEnd(run_id=stop.run_id, status=Status.TERMINATED)
    machine.tell(Attempted(stopped=(stop.run_id,), ends=(ended,)))
    assert machine.nominal == [T0 + HOUR, T0 + 2 * HOUR]
    assert machine.started[1].waiting.origin == "o"


def test_allow_all_needs_to_know_no_run() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL))
    for number in range(1, 15):
        machine.at(T0 + number * HOUR)
    assert machine.nominal == hours(*range(1, 15))
    assert machine.record.runs == () and len(machine.record.recent_actions) == limits.SCHEDULE_RECENT_ACTIONS


@pytest.mark.parametrize(("policy", "waiting", "skipped"), [(Overlap.SKIP, 0, 1), (Overlap.BUFFER_ALL, 1, 0)])
def test_so_many_at_once_before_the_policy_decides(policy: Overlap, waiting: int, skipped: int) -> None:
    machine = Machine.of(schedule(overlap_policy=policy, concurrency_limit=2))
    for number in (1, 2, 3):
        machine.at(T0 + number * HOUR)
    assert machine.nominal == hours(1, 2)
    assert (len(machine.record.buffer), machine.record.overlap_skipped) == (waiting, skipped)
    machine.end(machine.started[1])
    assert machine.nominal == (hours(1, 2, 3) if waiting else hours(1, 2))


def test_allow_all_with_a_limit_leaves_out_what_is_over_it() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL, concurrency_limit=2))
    for number in (1, 2, 3):
        machine.at(T0 + number * HOUR)
    assert (machine.nominal, machine.record.overlap_skipped) == (hours(1, 2), 1)


def test_a_catch_up_never_does_more_than_is_left() -> None:
    limited = ScheduleState(limited_actions=True, remaining_actions=2)
    machine = Machine.of(schedule(state=limited, overlap_policy=Overlap.ALLOW_ALL)).at(T0 + 5 * HOUR)
    assert machine.nominal == hours(1, 2)
    assert machine.record.buffer == ()


def test_starts_above_the_rate_wait_for_a_second_in_their_order() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL))
    machine.allowance = 2
    asked = step(machine.record, Look(), T0 + 5 * HOUR, 2)
    assert [run.waiting.nominal for run in asked.starts] == hours(1, 2)
    assert asked.wake_at == T0 + 5 * HOUR + SECOND
    assert [waiting.nominal for waiting in asked.record.buffer] == hours(3, 4, 5)


def test_actions_that_wait_are_not_done_while_it_is_paused_but_orders_are() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.BUFFER_ALL)).at(T0 + HOUR).at(T0 + 2 * HOUR)
    machine.patch(pause="", trigger_immediately=r.TriggerImmediatelyRequest())
    machine.end(machine.started[0])
    assert machine.nominal == [T0 + HOUR, T0 + 2 * HOUR]
    assert machine.started[1].waiting.origin == "o" and machine.record.missed_paused == 1
