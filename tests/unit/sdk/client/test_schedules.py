"""Schedules through a client, on a real engine in memory: what is written arrives, what is read can be changed and sent
back, and what is wrong is refused where it is written."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from stepwell import workflow
from stepwell.api.payloads import Payload
from stepwell.client import (
    Client,
    CreateScheduleInput,
    Interceptor,
    OutboundInterceptor,
    RPCError,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleBackfill,
    ScheduleCalendarSpec,
    ScheduleCatchUpPolicy,
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
from stepwell.common import Priority, RetryPolicy, SearchAttributeKey, TypedSearchAttributes, WorkflowIDReusePolicy
from stepwell.converter import ArgumentError, DataConverter, PayloadCodec
from stepwell.testing import DevEnvironment
from stepwell.worker import Worker

from tests.support.cases import until

QUEUE = "reports"
DAY = datetime(2027, 3, 1, tzinfo=UTC)
REGION = SearchAttributeKey.for_keyword("Region")
OWNER = SearchAttributeKey.for_keyword("Owner")


@dataclass
class Report:
    name: str
    pages: int


@workflow.defn
async def write_report(report: Report, draft: bool = False) -> str:
    return f"{report.name}, {report.pages} pages{', draft' if draft else ''}"


@workflow.defn
class Stays:
    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)


@pytest.fixture
async def client():
    async with await DevEnvironment.start() as env:
        yield env.client


def never(action: ScheduleActionStartWorkflow | None = None, **more: Any) -> Schedule:
    """Acts when it is told to."""
    action = action or ScheduleActionStartWorkflow(
        write_report, args=[Report("march", 3), True], id="report", task_queue=QUEUE
    )
    return Schedule(action=action, spec=more.pop("spec", ScheduleSpec()), **more)


FULL = Schedule(
    action=ScheduleActionStartWorkflow(
        write_report,
        Report("march", 3),
        id="report",
        task_queue=QUEUE,
        execution_timeout=timedelta(hours=3),
        run_timeout=timedelta(hours=2),
        task_timeout=timedelta(seconds=20),
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
        retry_policy=RetryPolicy(maximum_attempts=3, non_retryable_error_types=("Bug",)),
        memo={"team": ["a", "b"]},
        typed_search_attributes=[REGION.value_set("north")],
        static_summary="the report",
        static_details="all of it",
        start_delay=timedelta(seconds=1),
        priority=Priority(priority_key=2, fairness_key="tenant"),
    ),
    spec=ScheduleSpec(
        calendars=[
            ScheduleCalendarSpec(
                minute=[ScheduleRange(0, 50, 10)], hour=[ScheduleRange(6), ScheduleRange(8, 10)],
                day_of_week=[ScheduleRange(1, 5)], year=[ScheduleRange(2027, 2030)], comment="mornings",
            )
        ],
        intervals=[ScheduleIntervalSpec(timedelta(days=7), timedelta(days=1)), ScheduleIntervalSpec(timedelta(days=9))],
        cron_expressions=["0 12 * * MON"],
        skip=[ScheduleCalendarSpec(hour=[ScheduleRange(0, 23)], month=[ScheduleRange(12)])],
        start_at=DAY,
        end_at=DAY + timedelta(days=365),
        jitter=timedelta(seconds=30),
        time_zone_name="Europe/Rome",
    ),
    policy=SchedulePolicy(
        overlap=ScheduleOverlapPolicy.BUFFER_ONE, catchup_window=timedelta(hours=1), pause_on_failure=True,
        concurrency_limit=2, catch_up_on_unpause=ScheduleCatchUpPolicy.ONE, keep_original_workflow_id=True,
    ),
    state=ScheduleState(note="not yet", paused=True, limited_actions=True, remaining_actions=7),
)  # fmt: skip


async def test_what_is_written_is_what_is_read(client: Client) -> None:
    handle = await client.create_schedule(
        "full", FULL, memo={"why": "asked"}, search_attributes=[OWNER.value_set("us")]
    )
    assert handle.id == "full" and repr(handle) == "<ScheduleHandle 'full'>"
    described = await client.get_schedule_handle("full").describe()
    assert (described.id, await described.memo()) == ("full", {"why": "asked"})
    assert await described.memo_value("why", type_hint=str) == "asked"
    assert await described.memo_value("who", None) is None
    with pytest.raises(KeyError):
        await described.memo_value("who")
    assert described.typed_search_attributes[OWNER] == "us"
    schedule = described.schedule
    assert (schedule.spec, schedule.policy, schedule.state) == (
        FULL.spec._from_record(FULL.spec._to_record()),
        FULL.policy,
        FULL.state,
    )
    converter = DataConverter.default
    assert schedule._to_record(converter) == FULL._to_record(converter)
    action = schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert (action.workflow, action.retry_policy, action.priority) == (
        "write_report", RetryPolicy(maximum_attempts=3, non_retryable_error_types=("Bug",)),
        Priority(priority_key=2, fairness_key="tenant"),
    )  # fmt: skip
    assert (action.static_summary, action.static_details) == ("the report", "all of it")
    assert isinstance(action.typed_search_attributes, TypedSearchAttributes)
    assert action.typed_search_attributes[REGION] == "north"
    assert "write_report 'report' on 'reports'" in repr(action)
    info = described.info
    assert (info.num_actions, info.running_actions, info.recent_actions, info.last_updated_at) == (0, [], [], None)
    assert len(info.next_action_times) == 7  # as many as are left
    assert info.next_action_times[0] >= DAY
    assert info.state_size_bytes > 100


async def test_runs_by_trigger_and_by_backfill(client: Client) -> None:
    by_hand = await client.create_schedule("by hand", never(), trigger_immediately=True)
    async with Worker(client, task_queue=QUEUE, workflows=[write_report]):
        await by_hand.trigger(overlap=ScheduleOverlapPolicy.ALLOW_ALL, scheduled_at=DAY)
        result = await client.get_workflow_handle("report-2027-03-01T00:00:00Z", result_type=str).result()
        assert result == "march, 3 pages, draft"

        async def both() -> bool:
            return (await by_hand.describe()).info.num_actions == 2

        await until(both)
        past = await client.create_schedule(
            "past",
            never(
                spec=ScheduleSpec(cron_expressions=["0 * * * * 2027"]),
                policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.BUFFER_ALL),
            ),
            backfill=[ScheduleBackfill(DAY, DAY + timedelta(hours=2), ScheduleOverlapPolicy.BUFFER_ALL)],
        )
        await past.backfill(ScheduleBackfill(DAY + timedelta(hours=2), DAY + timedelta(hours=3)))

        async def all_three() -> bool:
            return len((await past.describe()).info.recent_actions) == 3

        await until(all_three)
    results = (await past.describe()).info.recent_actions
    assert [each.scheduled_at for each in results] == [DAY + timedelta(hours=hour) for hour in (1, 2, 3)]
    first = results[0].action
    assert isinstance(first, ScheduleActionExecutionStartWorkflow)
    run = await client.get_workflow_handle(first.workflow_id, run_id=first.first_execution_run_id).describe()
    assert run.id == "report-2027-03-01T01:00:00Z"
    assert run.typed_search_attributes[SearchAttributeKey.for_keyword("StepwellScheduledById")] == "past"
    with pytest.raises(ValueError, match="at least one ScheduleBackfill"):
        await past.backfill()


async def test_pausing_lists_and_deleting(client: Client) -> None:
    for name in ("b", "a", "c"):
        await client.create_schedule(
            name,
            never(spec=ScheduleSpec(cron_expressions=["@daily"]), state=ScheduleState(note="first")),
            memo={"name": name},
        )
    handle = client.get_schedule_handle("b")
    await handle.pause(note="not now")
    listed = [each async for each in await client.list_schedules(page_size=2)]
    assert [(each.id, each.schedule.state.paused, each.schedule.state.note) for each in listed] == [
        ("a", False, "first"), ("b", True, "not now"), ("c", False, "first"),
    ]  # fmt: skip
    assert listed[0].schedule.action.workflow == "write_report"
    assert listed[0].schedule.spec.cron_expressions == ["@daily"]
    assert len(listed[0].info.next_action_times) == 5 and listed[0].info.recent_actions == []
    assert await listed[2].memo() == {"name": "c"}
    found = await client.list_schedules("StepwellSchedulePaused = false AND ScheduleId != 'a'", page_size=1)
    assert (await client.count_schedules("StepwellSchedulePaused = false")).count == 2
    grouped = await client.count_schedules("GROUP BY ScheduleId")
    assert [(group.count, group.group_values) for group in grouped.groups] == [(1, (name,)) for name in "abc"]
    assert [each.id async for each in found] == ["c"]
    await handle.unpause()
    assert (await handle.describe()).schedule.state == ScheduleState(note="Unpaused by a client")
    await handle.pause()
    assert (await handle.describe()).schedule.state == ScheduleState(note="Paused by a client", paused=True)
    await handle.delete()
    with pytest.raises(RPCError, match="no such schedule") as refused:
        await handle.describe()
    assert refused.value.code == "NOT_FOUND"


async def test_pages_of_a_list(client: Client) -> None:
    for name in "abc":
        await client.create_schedule(name, never())
    pages = await client.list_schedules(page_size=2)
    assert pages.current_page is None
    await pages.fetch_next_page()
    assert [each.id for each in pages.current_page or ()] == ["a", "b"]
    token = pages.next_page_token
    await pages.fetch_next_page()
    assert [each.id for each in pages.current_page or ()] == ["c"]
    assert pages.next_page_token is None
    await pages.fetch_next_page()
    assert pages.current_page == ()
    assert [each.id async for each in await client.list_schedules(next_page_token=token)] == ["c"]


async def test_an_update_changes_what_it_says_and_nothing_else(client: Client) -> None:
    handle = await client.create_schedule("full", FULL, search_attributes=[OWNER.value_set("us")])
    before = (await handle.describe()).raw_description.schedule

    def later(input: ScheduleUpdateInput) -> ScheduleUpdate:
        input.description.schedule.spec.jitter = None
        return ScheduleUpdate(input.description.schedule)

    await handle.update(later)
    described = await handle.describe()
    assert described.raw_description.schedule.action == before.action
    assert described.raw_description.schedule.policies == before.policies
    assert described.schedule.spec.jitter is None
    assert described.typed_search_attributes[OWNER] == "us"

    async def another(input: ScheduleUpdateInput) -> ScheduleUpdate:
        action = ScheduleActionStartWorkflow("other", args=["x"], id="report", task_queue=QUEUE)
        return ScheduleUpdate(never(action), search_attributes=[OWNER.value_set("them")])

    await handle.update(another)
    described = await handle.describe()
    action = described.schedule.action
    assert isinstance(action, ScheduleActionStartWorkflow)
    assert action.workflow == "other"
    assert all(isinstance(value, Payload) for value in action.args) and len(action.args) == 1
    assert described.typed_search_attributes[OWNER] == "them"
    changed = described.info.last_updated_at

    async def nothing(input: ScheduleUpdateInput) -> None:
        return None

    await handle.update(nothing)
    assert (await handle.describe()).info.last_updated_at == changed


async def test_updates_at_the_same_time_lose_nothing(client: Client) -> None:
    handle = await client.create_schedule("counted", never())
    calls = 0

    async def one_more(input: ScheduleUpdateInput) -> ScheduleUpdate:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        schedule = input.description.schedule
        schedule.state.note = (schedule.state.note or "") + "x"
        return ScheduleUpdate(schedule)

    await asyncio.gather(*(handle.update(one_more) for _ in range(4)))
    assert (await handle.describe()).schedule.state.note == "xxxx"
    assert calls > 4


async def test_a_preview(client: Client) -> None:
    handle = await client.create_schedule("hourly", never(spec=ScheduleSpec(cron_expressions=["@hourly"])))
    times = [time async for time in handle.matching_times(DAY, DAY + timedelta(hours=2))]
    assert times == [DAY, DAY + timedelta(hours=1), DAY + timedelta(hours=2)]
    every = ScheduleSpec(intervals=[ScheduleIntervalSpec(timedelta(seconds=1))])
    none = client.get_schedule_handle("there is none")
    seconds = [time async for time in none.matching_times(DAY, DAY + timedelta(seconds=2_499), spec=every)]
    assert len(seconds) == 2_500 and len(set(seconds)) == 2_500


class Reversed(PayloadCodec):
    async def encode(self, payloads):
        return [Payload(metadata={"encoding": "reversed", **_names(each)}, data=each.data[::-1]) for each in payloads]

    async def decode(self, payloads):
        return [
            Payload(metadata={"encoding": each.metadata["was"]}, data=each.data[::-1])
            if each.metadata["encoding"] == "reversed"
            else each
            for each in payloads
        ]


def _names(payload: Payload) -> dict[str, str]:
    return {"was": payload.metadata["encoding"]}


async def test_a_codec_is_between_the_action_and_the_engine(client: Client) -> None:
    coded = Client(client.transport, data_converter=DataConverter(payload_codec=Reversed()))
    handle = await coded.create_schedule("coded", FULL, memo={"why": "asked"})
    without = await client.get_schedule_handle("coded").describe()  # such as a tool that pauses schedules
    as_stored = without.raw_description.schedule.action.start_workflow
    assert as_stored is not None
    assert isinstance(without.schedule.action, ScheduleActionStartWorkflow)
    assert isinstance(without.schedule.action.static_summary, Payload)
    await client.get_schedule_handle("coded").update(lambda input: ScheduleUpdate(input.description.schedule))
    assert as_stored.input[0].metadata == {"encoding": "reversed", "was": "json/plain"}
    assert as_stored.search_attributes["Region"].data == b'"north"'
    await handle.update(lambda input: ScheduleUpdate(input.description.schedule))
    again = await handle.describe()
    assert again.raw_description.schedule == FULL._to_record(DataConverter.default)
    assert await again.memo() == {"why": "asked"}


class Tagging(Interceptor):
    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Tagging(next)


class _Tagging(OutboundInterceptor):
    async def create_schedule(self, input: CreateScheduleInput) -> ScheduleHandle:
        input.memo = {**(input.memo or {}), "tag": 1}
        return await super().create_schedule(input)


async def test_interceptors_are_around_it(client: Client) -> None:
    tagging = Client(client.transport, interceptors=[Tagging()])
    handle = await tagging.create_schedule("tagged", never())
    assert await (await handle.describe()).memo() == {"tag": 1}
    await handle.trigger()
    await handle.backfill(ScheduleBackfill(DAY, DAY))
    await handle.pause()
    await handle.unpause()
    await handle.update(lambda input: None)
    assert [each.id async for each in await tagging.list_schedules()] == ["tagged"]
    assert [time async for time in handle.matching_times(DAY, DAY)] == []
    await handle.delete()


async def test_what_is_refused(client: Client) -> None:
    await client.create_schedule("taken", never())
    with pytest.raises(ScheduleAlreadyRunningError, match="Schedule 'taken' is there already") as taken:
        await client.create_schedule("taken", never())
    assert taken.value.id == "taken"
    with pytest.raises(RPCError, match=r"cron_expressions\[0\] '0 25 \* \* \*' cannot be read at character 3") as cron:
        await client.create_schedule("s", never(spec=ScheduleSpec(cron_expressions=["0 25 * * *"])))
    assert (cron.value.code, cron.value.retryable) == ("INVALID_ARGUMENT", False)
    with pytest.raises(RPCError, match="there is no search attribute 'Owner'"):
        await (await client.list_schedules("Owner = 'us'")).fetch_next_page()
    with pytest.raises(RPCError, match="no such schedule"):
        await client.get_schedule_handle("none").trigger()


async def test_what_is_written_wrong(client: Client) -> None:
    wrong: Any
    action: dict[str, Any] = {"id": "report", "task_queue": QUEUE}
    with pytest.raises(ArgumentError, match="takes 1 to 2 arguments"):
        await client.create_schedule("s", never(ScheduleActionStartWorkflow(write_report, args=[1, 2, 3], **action)))
    with pytest.raises(TypeError, match="one argument goes by position"):
        ScheduleActionStartWorkflow(write_report, Report("a", 1), True, **action)
    with pytest.raises(TypeError, match="cron_expressions is a list"):
        await client.create_schedule("s", never(spec=ScheduleSpec(cron_expressions="@daily")))
    wrong = 3
    with pytest.raises(TypeError, match="priority must be a Priority"):
        await client.create_schedule("s", never(ScheduleActionStartWorkflow("w", priority=wrong, **action)))
    wrong = "60"
    with pytest.raises(RPCError, match="durations are timedeltas"):
        await client.create_schedule("s", never(policy=SchedulePolicy(catchup_window=wrong)))
    handle = await client.create_schedule("s", never())
    wrong = never()
    with pytest.raises(TypeError, match="must return a ScheduleUpdate or None, not Schedule"):
        await handle.update(lambda input: wrong)
    wrong = "ANYHOW"
    with pytest.raises(RPCError, match="use a member of the enumeration"):
        await handle.trigger(overlap=wrong)
