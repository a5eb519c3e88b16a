"""Schedules by the unmodified SDK."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio import workflow
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.schedule.v1 import CalendarSpec
from temporalio.api.schedule.v1 import ScheduleSpec as RawSpec
from temporalio.api.workflowservice.v1 import (
    CountSchedulesRequest,
    DescribeScheduleRequest,
    ListScheduleMatchingTimesRequest,
    UpdateScheduleRequest,
)
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import (
    Priority,
    RetryPolicy,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
)
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.support.cases import until

QUEUE = "scheduled"
TEAM = SearchAttributeKey.for_keyword("Team")
BY = SearchAttributeKey.for_keyword("TemporalScheduledById")
NEVER = ScheduleSpec()
MIDNIGHT = datetime(2035, 1, 1, tzinfo=UTC)


@workflow.defn
class Report:
    @workflow.run
    async def run(self, name: str) -> str:
        return f"report for {name}"


def action(**more: Any) -> ScheduleActionStartWorkflow:
    return ScheduleActionStartWorkflow("Report", "ada", id="report", task_queue=QUEUE, **more)


def team(name: str) -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(TEAM, name)])


async def described(handle: ScheduleHandle, actions: int, *, closed: bool = True) -> ScheduleDescription:
    """As it is once so many actions are done, and their runs closed."""

    async def found() -> ScheduleDescription | None:
        now = await handle.describe()
        return now if now.info.num_actions >= actions and not (closed and now.info.running_actions) else None

    return await until(found)


async def test_a_definition_comes_back_as_it_was(client: Client) -> None:
    weekdays = ScheduleCalendarSpec(
        hour=(ScheduleRange(8, 18, 2),), day_of_week=(ScheduleRange(1, 5),), comment="office hours"
    )
    spec = ScheduleSpec(
        calendars=[weekdays],
        intervals=[ScheduleIntervalSpec(every=timedelta(days=10), offset=timedelta(days=2))],
        skip=[ScheduleCalendarSpec(month=(ScheduleRange(12),))],
        start_at=MIDNIGHT,
        end_at=MIDNIGHT + timedelta(days=365),
        jitter=timedelta(seconds=30),
        time_zone_name="Europe/Rome",
    )
    policy = SchedulePolicy(
        overlap=ScheduleOverlapPolicy.BUFFER_ONE, catchup_window=timedelta(minutes=5), pause_on_failure=True
    )
    state = ScheduleState(note="first", paused=True, limited_actions=True, remaining_actions=30)
    does = action(
        execution_timeout=timedelta(hours=1),
        run_timeout=timedelta(minutes=30),
        task_timeout=timedelta(seconds=20),
        retry_policy=RetryPolicy(maximum_attempts=3, maximum_interval=timedelta(seconds=50)),
        memo={"for": "ada"},
        typed_search_attributes=team("red"),
        static_summary="a report",
        priority=Priority(priority_key=2),
    )
    handle = await client.create_schedule(
        "whole",
        Schedule(action=does, spec=spec, policy=policy, state=state),
        memo={"owner": "team"},
        search_attributes=team("blue"),
    )
    found = await handle.describe()
    assert found.schedule.spec == spec
    assert found.schedule.policy == policy
    assert found.schedule.state == state
    assert await found.memo() == {"owner": "team"} and found.typed_search_attributes[TEAM] == "blue"
    start = found.schedule.action
    assert isinstance(start, ScheduleActionStartWorkflow)
    assert (start.workflow, start.id, start.task_queue) == ("Report", "report", QUEUE)
    assert client.data_converter.payload_converter.from_payloads(start.args) == ["ada"]
    assert (start.execution_timeout, start.run_timeout, start.task_timeout) == (
        timedelta(hours=1),
        timedelta(minutes=30),
        timedelta(seconds=20),
    )
    assert start.retry_policy == does.retry_policy and start.priority == does.priority
    assert start.typed_search_attributes[TEAM] == "red"
    assert len(found.info.next_action_times) == 10 and found.info.next_action_times[0] > MIDNIGHT
    assert found.info.num_actions == 0 and found.info.last_updated_at is None
    with pytest.raises(ScheduleAlreadyRunningError):
        await client.create_schedule("whole", Schedule(action=action(), spec=NEVER))


async def test_what_is_left_out_or_longer_than_a_start_takes_is_shown_as_it_was_said(client: Client) -> None:
    schedule = Schedule(action=action(task_timeout=timedelta(hours=3)), spec=NEVER)
    handle = await client.create_schedule("plain", schedule)
    found = (await handle.describe()).schedule
    assert found.policy == SchedulePolicy() and found.spec == NEVER and found.state == ScheduleState()
    assert found.action.task_timeout == timedelta(hours=3)  # type: ignore[attr-defined]
    year = SchedulePolicy(catchup_window=timedelta(days=365))
    said = await client.create_schedule("said", Schedule(action=action(), spec=NEVER, policy=year))
    assert (await said.describe()).schedule.policy == year
    short = SchedulePolicy(catchup_window=timedelta(seconds=1))
    cut = await client.create_schedule("cut", Schedule(action=action(), spec=NEVER, policy=short))
    assert (await cut.describe()).schedule.policy.catchup_window == timedelta(seconds=10)
    await handle.trigger()
    run = (await described(handle, 1, closed=False)).info.running_actions[0]
    started = await client.get_workflow_handle(run.workflow_id).describe()  # type: ignore[attr-defined]
    assert started.raw_description.execution_config.default_workflow_task_timeout.seconds == 120


async def test_untyped_search_attributes_get_the_type_that_is_registered(client: Client) -> None:
    kinds = {
        "Team": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
        "Tags": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    }
    asked = AddSearchAttributesRequest(namespace="default", search_attributes=kinds)
    await client.operator_service.add_search_attributes(asked)
    does = action()
    does.untyped_search_attributes = {"Team": ["red"], "Tags": ["a"]}
    handle = await client.create_schedule("untyped", Schedule(action=does, spec=NEVER))
    start = (await handle.describe()).schedule.action
    assert start.typed_search_attributes[TEAM] == "red"  # type: ignore[attr-defined]
    assert start.typed_search_attributes[SearchAttributeKey.for_keyword_list("Tags")] == ["a"]  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="search attributes"):
        run = await client.start_workflow(
            "Report", "ada", id="r", task_queue=QUEUE, search_attributes={"Team": ["blue"]}
        )
    assert (await run.describe()).typed_search_attributes[TEAM] == "blue"


async def test_cron_strings_are_shown_as_calendars_and_intervals(client: Client) -> None:
    spec = ScheduleSpec(cron_expressions=["CRON_TZ=Europe/Rome 0 12 * * MON # lunch", "@every 2h/10m"])
    handle = await client.create_schedule("cron", Schedule(action=action(), spec=spec))
    shown = (await handle.describe()).schedule.spec
    assert not shown.cron_expressions and shown.time_zone_name == "Europe/Rome"
    noon = ScheduleCalendarSpec(
        minute=(ScheduleRange(0),), hour=(ScheduleRange(12),), day_of_week=(ScheduleRange(1),), comment="lunch"
    )
    assert shown.calendars == [noon]
    assert shown.intervals == [ScheduleIntervalSpec(every=timedelta(hours=2), offset=timedelta(minutes=10))]
    with pytest.raises(RPCError, match="cron_expressions") as bad:
        await client.create_schedule(
            "bad", Schedule(action=action(), spec=ScheduleSpec(cron_expressions=["0 99 * * *"]))
        )
    assert bad.value.status is RPCStatusCode.INVALID_ARGUMENT


async def test_actions_are_done_counted_and_limited(client: Client) -> None:
    async with Worker(client, task_queue=QUEUE, workflows=[Report], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await client.create_schedule(
            "orders",
            Schedule(action=action(), spec=ScheduleSpec(cron_expressions=["0 0 * * *"])),
            trigger_immediately=True,
        )
        done = await described(handle, 1)
        run = done.info.recent_actions[0].action
        result = client.get_workflow_handle(run.workflow_id)  # type: ignore[attr-defined]
        assert await result.result() == "report for ada"
        assert (await result.describe()).typed_search_attributes[BY] == "orders"
        assert (await client.count_workflows("TemporalScheduledById = 'orders'")).count == 1
        await handle.trigger(overlap=ScheduleOverlapPolicy.ALLOW_ALL)
        await described(handle, 2)
        past = datetime(2024, 1, 1, tzinfo=UTC)
        days = ScheduleBackfill(
            start_at=past - timedelta(minutes=1),
            end_at=past + timedelta(days=2),
            overlap=ScheduleOverlapPolicy.ALLOW_ALL,
        )
        await handle.backfill(days)
        done = await described(handle, 5)
        assert done.info.num_actions == 5 and len(done.info.recent_actions) == 5
        assert {result.scheduled_at for result in done.info.recent_actions} >= {
            past + timedelta(days=n) for n in range(3)
        }
    await handle.delete()
    with pytest.raises(RPCError) as gone:
        await handle.describe()
    assert gone.value.status is RPCStatusCode.NOT_FOUND


async def test_pauses_and_updates(client: Client) -> None:
    handle = await client.create_schedule("changed", Schedule(action=action(), spec=NEVER))
    await handle.pause(note="not now")
    paused = (await handle.describe()).schedule.state
    assert paused.paused and paused.note == "not now"
    await handle.unpause()
    assert not (await handle.describe()).schedule.state.paused

    def change(given: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = given.description.schedule
        schedule.spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=1))])
        assert isinstance(schedule.action, ScheduleActionStartWorkflow)
        schedule.action.task_queue = "another"
        return ScheduleUpdate(schedule, search_attributes=team("green"))

    await handle.update(change)
    changed = await handle.describe()
    assert changed.schedule.spec.intervals == [ScheduleIntervalSpec(every=timedelta(days=1))]
    assert changed.schedule.action.task_queue == "another"  # type: ignore[attr-defined]
    assert client.data_converter.payload_converter.from_payloads(changed.schedule.action.args) == ["ada"]  # type: ignore[attr-defined]
    assert changed.typed_search_attributes[TEAM] == "green" and changed.info.last_updated_at is not None
    await handle.update(lambda given: ScheduleUpdate(given.description.schedule))
    assert (await handle.describe()).typed_search_attributes[TEAM] == "green"


async def test_an_update_from_an_old_description_is_refused(client: Client) -> None:
    await client.create_schedule("raced", Schedule(action=action(), spec=NEVER))
    service = client.workflow_service
    which: dict[str, Any] = {"namespace": "default", "schedule_id": "raced"}
    old = await service.describe_schedule(DescribeScheduleRequest(**which))
    asked = UpdateScheduleRequest(**which, schedule=old.schedule, conflict_token=old.conflict_token, request_id="a")
    asked.schedule.state.notes = "mine"
    await service.update_schedule(asked)
    asked.request_id = "b"
    with pytest.raises(RPCError) as refused:
        await service.update_schedule(asked)
    assert refused.value.status is RPCStatusCode.FAILED_PRECONDITION
    asked.conflict_token, asked.schedule.state.notes = b"", "whatever there is"
    await service.update_schedule(asked)
    assert (
        await service.describe_schedule(DescribeScheduleRequest(**which))
    ).schedule.state.notes == "whatever there is"


async def test_calendars_of_text_and_matching_times(client: Client) -> None:
    await client.create_schedule("text", Schedule(action=action(), spec=NEVER))
    service = client.workflow_service
    which: dict[str, Any] = {"namespace": "default", "schedule_id": "text"}
    schedule = (await service.describe_schedule(DescribeScheduleRequest(**which))).schedule
    spec = RawSpec(
        calendar=[CalendarSpec(hour="6, 18", day_of_week="mon-fri", comment="twice")],
        exclude_calendar=[CalendarSpec(hour="18", day_of_week="Friday")],
    )
    schedule.spec.CopyFrom(spec)
    await service.update_schedule(UpdateScheduleRequest(**which, schedule=schedule))
    shown = (await service.describe_schedule(DescribeScheduleRequest(**which))).schedule.spec
    assert [hours.start for hours in shown.structured_calendar[0].hour] == [6, 18]
    assert shown.structured_calendar[0].comment == "twice" and not shown.calendar
    monday, week = datetime(2035, 1, 1, tzinfo=UTC), timedelta(days=7)
    asked = ListScheduleMatchingTimesRequest(**which, start_time=moment(monday), end_time=moment(monday + week))
    times = [time.ToDatetime(UTC) for time in (await service.list_schedule_matching_times(asked)).start_time]
    assert len(times) == 9 and times[0] == monday + timedelta(hours=6)
    assert times[-1] == monday + timedelta(days=4, hours=6)
    schedule.spec.calendar[0].minute = "soon"
    with pytest.raises(RPCError, match=r"calendar\[0\].*soon") as refused:
        await service.update_schedule(UpdateScheduleRequest(**which, schedule=schedule))
    assert refused.value.status is RPCStatusCode.INVALID_ARGUMENT


def moment(time: datetime) -> Timestamp:
    value = Timestamp()
    value.FromDatetime(time)
    return value


async def test_schedules_are_listed_and_counted(client: Client) -> None:
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=timedelta(days=1))])
    for number in range(3):
        state = ScheduleState(note=f"n{number}", paused=number == 0)
        schedule = Schedule(action=action(), spec=spec, state=state)
        await client.create_schedule(
            f"s{number}", schedule, memo={"n": number}, search_attributes=team(f"t{number % 2}")
        )
    found = [one async for one in await client.list_schedules(page_size=2)]
    assert [one.id for one in found] == ["s0", "s1", "s2"]
    first = found[0]
    assert first.schedule is not None and first.info is not None
    assert first.schedule.state.paused and first.schedule.state.note == "n0" and first.schedule.spec == spec
    assert first.schedule.action.workflow == "Report"  # type: ignore[attr-defined]
    assert len(first.info.next_action_times) == 5
    assert await first.memo() == {"n": 0} and first.typed_search_attributes[TEAM] == "t0"
    paused = [one.id async for one in await client.list_schedules("TemporalSchedulePaused = true")]
    assert paused == ["s0"]
    by_team = CountSchedulesRequest(namespace="default", query="Team = 't0'")
    assert (await client.workflow_service.count_schedules(by_team)).count == 2
