"""What a schedule does with orders, outcomes and the ends of its runs (LC-31 to LC-33, LC-37, LC-41)."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from stepwell.api import limits
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.errors import ConflictTokenMismatch, ResourceExhausted
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload
from stepwell.api.schedules import (
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler.requests import Attempted, Creation, Look, Outcome, Update
from stepwell_server.scheduler.state import Run, conflict_token
from stepwell_server.scheduler.step import RETRY, create, step
from tests.support.schedule_machine import HOUR, MINUTE, T0, Machine, backfill, hours, schedule


def test_a_time_is_acted_on_once_and_the_next_one_is_armed() -> None:
    machine = Machine.of(schedule())
    assert machine.last.wake_at == T0 + HOUR
    machine.at(T0 + HOUR)
    machine.at(T0 + HOUR)
    assert machine.nominal == hours(1)
    assert machine.started[0].workflow_id == "report-2026-11-30T13:00:00Z"
    assert machine.last.wake_at == T0 + 2 * HOUR
    assert machine.record.action_count == 1


def test_a_start_is_asked_for_until_its_outcome_is_told_under_the_same_ids() -> None:
    machine = Machine.of(schedule())
    asked = step(machine.record, Look(), T0 + HOUR, 30)
    again = step(asked.record, Look(), T0 + HOUR + MINUTE, 30)
    assert asked.starts == again.starts and len(asked.starts) == 1
    assert step(machine.record, Look(), T0 + HOUR + MINUTE, 30).starts == asked.starts
    assert again.wake_at == T0 + HOUR + MINUTE + timedelta(seconds=10)


@pytest.mark.parametrize("policy", [Overlap.TERMINATE_OTHER, Overlap.CANCEL_OTHER])
def test_what_may_not_be_there_yet_is_not_stopped_before_it_is(policy: Overlap) -> None:
    """Else its end would be heard of, as of one that is gone, while its start may still come."""
    creation = Creation(namespace="default", schedule_id="s", incarnation="i", schedule=schedule(overlap_policy=policy))
    first = step(create(creation, T0, 9).record, Look(), T0 + HOUR, 9)
    second = step(first.record, Look(), T0 + 2 * HOUR, 9)
    (run,) = second.starts
    assert run.stop is not None and second.stops == () and second.wake_at == T0 + 2 * HOUR + RETRY
    told = step(second.record, Attempted(starts=((run.run_id, Outcome.STARTED),)), T0 + 2 * HOUR, 9)
    assert ids(told.stops) == [run.run_id] and told.record.action_count == 1


def test_an_id_that_another_workflow_has_is_skipped_and_gives_its_action_back() -> None:
    machine = Machine.of(schedule(state=ScheduleState(limited_actions=True, remaining_actions=2)))
    asked = step(machine.record, Look(), T0 + HOUR, 30)
    assert asked.record.schedule.state.remaining_actions == 1
    told = step(asked.record, Attempted(starts=((asked.starts[0].run_id, Outcome.TAKEN),)), T0 + HOUR, 30).record
    assert (told.overlap_skipped, told.action_count, told.runs) == (1, 0, ())
    assert told.schedule.state.remaining_actions == 2


def test_what_is_refused_for_good_is_dropped() -> None:
    asked = step(Machine.of(schedule()).record, Look(), T0 + HOUR, 30)
    refused = Attempted(starts=((asked.starts[0].run_id, Outcome.REFUSED),), refusal="input has 9 bytes")
    told = step(asked.record, refused, T0 + HOUR, 30)
    assert (told.record.start_refused, told.record.runs, told.starts) == (1, (), ())
    assert told.record.last_refusal == "input has 9 bytes"


def test_a_failure_behind_all_retries_pauses_it_and_says_why() -> None:
    machine = Machine.of(schedule(pause_on_failure=True)).at(T0 + HOUR)
    machine.now += MINUTE
    machine.end(machine.started[0], Status.FAILED, failure=Failure(message="no paper"))
    state = machine.record.schedule.state
    assert state.paused
    assert state.note == "paused due to workflow failure: report-2026-11-30T13:00:00Z: no paper"
    machine.patch(unpause="paper is there")
    machine.end(machine.started[0], Status.FAILED, failure=Failure(message="no paper"))
    assert not machine.record.schedule.state.paused, "the same news again"


@pytest.mark.parametrize("status", [Status.CANCELED, Status.TERMINATED, Status.COMPLETED])
def test_other_ends_do_not_pause(status: Status) -> None:
    machine = Machine.of(schedule(pause_on_failure=True)).at(T0 + HOUR)
    machine.end(machine.started[0], status)
    assert not machine.record.schedule.state.paused


def test_failures_pause_with_allow_all_too() -> None:
    machine = Machine.of(schedule(pause_on_failure=True, overlap_policy=Overlap.ALLOW_ALL)).at(T0 + HOUR)
    machine.end(machine.started[0], Status.TIMED_OUT)
    assert machine.record.schedule.state.paused


def test_results_and_failures_pass_on_as_with_cron() -> None:
    result = (Payload(data=b"1"),)
    machine = Machine.of(schedule()).at(T0 + HOUR)
    machine.end(machine.started[0], result=result)
    assert machine.record.last_result == result
    machine.at(T0 + 2 * HOUR).end(machine.started[1], Status.FAILED, failure=Failure(message="x"))
    assert (machine.record.last_result, machine.record.last_failure) == (result, Failure(message="x"))
    machine.at(T0 + 3 * HOUR).end(machine.started[2], Status.TERMINATED)
    assert machine.record.last_failure == Failure(message="x")
    machine.at(T0 + 4 * HOUR).end(machine.started[3], result=(Payload(data=b"2" * 100_000),))
    record = machine.record
    assert (record.last_result, record.last_failure) == ((), None)
    assert record.last_result_of is not None and record.last_result_of.run_id == machine.started[3].run_id


def test_limited_actions_count_starts_by_time_only_and_it_is_deleted_a_week_later() -> None:
    machine = Machine.of(schedule(state=ScheduleState(limited_actions=True, remaining_actions=2)))
    machine.at(T0 + HOUR).at(T0 + 2 * HOUR)
    assert machine.record.schedule.state.remaining_actions == 1, "what is skipped does not count"
    machine.end(machine.started[0])
    machine.at(T0 + 3 * HOUR)
    machine.end(machine.started[1])
    machine.at(T0 + 4 * HOUR)
    assert machine.nominal == hours(1, 3)
    assert not machine.last.exhausted and machine.last.wake_at == T0 + 3 * HOUR + timedelta(days=7)
    machine.patch(trigger_immediately=r.TriggerImmediatelyRequest())
    assert len(machine.started) == 3 and machine.record.schedule.state.remaining_actions == 0
    machine.end(machine.started[2])
    assert machine.at(T0 + timedelta(days=8)).last.exhausted


def test_a_paused_schedule_is_kept() -> None:
    machine = Machine.of(schedule(ScheduleSpec(), ScheduleState(paused=True)))
    assert machine.at(T0 + timedelta(days=100)).last.wake_at is None
    assert not machine.last.exhausted


def test_a_trigger_acts_on_a_paused_schedule_once_for_a_request_id() -> None:
    machine = Machine.of(schedule(state=ScheduleState(paused=True)))
    nominal = T0 - HOUR
    for _ in range(2):
        machine.patch("again", trigger_immediately=r.TriggerImmediatelyRequest(scheduled_time=nominal))
    assert machine.nominal == [nominal]
    assert machine.record.schedule.state.paused


def test_too_many_backfills_are_refused() -> None:
    machine = Machine.of(schedule(state=ScheduleState(paused=True)))
    many = tuple([backfill(T0 - 900 * HOUR, T0, Overlap.BUFFER_ALL)] * limits.MAX_BACKFILLS_PER_PATCH)
    machine.patch(backfill=many)
    with pytest.raises(ResourceExhausted, match="backfills under way"):
        machine.patch(backfill=many)


def test_an_update_from_an_older_definition_is_refused() -> None:
    machine = Machine.of(schedule())
    token = conflict_token(machine.record)
    machine.tell(Update(schedule=schedule(pause_on_failure=True), conflict_token=token, request_id="1"))
    machine.tell(Update(schedule=schedule(pause_on_failure=True), conflict_token=token, request_id="1"))
    with pytest.raises(ConflictTokenMismatch, match="Describe it again"):
        machine.tell(Update(schedule=schedule(), conflict_token=token, request_id="2"))
    machine.tell(Update(schedule=schedule()))
    assert not machine.record.schedule.policies.pause_on_failure


def test_a_run_that_others_wait_for_is_looked_at_once_a_day() -> None:
    once = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=HOUR),), end_at=T0 + 2 * HOUR)
    machine = Machine.of(schedule(once, overlap_policy=Overlap.BUFFER_ALL)).at(T0 + HOUR).at(T0 + 2 * HOUR)
    assert machine.last.wake_at == machine.now + timedelta(days=1)


def test_ids_are_those_of_the_action_where_they_are_to_be_kept() -> None:
    machine = Machine.of(schedule(keep_original_workflow_id=True)).at(T0 + HOUR)
    machine.end(machine.started[0])
    machine.at(T0 + 2 * HOUR)
    assert [run.workflow_id for run in machine.started] == ["report", "report"]
    assert len({run.run_id for run in machine.started}) == 2


def ids(runs: Sequence[Run]) -> list[str]:
    return [run.run_id for run in runs]


def test_another_schedule_of_the_same_id_has_other_runs() -> None:
    creation = Creation(namespace="default", schedule_id="s", incarnation="other", schedule=schedule())
    other = step(create(creation, T0, 30).record, Look(), T0 + HOUR, 30)
    assert ids(other.starts) != ids(Machine.of(schedule()).at(T0 + HOUR).started)
