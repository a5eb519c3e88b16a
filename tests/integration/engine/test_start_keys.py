"""LC-48: of the starts with one deduplication key, whatever their ids, one counts; through deaths and races."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.commands import ContinueAsNewWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import DeduplicationPolicy as Policy
from stepwell.api.enums import WorkflowExecutionStatus as Status
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from stepwell.api.errors import PayloadTooLarge, Unavailable, WorkflowExecutionAlreadyStarted

from stepwell_server.common.principals import acting
from stepwell_server.history.requests import NO_PACE
from stepwell_server.history.start_key_records import KIND, record_id
from stepwell_server.history.start_keys import StartKeys
from tests.support.engine import QUEUE, payload
from tests.support.scheduled import HOUR, T0, Scheduled, scheduled

MINUTE = timedelta(minutes=1)


async def start(
    s: Scheduled,
    workflow_id: str,
    policy: Policy = Policy.FAIL,
    ttl: timedelta | None = None,
    key: str = "invoice 7",
    **more: Any,
) -> r.StartWorkflowResponse:
    request = r.StartWorkflowRequest(
        workflow_id=workflow_id,
        workflow_type="order",
        task_queue=QUEUE,
        deduplication=r.Deduplication(key=key, policy=policy, ttl=ttl),
        **more,
    )
    return await s.call("StartWorkflow", request)  # type: ignore[no-any-return]


async def refused(s: Scheduled, workflow_id: str, **more: Any) -> WorkflowExecutionAlreadyStarted:
    with pytest.raises(WorkflowExecutionAlreadyStarted) as caught:
        await start(s, workflow_id, **more)
    return caught.value


async def waits(s: Scheduled) -> None:
    """Its workflow code has run as far as it goes: what comes in is an event at once."""
    await s.driver.complete((await s.driver.take()).task_token)


async def stored(s: Scheduled, key: str = "invoice 7") -> Any:
    return await s.backend.control.get(KIND, "default", record_id(key))


async def test_a_run_says_who_has_asked_for_it() -> None:
    async with scheduled() as s:
        with acting("alice"):
            await start(s, "a")
        (started, *_) = await s.driver.history("a")
        assert getattr(started.attributes, "principal") == "alice"  # noqa: B009


async def test_a_key_is_held_until_its_workflow_ends() -> None:
    async with scheduled() as s:
        first = await start(s, "a")
        assert first.started and first.first_execution_run_id == first.run_id
        refusal = await refused(s, "b")
        assert refusal.details["workflow_id"] == "a" and refusal.details["run_id"] == first.run_id
        assert "held by workflow 'a'" in refusal.message and "until that one ends" in refusal.message
        met = await start(s, "b", Policy.USE_EXISTING)
        assert (met.run_id, met.started, met.workflow_id) == (first.run_id, False, "a")
        assert (await start(s, "c", key="invoice 8")).started
        assert await s.started() == ["a", "c"]
        await s.finish()
        assert (await start(s, "b")).started
        assert (await refused(s, "d")).details["workflow_id"] == "b"


async def test_the_whole_chain_of_runs_holds_it() -> None:
    async with scheduled() as s:
        first = await start(s, "a")
        task = await s.driver.take()
        await s.driver.complete(
            task.task_token, ContinueAsNewWorkflowExecution(workflow_type="order", task_queue=QUEUE)
        )
        met = await start(s, "b", Policy.USE_EXISTING)
        assert met.first_execution_run_id == first.run_id and met.run_id != first.run_id


async def test_a_repeat_gets_its_own_run_also_when_that_is_over() -> None:
    async with scheduled() as s:
        first = await start(s, "a", request_id="one")
        assert await start(s, "a", request_id="one") == first
        await s.finish()
        assert await start(s, "a", request_id="one") == first
        assert await s.started() == ["a"]


async def test_the_newest_start_may_cancel_the_one_before() -> None:
    async with scheduled() as s:
        first = await start(s, "a")
        await waits(s)
        second = await start(s, "b", Policy.CANCEL_EXISTING)
        assert second.started
        events = [event.event_type for event in await s.driver.history("a", first.run_id)]
        assert "WorkflowExecutionCancelRequested" in events
        assert (await refused(s, "c")).details["workflow_id"] == "b"


async def test_a_start_that_is_refused_leaves_the_key_as_it_was() -> None:
    unique = {"workflow_id_reuse_policy": WorkflowIDReusePolicy.REJECT_DUPLICATE}
    async with scheduled() as s:
        await s.driver.start("b")
        await s.finish()
        assert "REJECT_DUPLICATE" in (await refused(s, "b", **unique)).message
        assert await stored(s) is None
        first = await start(s, "a")
        await waits(s)
        assert "REJECT_DUPLICATE" in (await refused(s, "b", policy=Policy.CANCEL_EXISTING, **unique)).message
        assert (await refused(s, "c")).details["run_id"] == first.run_id
        assert len(await s.driver.history("a")) == 4  # and nobody has asked it to cancel


async def test_a_time_slides_with_every_start_whether_the_workflow_runs_or_not() -> None:
    async with scheduled() as s:
        await start(s, "a", ttl=HOUR)
        await s.finish()
        for number in range(1, 4):
            await s.at(T0 + number * 50 * MINUTE)
            refusal = await refused(s, "b", ttl=HOUR)
        assert "held by workflow 'a'" in refusal.message and "2026-11-30 15:30:36 UTC" in refusal.message
        await s.at(T0 + 200 * MINUTE)
        assert not (await start(s, "b", Policy.USE_EXISTING)).started  # says no time of its own
        await s.at(T0 + 211 * MINUTE)
        assert await stored(s) is None  # went by itself
        assert (await start(s, "b", ttl=HOUR)).started


async def test_a_burst_of_duplicates_is_one_run_and_few_writes() -> None:
    async with scheduled() as s:
        starts = [start(s, f"w-{number}", Policy.USE_EXISTING, ttl=MINUTE) for number in range(50)]
        answers = await asyncio.gather(*starts)
        assert len(await s.started()) == 1
        assert [answer.started for answer in answers].count(True) == 1
        assert len({answer.run_id for answer in answers}) == 1
        assert s.control.writes == 2


@pytest.mark.parametrize("death", range(1, 5))
@pytest.mark.parametrize("woken", [False, True])
async def test_whichever_write_it_dies_at_one_run_has_the_key(death: int, woken: bool) -> None:
    async with scheduled() as s:
        s.control.dies = death
        with pytest.raises(Unavailable):
            await start(s, "a", request_id="one")
        s.control.dies = 0
        claimed = await stored(s) is not None
        if woken:
            await s.at(T0 + MINUTE)
            assert await s.started() == (["a"] if claimed else [])
        met = await start(s, "b", Policy.USE_EXISTING)
        assert met.started != claimed and met.workflow_id == ("a" if claimed else "")
        assert await s.started() == (["a"] if claimed else ["b"])
        if claimed:
            again = await start(s, "a", request_id="one")
            assert again.started and again.run_id == met.run_id


async def test_who_stood_still_before_its_start_finds_the_run_that_others_made_of_it() -> None:
    async with scheduled() as s:
        other = StartKeys(s.backend.control, s.engine.outside_runs, s.clock, s.backend.ids, NO_PACE)
        met: list[r.StartWorkflowResponse] = []

        async def another_process() -> None:
            """Comes between the first one's start and its last write, and takes the claim for one left by a crash."""
            asked = r.Deduplication(key="invoice 7", policy=Policy.USE_EXISTING)
            request = r.StartWorkflowRequest(workflow_id="b", workflow_type="order", task_queue=QUEUE)
            met.append(await other.start(request, asked))

        s.control.conflicts = [_nothing, another_process]
        first = await start(s, "a", request_id="one")
        assert first.started and [answer.run_id for answer in met] == [first.run_id]
        assert await s.started() == ["a"]


