"""Schedules on the embedded engine: what starts, what it costs, and what a death in between leaves."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from stepwell.api import requests as r
from stepwell.api.common import RetryPolicy, WorkflowExecution
from stepwell.api.enums import ScheduleOverlapPolicy as Overlap
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.errors import ConflictTokenMismatch, InvalidArgument, NotFound, ScheduleAlreadyExists, Unavailable
from stepwell.api.payloads import Payload
from stepwell.api.schedules import ScheduleState

from stepwell_server.history.commit import ExecutionKey
from stepwell_server.scheduler import state
from tests.support.engine import payload, types
from tests.support.scheduled import HOUR, T0, Scheduled, schedule, scheduled

FIRST = "report-2026-11-30T13:00:00Z"
SECOND = "report-2026-11-30T14:00:00Z"
THIRD = "report-2026-11-30T15:00:00Z"


async def test_a_run_at_each_time_with_what_the_last_one_left() -> None:
    async with scheduled() as s:
        await s.create()
        await s.at(T0 + HOUR)
        assert await s.started() == [FIRST]
        described = await s.describe()
        assert [run.workflow_id for run in described.info.running_workflows] == [FIRST]
        assert described.info.future_action_times[:2] == (T0 + 2 * HOUR, T0 + 3 * HOUR)
        await s.finish(text="first")
        described = await s.describe()
        assert described.info.running_workflows == ()
        (recent,) = described.info.recent_actions
        assert (recent.schedule_time, recent.start_workflow_status) == (T0 + HOUR, Status.COMPLETED)
        await s.at(T0 + 2 * HOUR)
        event = await s.first_event(SECOND)
        assert event.last_completion_result == payload("first")
        attributes = {name: value.data for name, value in event.search_attributes.items()}
        assert attributes == {
            "StepwellScheduledById": b'"s"',
            "StepwellScheduledStartTime": b'"2026-11-30T14:00:00Z"',
        }
        await s.finish(fails="no paper")
        await s.at(T0 + 3 * HOUR)
        event = await s.first_event(THIRD)
        assert event.last_completion_result == payload("first")
        assert event.continued_failure.message == "no paper"


async def test_a_result_too_large_for_the_record_is_read_from_its_run() -> None:
    async with scheduled() as s:
        await s.create()
        await s.at(T0 + HOUR)
        await s.finish(text="x" * 100_000)
        assert (await s.describe()).info.state_size_bytes < 2_000
        await s.at(T0 + 2 * HOUR)
        assert (await s.first_event(SECOND)).last_completion_result == payload("x" * 100_000)


@pytest.mark.parametrize("death", range(0, 9))
@pytest.mark.parametrize("policy", [Overlap.SKIP, Overlap.ALLOW_ALL])
async def test_a_death_before_or_behind_any_write_starts_each_time_once(death: int, policy: Overlap) -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=policy))
        s.control.dies = death
        await s.at(T0 + HOUR)
        if policy is Overlap.SKIP:
            await s.finish()
        await s.at(T0 + 2 * HOUR)
        await s.at(T0 + 2 * HOUR + timedelta(minutes=1))
        assert await s.started() == [FIRST, SECOND]
        assert (await s.describe()).info.action_count == 2


@pytest.mark.parametrize("death", range(1, 7))
async def test_a_trigger_whose_caller_dies_is_done_once(death: int) -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(state=ScheduleState(paused=True)))
        s.control.dies = death
        for _ in range(3):
            try:
                await s.patch(request_id="t", trigger_immediately=r.TriggerImmediatelyRequest(scheduled_time=T0))
                break
            except Unavailable:
                continue
        await s.at(T0 + timedelta(minutes=1))
        assert await s.started() == ["report-2026-11-30T12:00:00Z"]
        assert (await s.describe()).info.action_count == 1


async def test_a_wake_up_that_comes_again_does_nothing_more() -> None:
    async with scheduled() as s:
        await s.create()
        s.clock.time = T0 + HOUR
        ((key, fire_at),) = await s.due()
        for _ in range(3):
            await s.engine.fire(key, fire_at)
        assert await s.started() == [FIRST]
        assert (await s.describe()).info.overlap_skipped == 0


async def test_nothing_is_read_or_written_between_firings_and_little_at_them() -> None:
    async with scheduled() as s:
        for number in range(50):
            await s.create(f"s{number}", schedule=schedule(policy=Overlap.ALLOW_ALL))
        s.control.reads = s.control.writes = 0
        for minutes in range(1, 60):
            await s.at(T0 + timedelta(minutes=minutes))
        assert (s.control.reads, s.control.writes) == (0, 0)
        await s.create("one", schedule=schedule(timedelta(minutes=1)))
        s.control.reads = s.control.writes = 0
        await s.at(T0 + timedelta(minutes=60) - timedelta(microseconds=1))
        assert s.control.writes == 0
    async with scheduled() as s:
        await s.create()
        s.control.reads = s.control.writes = 0
        await s.at(T0 + HOUR)
        assert (s.control.reads, s.control.writes) == (2, 2), "written before the start, and confirmed"
        await s.finish()
        assert (s.control.reads, s.control.writes) == (3, 3), "its end is taken in"


async def test_buffer_one_begins_when_the_run_before_has_ended() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.BUFFER_ONE))
        for number in (1, 2, 3):
            await s.at(T0 + number * HOUR)
        assert await s.started() == [FIRST]
        assert (await s.describe()).info.buffer_size == 1
        assert await s.finish() == FIRST
        assert await s.started() == [FIRST, SECOND]


async def test_cancel_other_asks_and_waits() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.CANCEL_OTHER))
        await s.at(T0 + HOUR)
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [FIRST]
        await s.finish()
        assert types(await s.driver.history(FIRST)).count("WorkflowExecutionCancelRequested") == 1
        assert await s.started() == [FIRST, SECOND]


async def test_terminate_other_starts_at_once() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(policy=Overlap.TERMINATE_OTHER))
        await s.at(T0 + HOUR)
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [FIRST, SECOND]
        assert (await s.driver.describe(FIRST)).info.status is Status.TERMINATED


async def test_it_pauses_when_the_retries_of_a_run_have_failed_and_not_before() -> None:
    retry = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=2)
    async with scheduled() as s:
        await s.create(schedule=schedule(pause_on_failure=True, action={"retry_policy": retry}))
        await s.at(T0 + HOUR)
        await s.finish(fails="no paper")
        assert not (await s.describe()).schedule.state.paused
        s.clock.time += timedelta(seconds=5)
        for fire_at, key in await s.backend.timers.due(s.clock.now(), 9):
            await s.engine.fire(key, fire_at)
        await s.finish(fails="no paper again")
        now = (await s.describe()).schedule.state
        assert now.paused and now.note.endswith("no paper again")


async def test_a_run_whose_news_were_lost_is_looked_at_when_it_matters() -> None:
    async with scheduled() as s:
        await s.create()
        await s.at(T0 + HOUR)

        async def deaf(namespace: str, id: str, ends: Any) -> None:
            return None

        s.engine.outside_waiters.register("schedule", deaf)
        await s.finish()
        assert len((await s.describe()).info.running_workflows) == 1
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [FIRST, SECOND]


async def test_another_workflow_with_the_id_is_left_alone() -> None:
    async with scheduled() as s:
        await s.driver.start("report")
        await s.create(schedule=schedule(keep_original_workflow_id=True))
        await s.at(T0 + HOUR)
        info = (await s.describe()).info
        assert (info.action_count, info.overlap_skipped, info.running_workflows) == (0, 1, ())


async def test_so_many_starts_a_second() -> None:
    """LC-42."""
    async with scheduled() as s:
        await s.create(schedule=schedule(timedelta(minutes=1), Overlap.ALLOW_ALL, state=ScheduleState(paused=True)))
        backfill = r.BackfillRequest(start_time=T0 - timedelta(minutes=70), end_time=T0)
        await s.patch(backfill=(backfill,))
        assert len(await s.started()) == 30
        await s.at(T0 + timedelta(seconds=1, milliseconds=1))
        assert len(await s.started()) == 60
        await s.at(T0 + timedelta(seconds=3))
        assert len(await s.started()) == 70
        event = await s.first_event((await s.started())[0])
        assert event.search_attributes["StepwellScheduledByBackfill"].data == b"true"


async def test_many_schedules_at_one_moment_take_turns() -> None:
    """Each is looked at a few times, however many are before it."""
    async with scheduled() as s:
        for number in range(150):
            await s.create(f"s{number}", schedule=schedule(action={"workflow_id": f"r{number}"}))
        s.control.reads = 0
        s.clock.time = T0 + HOUR
        seconds = 0
        while True:
            await s.fire()
            counts = [(await s.describe(f"s{number}")).info.action_count for number in range(150)]
            if min(counts) == 1:
                break
            seconds += 1
            s.clock.time += timedelta(seconds=1)
            assert seconds < 30
        assert seconds >= 4
        looks = s.control.reads - 150 * (seconds + 1)
        assert looks <= 150 * 5, "two for a start, and two for each turn"


async def test_two_at_the_same_time_do_not_lose_each_others_change() -> None:
    async with scheduled() as s:
        await s.create()

        s.control.conflicts.append(lambda: _elsewhere(s))
        await s.at(T0 + HOUR)
        assert await s.started() == [FIRST]
        assert (await s.describe()).schedule.state.note == "elsewhere"


async def _elsewhere(s: Scheduled) -> None:
    """Another process changes the record between this one's read and write."""
    stored = await s.control.inner.get("schedule", "default", "s")
    assert stored is not None
    record = state.decode(stored.value)
    record.schedule = msgspec.structs.replace(record.schedule, state=ScheduleState(note="elsewhere"))
    await s.control.inner.put(stored._replace(version=stored.version + 1, value=state.encode(record)))


