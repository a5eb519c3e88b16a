"""AC-28: activities without a workflow, by workers that do not tell them from others."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.activity import Info
from stepwell.api.enums import PendingActivityState
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.enums import WorkflowIDConflictPolicy as OnConflict
from stepwell.api.enums import WorkflowIDReusePolicy as OnReuse
from stepwell.client import ActivityFailureError, ActivityHandle, RPCError
from stepwell.common import RetryPolicy
from stepwell.exceptions import (
    ActivityAlreadyStartedError,
    ApplicationError,
    CancelledError,
    TerminatedError,
    TimeoutError,
)

from tests.conformance.standalone_activities import workflow
from tests.conformance.standalone_activities.workflow import (
    ask_a_person,
    fails_until,
    greet,
    says_who_it_is,
    works_on,
)
from tests.support.cases import until
from tests.support.conformance import Feature

LONG, SHORT = timedelta(seconds=30), timedelta(milliseconds=50)
AT_ONCE = RetryPolicy(initial_interval=timedelta(milliseconds=1))


@pytest.fixture(autouse=True)
async def _queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflow, "HANDED_OUT", asyncio.Queue())


async def handed_out() -> Info:
    return await asyncio.wait_for(workflow.HANDED_OUT.get(), 20)


async def start(feature: Feature, activity: Any, *args: Any, id: str = "one", **options: Any) -> ActivityHandle[Any]:
    options = {"start_to_close_timeout": LONG, "task_queue": feature.task_queue, **options}
    return await feature.client.start_activity(activity, args=args, id=feature.id_of(id), **options)


async def refused(call: Any) -> str:
    with pytest.raises(RPCError) as failed:
        await call
    return failed.value.code


async def test_its_result_what_it_knows_of_itself_and_what_is_known_of_it(feature: Feature) -> None:
    async with feature.worker([], [greet, says_who_it_is]):
        handle = await start(feature, greet, "Ann", memo={"of": "Ann"}, summary="greets")
        assert await handle.result() == "Hello, Ann"
        shown = await handle.describe()
        assert (shown.activity_id, shown.activity_type, shown.status) == (handle.activity_id, "greet", Status.COMPLETED)
        assert (shown.attempt, shown.run_state, shown.task_queue) == (1, None, feature.task_queue)
        assert (await shown.memo(), await shown.static_summary()) == ({"of": "Ann"}, "greets")
        assert shown.close_time is not None and shown.close_time >= shown.scheduled_time
        again = feature.client.get_activity_handle(handle.activity_id, result_type=str)
        assert await again.result() == "Hello, Ann"
        other = await start(feature, says_who_it_is, id="two")
        assert await other.result() == [other.activity_id, other.activity_run_id, "", "", feature.client.namespace]


async def test_it_is_retried_and_its_last_failure_is_its_callers(feature: Feature) -> None:
    async with feature.worker([], [fails_until]):
        assert await (await start(feature, fails_until, 3, retry_policy=AT_ONCE)).result() == 3
        twice = RetryPolicy(initial_interval=timedelta(milliseconds=1), maximum_attempts=2)
        failing = await start(feature, fails_until, 9, id="two", retry_policy=twice)
        with pytest.raises(ActivityFailureError) as failed:
            await failing.result()
        assert isinstance(failed.value.__cause__, ApplicationError) and failed.value.__cause__.type == "NotYet"
        shown = await failing.describe()
        assert (shown.status, shown.attempt) == (Status.FAILED, 2)


async def test_nobody_takes_it_in_time(feature: Feature) -> None:
    handle = await start(feature, greet, "Ann", task_queue="nobody", schedule_to_close_timeout=SHORT)
    with pytest.raises(ActivityFailureError) as failed:
        await handle.result()
    assert isinstance(failed.value.__cause__, TimeoutError)
    assert (await handle.describe()).status is Status.TIMED_OUT


async def test_it_is_asked_to_stop_and_stops(feature: Feature) -> None:
    async with feature.worker([], [works_on]):
        handle = await start(feature, works_on, heartbeat_timeout=LONG)
        await handed_out()
        await handle.cancel(reason="no more")
        with pytest.raises(ActivityFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.__cause__, CancelledError)
        shown = await handle.describe()
        assert (shown.status, shown.cancel_requested, shown.raw.cancel_reason) == (Status.CANCELED, True, "no more")
        await handle.cancel()  # it has ended: nothing changes
    unstarted = await start(feature, works_on, id="two", task_queue="nobody")
    await unstarted.cancel()
    with pytest.raises(ActivityFailureError):
        await unstarted.result()
    assert (await unstarted.describe()).status is Status.CANCELED


async def test_it_is_ended_and_erased(feature: Feature) -> None:
    async with feature.worker([], [works_on]):
        handle = await start(feature, works_on, heartbeat_timeout=LONG)
        await handed_out()
        await handle.terminate(reason="enough")
        with pytest.raises(ActivityFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.__cause__, TerminatedError) and "enough" in str(failed.value.__cause__)
        assert await refused(handle.terminate()) == "FAILED_PRECONDITION"
        await handle.delete()

        async def is_gone() -> bool:
            try:
                await handle.describe()
            except RPCError as error:
                return error.code == "NOT_FOUND"
            return False

        await until(is_gone)
        assert await refused(handle.result()) == "NOT_FOUND"


async def test_an_id_is_used_once_at_a_time_and_again_as_the_policies_say(feature: Feature) -> None:
    async with feature.worker([], [works_on, greet]):
        first = await start(feature, works_on, heartbeat_timeout=LONG)
        await handed_out()
        with pytest.raises(ActivityAlreadyStartedError) as taken:
            await start(feature, greet, "Ann")
        assert taken.value.run_id == first.activity_run_id
        same = await start(feature, greet, "Ann", id_conflict_policy=OnConflict.USE_EXISTING)
        assert same.activity_run_id == first.activity_run_id
        await first.terminate()
        second = await start(feature, greet, "Ann", id_reuse_policy=OnReuse.ALLOW_DUPLICATE_FAILED_ONLY)
        assert await second.result() == "Hello, Ann"
        for policy in (OnReuse.ALLOW_DUPLICATE_FAILED_ONLY, OnReuse.REJECT_DUPLICATE):
            with pytest.raises(ActivityAlreadyStartedError):
                await start(feature, greet, "Ann", id_reuse_policy=policy)
        third = await start(feature, greet, "Eve")
        assert await third.result() == "Hello, Eve"
        earlier = feature.client.get_activity_handle(first.activity_id, activity_run_id=first.activity_run_id)
        assert (await earlier.describe()).status is Status.TERMINATED


async def test_others_finish_it_by_its_ids_and_it_can_be_paused(feature: Feature) -> None:
    async with feature.worker([], [ask_a_person]):
        handle = await start(feature, ask_a_person, retry_policy=AT_ONCE)
        info = await handed_out()
        by_id = feature.client.get_async_activity_handle(activity_id=handle.activity_id, run_id=info.activity_run_id)
        await by_id.heartbeat("asked")
        assert await (await handle.describe()).heartbeat_details() == ["asked"]
        await handle.pause(reason="wait")
        await by_id.fail(ApplicationError("out of office"))

        async def is_paused() -> bool:
            return (await handle.describe()).run_state is PendingActivityState.PAUSED

        await until(is_paused)
        assert (await handle.describe()).raw.pause_reason == "wait"
        await handle.unpause()
        assert (await handed_out()).activity_run_id == handle.activity_run_id
        await by_id.complete("yes")
        assert await handle.result() == "yes"
        assert await refused(by_id.complete("no")) == "NOT_FOUND"


async def test_lists_and_counts_have_activities_or_workflows_and_never_both(feature: Feature) -> None:
    async with feature.worker([], [greet]):
        handles = [await start(feature, greet, name, id=name) for name in ("Ann", "Bob")]
        for handle in handles:
            await handle.result()
        client, mine = feature.client, f"TaskQueue = '{feature.task_queue}'"

        async def both_are_listed() -> bool:
            found = [each async for each in client.list_activities(mine)]
            return {each.activity_id for each in found} == {handle.activity_id for handle in handles} and all(
                each.status is Status.COMPLETED for each in found
            )

        await until(both_are_listed)
        one = [each async for each in client.list_activities(f"{mine} AND ActivityId = '{handles[0].activity_id}'")]
        assert [each.activity_run_id for each in one] == [handles[0].activity_run_id]
        counted = await client.count_activities(f"{mine} GROUP BY ExecutionStatus")
        assert [(list(group.group_values), group.count) for group in counted.groups] == [(["COMPLETED"], 2)]
        assert [each async for each in client.list_workflows(mine)] == []
        assert await refused(client.get_workflow_handle(handles[0].activity_id).describe()) == "NOT_FOUND"
        assert await refused(client.count_activities("WorkflowType = 'greet'")) == "INVALID_ARGUMENT"
