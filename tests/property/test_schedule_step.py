"""Laws of the step of schedules over any order of times, orders and ends: each time that is named or ordered is
started, waits, or is counted among those that were not; what comes twice changes nothing; the record stays small."""

from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from stepwell.api import limits
from stepwell.api import requests_schedules as r
from stepwell.api.enums import ScheduleCatchUpPolicy, ScheduleOverlapPolicy
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.schedules import ScheduleIntervalSpec, ScheduleSpec

from stepwell_server.scheduler.requests import Look, RunEnd
from stepwell_server.scheduler.spec import matching_times
from stepwell_server.scheduler.state import encode
from stepwell_server.scheduler.step import step
from tests.support.schedule_machine import MINUTE, SECOND, T0, Machine, backfill, schedule

POLICIES = st.sampled_from(ScheduleOverlapPolicy)
OWN = st.none() | POLICIES
OPERATIONS = st.one_of(
    st.tuples(st.just("later"), st.integers(1, 900)),
    st.tuples(st.just("trigger"), OWN),
    st.tuples(st.just("backfill"), st.tuples(st.integers(0, 600), OWN)),
    st.tuples(st.sampled_from(["pause", "unpause", "fail", "complete"]), st.none()),
)


def count(machine: Machine, after: datetime, end: datetime) -> int:
    spec = machine.record.schedule.spec
    return sum(1 for _ in matching_times(spec, after + timedelta(microseconds=1), end))


def do(machine: Machine, name: str, value: Any) -> int:
    """How many times were ordered."""
    match name, value:
        case "later", int():
            machine.at(machine.now + value * SECOND)
        case "trigger", policy:
            machine.patch(trigger_immediately=r.TriggerImmediatelyRequest(overlap_policy=policy))
            return 1
        case "backfill", (int(seconds), policy):
            start = T0 - timedelta(days=1)
            machine.patch(backfill=(backfill(start, start + seconds * SECOND, policy),))
            return count(machine, start, start + seconds * SECOND)
        case "pause" | "unpause", _:
            machine.patch(**{name: ""})
        case _:
            running = [run for run in machine.record.runs if run.started]
            if running:
                status = Status.FAILED if name == "fail" else Status.COMPLETED
                machine.tell(Look(ends=(RunEnd(run_id=running[0].run_id, status=status),)))
    return 0


@settings(max_examples=60, deadline=None)
@given(
    policy=POLICIES,
    catch_up=st.sampled_from(ScheduleCatchUpPolicy),
    limit=st.integers(0, 3),
    pauses=st.booleans(),
    jitter=st.integers(0, 40),
    allowance=st.integers(0, 5),
    operations=st.lists(OPERATIONS, max_size=25),
)
def test_no_time_is_lost_and_none_counts_twice(
    policy: ScheduleOverlapPolicy,
    catch_up: ScheduleCatchUpPolicy,
    limit: int,
    pauses: bool,
    jitter: int,
    allowance: int,
    operations: list[tuple[str, Any]],
) -> None:
    spec = ScheduleSpec(intervals=(ScheduleIntervalSpec(every=MINUTE),), jitter=jitter * SECOND)
    machine = Machine.of(
        schedule(
            spec,
            overlap_policy=policy,
            catch_up_on_unpause=catch_up,
            concurrency_limit=limit,
            pause_on_failure=pauses,
            catchup_window=5 * MINUTE,
        )
    )
    machine.allowance = allowance
    ordered = 0
    for name, value in operations:
        ordered += do(machine, name, value)
        record = machine.record
        named = count(machine, record.create_time, record.cursor) + ordered
        told = record.action_count + record.missed_catchup_window + record.missed_paused
        told += (
            record.start_refused
            + record.overlap_skipped
            + record.buffer_dropped
            + len(record.buffer)
            + (record.held is not None)
        )
        told += sum(count(machine, one.cursor, one.end) for one in record.backfills)
        assert named == told
        assert len({run.run_id for run in machine.started}) == len(machine.started) == record.action_count
        assert len(record.buffer) <= limits.MAX_SCHEDULE_BUFFER
        assert len(encode(record)) < 100_000
        again = step(record, Look(), machine.now, 0)
        assert encode(step(again.record, Look(), machine.now, 0).record) == encode(again.record)
        if not record.schedule.state.paused:
            assert machine.last.wake_at is not None, "a schedule that goes on wakes"