async def test_create_once_update_by_token_delete() -> None:
    async with scheduled() as s:
        first = await s.create(request_id="c")
        assert await s.create(request_id="c") == first
        with pytest.raises(ScheduleAlreadyExists, match="update it"):
            await s.create(request_id="d")
        update = r.UpdateScheduleRequest(
            schedule_id="s", schedule=schedule(pause_on_failure=True), conflict_token=first.conflict_token
        )
        await s.call("UpdateSchedule", update)
        with pytest.raises(ConflictTokenMismatch):
            await s.call("UpdateSchedule", update)
        assert (await s.describe()).schedule.policies.pause_on_failure
        await s.call("DeleteSchedule", r.DeleteScheduleRequest(schedule_id="s"))
        with pytest.raises(NotFound, match="no such schedule"):
            await s.describe()
        with pytest.raises(NotFound):
            await s.call("DeleteSchedule", r.DeleteScheduleRequest(schedule_id="s"))
        await s.at(T0 + HOUR)
        assert await s.started() == []
        await s.create()
        await s.at(T0 + 2 * HOUR)
        assert await s.started() == [SECOND]


async def test_the_end_of_a_run_of_a_deleted_schedule_means_nothing_to_the_next_one() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(pause_on_failure=True))
        await s.at(T0 + HOUR)
        await s.call("DeleteSchedule", r.DeleteScheduleRequest(schedule_id="s"))
        await s.create(schedule=schedule(pause_on_failure=True))
        await s.finish(fails="no paper")
        assert not (await s.describe()).schedule.state.paused
        assert (await s.driver.describe(FIRST)).info.status is Status.FAILED


