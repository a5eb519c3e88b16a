"""What a schedule does with what comes to it: by time, by order, by the ends of its runs (LC-27 to LC-35, LC-41)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from stepwell.api import limits
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleCatchUpPolicy as CatchUp
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.errors import ConflictTokenMismatch, ResourceExhausted
from stepwell.api.failures import Failure
from stepwell.api.payloads import Payload
from stepwell.api.schedules import (
    NewWorkflowExecutionInfo,
    Schedule,
    ScheduleAction,
    ScheduleIntervalSpec,
    SchedulePolicies,
    ScheduleSpec,
    ScheduleState,
)

from stepwell_server.scheduler.requests import Attempted, Creation, Look, Outcome, Patch, Request, RunEnd, Step, Update
from stepwell_server.scheduler.state import Run, ScheduleRecord, conflict_token, decode, encode
from stepwell_server.scheduler.step import create, step

T0 = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
HOURLY = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=HOUR),))


def schedule(spec: ScheduleSpec = HOURLY, state: ScheduleState | None = None, **policies: Any) -> Schedule:
    return Schedule(
        spec=spec,
        action=ScheduleAction(
            start_workflow=NewWorkflowExecutionInfo(workflow_id="report", workflow_type="report", task_queue="q")
        ),
        policies=SchedulePolicies(**policies),
        state=state or ScheduleState(),
    )


@dataclass
class Machine:
    """A schedule whose starts succeed at once."""

    now: datetime
    last: Step
    started: list[Run] = field(default_factory=list)
    allowance: int = 1_000

    @classmethod
    def of(cls, definition: Schedule, patch: r.SchedulePatch | None = None, now: datetime = T0) -> "Machine":
        creation = Creation(
            namespace="default", schedule_id="s", incarnation="i", schedule=definition, initial_patch=patch
        )
        machine = cls(now, create(creation, now, 1_000))
        machine.carry_out()
        return machine

    @property
    def record(self) -> ScheduleRecord:
        return self.last.record

    def tell(self, request: Request) -> None:
        before = encode(self.record)
        self.last = step(decode(before), request, self.now, self.allowance)
        assert encode(step(decode(before), request, self.now, self.allowance).record) == encode(self.record)
        self.carry_out()

    def carry_out(self) -> None:
        while self.last.starts:
            self.started += self.last.starts
            outcomes = tuple([(run.run_id, Outcome.STARTED) for run in self.last.starts])
            self.last = step(self.record, Attempted(starts=outcomes), self.now, self.allowance)

    def at(self, time: datetime) -> "Machine":
        self.now = time
        self.tell(Look())
        return self

    def end(self, run: Run, status: Status = Status.COMPLETED, **more: Any) -> None:
        self.tell(Look(ends=(RunEnd(run_id=run.run_id, status=status, **more),)))

    def patch(self, request_id: str = "", **patch: Any) -> None:
        self.tell(Patch(patch=r.SchedulePatch(**patch), request_id=request_id))

    @property
    def nominal(self) -> list[datetime]:
        return [run.waiting.nominal for run in self.started]


def hours(*numbers: int) -> list[datetime]:
    return [T0 + number * HOUR for number in numbers]


def backfill(start: datetime, end: datetime, policy: Overlap | None = None) -> r.BackfillRequest:
    return r.BackfillRequest(start_time=start, end_time=end, overlap_policy=policy)


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


def test_an_id_that_another_workflow_has_is_skipped_and_gives_its_action_back() -> None:
    machine = Machine.of(schedule(state=ScheduleState(limited_actions=True, remaining_actions=2)))
    asked = step(machine.record, Look(), T0 + HOUR, 30)
    assert asked.record.schedule.state.remaining_actions == 1
    told = step(asked.record, Attempted(starts=((asked.starts[0].run_id, Outcome.TAKEN),)), T0 + HOUR, 30).record
    assert (told.overlap_skipped, told.action_count, told.runs) == (1, 0, ())
    assert told.schedule.state.remaining_actions == 2


def test_what_is_refused_for_good_is_dropped() -> None:
    asked = step(Machine.of(schedule()).record, Look(), T0 + HOUR, 30)
    told = step(asked.record, Attempted(starts=((asked.starts[0].run_id, Outcome.REFUSED),)), T0 + HOUR, 30)
    assert (told.record.buffer_dropped, told.record.runs, told.starts) == (1, (), ())


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


def test_a_catch_up_never_does_more_than_is_left() -> None:
    limited = ScheduleState(limited_actions=True, remaining_actions=2)
    machine = Machine.of(schedule(state=limited, overlap_policy=Overlap.ALLOW_ALL)).at(T0 + 5 * HOUR)
    assert machine.nominal == hours(1, 2)
    assert machine.record.buffer == ()


def test_actions_that_are_given_later_do_not_reach_back() -> None:
    machine = Machine.of(schedule(state=ScheduleState(limited_actions=True)))
    machine.now = T0 + 3 * HOUR + MINUTE
    machine.tell(Update(schedule=schedule(state=ScheduleState(limited_actions=True, remaining_actions=1))))
    assert machine.nominal == [] and machine.last.wake_at == T0 + 4 * HOUR


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


def test_starts_above_the_rate_wait_for_a_second_in_their_order() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.ALLOW_ALL))
    machine.allowance = 2
    asked = step(machine.record, Look(), T0 + 5 * HOUR, 2)
    assert [run.waiting.nominal for run in asked.starts] == hours(1, 2)
    assert asked.wake_at == T0 + 5 * HOUR + SECOND
    assert [waiting.nominal for waiting in asked.record.buffer] == hours(3, 4, 5)


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


def test_actions_that_wait_are_not_done_while_it_is_paused_but_orders_are() -> None:
    machine = Machine.of(schedule(overlap_policy=Overlap.BUFFER_ALL)).at(T0 + HOUR).at(T0 + 2 * HOUR)
    machine.patch(pause="", trigger_immediately=r.TriggerImmediatelyRequest())
    machine.end(machine.started[0])
    assert machine.nominal == [T0 + HOUR, T0 + 2 * HOUR]
    assert machine.started[1].waiting.origin == "o" and machine.record.missed_paused == 1


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