async def _nothing() -> None:
    """Before the first write."""


async def test_a_claim_whose_start_is_refused_is_no_ones() -> None:
    """The process died behind its claim, and meanwhile somebody else has taken the workflow id."""
    async with scheduled() as s:
        s.control.dies = 2
        with pytest.raises(Unavailable):
            await start(s, "a", request_id="one")
        s.control.dies = 0
        await s.driver.start("a")
        assert (await start(s, "b")).started
        assert (await refused(s, "a", request_id="one")).details["workflow_id"] == "b"


async def test_a_start_that_uses_an_open_run_holds_the_key_with_it() -> None:
    async with scheduled() as s:
        run_id = await s.driver.start("a")
        await waits(s)
        use = {"workflow_id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING}
        assert (await start(s, "a", **use)).run_id == run_id
        assert (await refused(s, "b")).details["run_id"] == run_id
        again = await start(s, "a", Policy.CANCEL_EXISTING, **use)
        assert again.run_id == run_id
        assert len(await s.driver.history("a")) == 4  # it does not cancel itself


async def test_records_go_when_their_workflows_are_over_and_stay_while_they_run() -> None:
    async with scheduled() as s:
        await start(s, "a")
        assert len((await stored(s)).value) < 400  # the start is not kept
        for days in range(1, 5):
            await s.at(T0 + timedelta(days=days))
        assert await stored(s) is not None
        execution = WorkflowExecution(workflow_id="a")
        await s.call("TerminateWorkflow", r.TerminateWorkflowRequest(execution=execution))
        await s.at(T0 + timedelta(days=9))
        assert await stored(s) is None
        assert await s.due() == []


async def test_what_is_too_large_to_be_kept_with_a_key_is_refused_before_anything_is_written() -> None:
    async with scheduled() as s:
        with pytest.raises(PayloadTooLarge, match=r"deduplication key has .* limit of 300000"):
            await start(s, "a", input=payload("x" * 300_000))
        assert s.control.writes == 0
        assert (await start(s, "a", input=payload("x" * 290_000))).started


async def test_a_deleted_workflow_holds_no_key() -> None:
    async with scheduled() as s:
        await start(s, "a")
        await s.call("DeleteWorkflow", r.DeleteWorkflowRequest(execution=WorkflowExecution(workflow_id="a")))
        assert (await start(s, "b")).started
        assert (await s.driver.describe("b")).info.status is Status.RUNNING


async def test_keys_go_with_their_namespace() -> None:
    async with scheduled() as s:
        await s.call("RegisterNamespace", r.RegisterNamespaceRequest(namespace="shop"))
        await start(s, "a", namespace="shop", ttl=HOUR)
        assert len(await s.backend.control.list(KIND, "shop", limit=9)) == 1
        await s.call("DeprecateNamespace", r.DeprecateNamespaceRequest(namespace="shop"))
        await s.call("DeleteNamespace", r.DeleteNamespaceRequest(namespace="shop", force=True))
        for seconds in range(0, 12, 2):
            await s.at(T0 + timedelta(seconds=seconds))
            await s.settle()
        assert await s.backend.control.list(KIND, "shop", limit=9) == []