async def test_an_exhausted_schedule_is_gone_after_a_week() -> None:
    async with scheduled() as s:
        await s.create(schedule=schedule(state=ScheduleState(limited_actions=True, remaining_actions=1)))
        await s.at(T0 + HOUR)
        await s.finish()
        assert (await s.describe()).info.future_action_times == ()
        await s.at(T0 + timedelta(days=6))
        assert (await s.describe()).schedule.state.remaining_actions == 0
        await s.at(T0 + timedelta(days=7, hours=2))
        with pytest.raises(NotFound):
            await s.describe()


async def test_lists_and_previews() -> None:
    async with scheduled() as s:
        for number in range(5):
            await s.create(f"s{number}", memo={"n": payload(str(number))[0]})
        page = await s.call("ListSchedules", r.ListSchedulesRequest(page_size=3))
        rest = await s.call("ListSchedules", r.ListSchedulesRequest(page_size=3, next_page_token=page.next_page_token))
        entries = [*page.schedules, *rest.schedules]
        assert [entry.schedule_id for entry in entries] == [f"s{number}" for number in range(5)]
        assert rest.next_page_token == b""
        assert entries[0].info.workflow_type == "report" and len(entries[0].info.future_action_times) == 5
        request = r.ListScheduleMatchingTimesRequest(schedule_id="s0", start_time=T0, end_time=T0 + 3 * HOUR)
        preview = await s.call("ListScheduleMatchingTimes", request)
        assert preview.start_times == tuple([T0 + number * HOUR for number in range(4)])
        minutely = schedule(timedelta(minutes=1)).spec
        request = r.ListScheduleMatchingTimesRequest(
            schedule_id="none", spec=minutely, start_time=T0, end_time=T0 + 100 * HOUR
        )
        preview = await s.call("ListScheduleMatchingTimes", request)
        assert len(preview.start_times) == 1_000 and preview.next_start_time == T0 + timedelta(minutes=1_000)
        request = msgspec.structs.replace(request, end_time=T0 + 5_000 * 24 * HOUR, count_only=True)
        counted, calls = await s.call("ListScheduleMatchingTimes", request), 1
        total = counted.count
        while counted.next_start_time is not None:
            request = msgspec.structs.replace(request, start_time=counted.next_start_time)
            counted, calls = await s.call("ListScheduleMatchingTimes", request), calls + 1
            total += counted.count
        assert total == 5_000 * 24 * 60 + 1 and 5 < calls < 20, "each call looks at a part, the last at none"


async def test_found_by_their_attributes() -> None:
    def keyword(text: str) -> Payload:
        return Payload(metadata={"encoding": "json/plain", "type": "Keyword"}, data=f'"{text}"'.encode())

    async with scheduled() as s:
        for number in range(6):
            paused = ScheduleState(paused=number % 2 == 0)
            team = {"Team": keyword("red" if number < 4 else "blue")}
            await s.create(f"s{number}", schedule=schedule(state=paused), search_attributes=team)

        async def found(query: str, size: int = 2) -> list[str]:
            ids: list[str] = []
            token = b""
            while True:
                request = r.ListSchedulesRequest(query=query, page_size=size, next_page_token=token)
                page = await s.call("ListSchedules", request)
                ids += [entry.schedule_id for entry in page.schedules]
                token = page.next_page_token
                if not token:
                    return ids

        assert await found("Team = 'red'") == ["s0", "s1", "s2", "s3"]
        assert await found("Team = 'red' AND StepwellSchedulePaused = true") == ["s0", "s2"]
        assert await found("Team = 'blue' OR ScheduleId = 's0'", 1) == ["s0", "s4", "s5"]
        assert await found("WorkflowType = 'other'") == []
        for wrong, why in (("Teem = 'red'", "Teem"), ("Team = 'red' ORDER BY Team", "ORDER BY"), ("Team", "query")):
            with pytest.raises(InvalidArgument, match=why):
                await found(wrong)
        other = {"Team": Payload(metadata={"encoding": "json/plain", "type": "Int"}, data=b"1")}
        with pytest.raises(InvalidArgument, match="Team"):
            await s.create("s6", schedule=schedule(action={"search_attributes": other}))
        assert await found("") == [f"s{number}" for number in range(6)]


async def test_its_runs_are_found_by_it() -> None:
    async with scheduled() as s:
        await s.create()
        await s.at(T0 + HOUR)
        for query in ("StepwellScheduledById = 's'", "StepwellScheduledStartTime >= '2026-11-30T13:00:00Z'"):
            listed = await s.engine.list_workflows(r.ListWorkflowsRequest(query=query))
            assert [info.execution.workflow_id for info in listed.executions] == [FIRST]


async def test_a_restart_within_the_jitter_of_a_time(tmp_path: Path) -> None:
    """WC-17 (e)."""
    jittered = msgspec.structs.replace(schedule().spec, jitter=timedelta(minutes=10))
    async with scheduled(tmp_path / "s.db") as s:
        await s.create(schedule=msgspec.structs.replace(schedule(), spec=jittered))
        (at, *_) = (await s.describe()).info.future_action_times
        assert at > T0 + HOUR
        await s.at(T0 + HOUR)
    async with scheduled(tmp_path / "s.db") as s:
        s.clock.time = T0 + HOUR
        assert (await s.describe()).info.future_action_times[0] == at
        await s.at(at)
        assert await s.started() == [FIRST]
        assert [action.actual_time for action in (await s.describe()).info.recent_actions] == [at]


async def test_runs_that_have_a_schedule_owe_nothing_for_ever() -> None:
    async with scheduled() as s:
        await s.create()
        await s.at(T0 + HOUR)
        await s.finish()
        key = WorkflowExecution(workflow_id=FIRST)
        described = await s.engine.describe_workflow(r.DescribeWorkflowRequest(execution=key))
        assert described.info.status is Status.COMPLETED
        head = await s.backend.log.head(ExecutionKey("default", FIRST))
        assert head is not None and head.state.owed == ()
