"""Batch operations (LC-43, LC-44) on SQLite and on the emulated DynamoDB: each workflow once, whatever dies."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from stepwell.api import requests as r
from stepwell.api.batches import (
    BatchCancel,
    BatchDelete,
    BatchReset,
    BatchSignal,
    BatchTerminate,
    BatchUnpause,
    BatchUpdateOptions,
)
from stepwell.api.common import Priority, WorkflowExecution
from stepwell.api.enums import BatchOperationState, ResetType
from stepwell.api.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from stepwell.api.namespaces import NamespaceLimits

from stepwell_server.common.control import ControlRecord
from stepwell_server.common.principals import acting
from stepwell_server.history.ports import StoreUnavailable
from tests.integration.batcher.places import Place, embedded, on_aws
from tests.support.engine import ShiftedClock, payload

State = BatchOperationState


@pytest.fixture(params=["sqlite", "dynamodb"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "dynamodb":
        request.getfixturevalue("cell")
    return str(request.param)


@pytest.fixture
async def place(request: pytest.FixtureRequest, kind: str) -> AsyncIterator[Place]:
    async with embedded() if kind == "sqlite" else on_aws(request.getfixturevalue("cell")) as place:
        yield place


def ids(count: int) -> list[str]:
    return [f"order-{number}" for number in range(count)]


async def test_a_list_is_terminated_with_progress_and_a_report_of_failures(place: Place) -> None:
    runs = await place.runs(*ids(8))
    closed, unknown = runs[3], WorkflowExecution(workflow_id="never")
    await place.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=closed))
    with acting("alice"):
        await place.batch(BatchTerminate(), [*runs, unknown], reason="the warehouse burnt down", identity="ops")
    found = await place.over()
    info = found.info
    assert (info.state, info.operation_type, found.reason) == (State.COMPLETED, "TERMINATE", "the warehouse burnt down")
    assert (info.total_operation_count, info.complete_operation_count, info.failure_operation_count) == (9, 8, 1)
    assert info.close_time is not None and found.identity == "ops"
    (failure,) = found.failures
    assert failure.execution.workflow_id == "never" and failure.code == "NOT_FOUND" and "never" in failure.message
    for run in runs:
        assert await place.status(run) == "TERMINATED"
    last = (await place.history(runs[0]))[-1]
    assert (last.attributes.reason, last.attributes.identity) == ("the warehouse burnt down", "ops")
    assert last.attributes.principal == "alice"


async def test_without_a_run_the_newest_is_meant_and_signals_come_once(place: Place) -> None:
    runs = await place.runs(*ids(3))
    named = [WorkflowExecution(workflow_id=run.workflow_id) for run in runs]
    await place.batch(BatchSignal(signal_name="hurry", input=payload("now")), named)
    assert (await place.over()).info.complete_operation_count == 3
    for run in runs:
        assert [(event.signal_name, event.input) for event in await place.signals(run)] == [("hurry", payload("now"))]


async def test_a_namespace_that_takes_less_by_now_ends_its_batch_and_says_why(place: Place) -> None:
    runs = await place.runs(*ids(2))
    limits = NamespaceLimits(max_payload_bytes=1_024)
    await place.engine.namespaces.update(r.UpdateNamespaceRequest(namespace="default", limits=limits))
    await place.batch(BatchSignal(signal_name="hurry", input=payload("x" * 2_000)), runs)
    found = await place.over()
    assert found.info.state is State.FAILED and found.info.complete_operation_count == 0
    assert "operation.input has 2" in found.close_reason and "above the limit of 1024" in found.close_reason
    assert await place.signals(runs[0]) == []


async def test_every_operation_of_workflows(place: Place) -> None:
    one, two = await place.runs(*ids(2))
    await place.engine.pause_workflow(r.PauseWorkflowRequest(execution=one))
    await place.batch(BatchUnpause(), [one, two], "unpause")
    found = await place.over("unpause")
    assert (found.info.complete_operation_count, found.failures[0].code) == (1, "FAILED_PRECONDITION")
    change: Any = {"workflow_execution_options": {"priority": Priority(priority_key=1)}}
    options = r.WorkflowExecutionOptions(**change["workflow_execution_options"])
    await place.batch(
        BatchUpdateOptions(workflow_execution_options=options, update_mask="priority"), [one, two], "options"
    )
    await place.over("options")
    await place.batch(BatchCancel(), [one, two], "cancel", reason="enough")
    await place.over("cancel")
    for run in (one, two):
        head = await place.engine.describe_workflow(r.DescribeWorkflowRequest(execution=run))
        assert head.cancel_requested
    await place.batch(BatchReset(reset_type=ResetType.FIRST_WORKFLOW_TASK), [one], "reset")
    assert (await place.over("reset")).info.state is State.COMPLETED
    await place.batch(BatchDelete(), [one, two], "delete")
    assert (await place.over("delete")).info.complete_operation_count == 2
    for run in (one, two):
        with pytest.raises(NotFound):
            await place.status(run)
    listed = await place.call("ListBatchOperations", r.ListBatchOperationsRequest(page_size=3))
    more = await place.call("ListBatchOperations", r.ListBatchOperationsRequest(next_page_token=listed.next_page_token))
    names = [info.job_id for info in (*listed.operations, *more.operations)]
    assert names == ["cancel", "delete", "options", "reset", "unpause"] and not more.next_page_token


async def test_a_filter_is_gone_through_page_by_page_and_narrowed_to_what_is_open(place: Place) -> None:
    runs = await place.runs(*ids(7))
    await place.runs("other", workflow_type="other")
    await place.engine.terminate_workflow(r.TerminateWorkflowRequest(execution=runs[0], reason="before"))
    await place.engine.pause_workflow(r.PauseWorkflowRequest(execution=runs[1]))
    more = {"query": "WorkflowType = 'order' OR WorkflowType = 'none'", "max_operations_per_second": 3.0}
    await place.batch(BatchTerminate(), reason="batch", **more)
    found = await place.over()
    assert (found.info.total_operation_count, found.info.complete_operation_count) == (6, 6)
    assert "ExecutionStatus IN ('Running', 'Paused')" in found.query
    reasons = [(await place.history(run))[-1].attributes.reason for run in runs]
    assert reasons == ["before", *["batch"] * 6]
    assert await place.status(WorkflowExecution(workflow_id="other")) == "RUNNING"


async def test_runs_that_a_batch_makes_are_not_taken_again() -> None:
    """Of a filter that they satisfy too, in bursts of two."""
    async with embedded() as place:
        runs = await place.runs(*ids(5))
        await place.work(5)
        reset = BatchReset(reset_type=ResetType.FIRST_WORKFLOW_TASK)
        await place.batch(reset, query="WorkflowType = 'order'", max_operations_per_second=2.0)
        found = await place.over()
        counts = (found.info.total_operation_count, found.info.complete_operation_count, found.failures)
        assert counts == (5, 5, ())
        listed = await place.engine.list_workflows(r.ListWorkflowsRequest())
        assert len(listed.executions) == 10
        assert {run.run_id for run in runs} < {info.execution.run_id for info in listed.executions}


async def test_a_reset_that_was_cut_off_is_made_once(tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with embedded(tmp_path / "b.db", clock) as place:
        runs = await place.runs(*ids(3))
        await place.work(3)
        real = place.engine.reset_workflow
        done = asyncio.Event()

        async def reset_workflow(request: Any) -> Any:
            await real(request)
            done.set()
            await asyncio.Event().wait()

        place.engine.reset_workflow = reset_workflow  # type: ignore[method-assign]
        await place.batch(BatchReset(reset_type=ResetType.FIRST_WORKFLOW_TASK), runs)
        async with asyncio.timeout(30):
            await done.wait()
    clock.shift = timedelta(minutes=2)
    async with embedded(tmp_path / "b.db", clock) as place:
        assert (await place.over()).info.complete_operation_count == 3
        assert len((await place.engine.list_workflows(r.ListWorkflowsRequest())).executions) == 6


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("WorkflowTyp = 'x'", "WorkflowTyp"),
        ("WorkflowType = ", "query"),
        ("WorkflowType = 'x') OR (WorkflowType = 'y'", "query"),
        ("WorkflowType = 'x' ORDER BY StartTime", "cannot be narrowed .* without ORDER BY"),
    ],
)
async def test_a_filter_that_cannot_be_is_refused_before_anything_is_there(query: str, message: str) -> None:
    async with embedded() as place:
        with pytest.raises(InvalidArgument, match=message):
            await place.batch(BatchTerminate(), query=query)
        with pytest.raises(NotFound):
            await place.described()


async def test_one_at_a_time_in_a_namespace_until_it_is_over_or_stopped(place: Place) -> None:
    runs = await place.runs(*ids(4))
    slow = {"max_operations_per_second": 0.5}
    await place.batch(BatchSignal(signal_name="slow"), runs, "first", **slow)
    await place.over("first", lambda found: found.info.complete_operation_count > 0)
    with pytest.raises(FailedPrecondition, match=r"'first' is running .* stop it"):
        await place.batch(BatchTerminate(), runs, "second")
    with pytest.raises(NotFound):
        await place.described("second")
    await place.batch(BatchSignal(signal_name="slow"), runs, "first", **slow)  # a repeat
    with pytest.raises(FailedPrecondition, match="already, another one"):
        await place.batch(BatchSignal(signal_name="other"), runs, "first", **slow)
    with pytest.raises(FailedPrecondition, match="already, another one"):
        await place.batch(BatchSignal(signal_name="slow"), runs[::-1], "first", **slow)
    stop = r.StopBatchOperationRequest(job_id="first", reason="wrong ones", identity="ops")
    await place.call("StopBatchOperation", stop)
    await place.call("StopBatchOperation", stop)
    found = await place.described("first")
    assert (found.info.state, found.close_reason) == (State.STOPPED, "stopped by ops: wrong ones")
    await place.batch(BatchTerminate(), runs, "second")
    assert (await place.over("second")).info.complete_operation_count == 4
    done = (await place.described("first")).info.complete_operation_count
    signalled = [run for run in runs if await place.signals(run)]
    assert len(signalled) == done < 4


async def test_two_wake_ups_at_once_do_it_once(place: Place) -> None:
    runs = await place.runs(*ids(5))
    await place.batch(BatchSignal(signal_name="hurry"), runs)
    now = place.backend.clock.now()
    await asyncio.gather(*(place.batches("default", "job", now) for _ in range(3)))
    found = await place.over()
    assert (found.info.complete_operation_count, found.info.failure_operation_count) == (5, 0)
    await place.batches("default", "job", place.backend.clock.now())
    await place.batches("default", "another", place.backend.clock.now())


async def crashed(place: Place, after: int) -> None:
    """As if the process ended behind so many acts of a burst: all calls hang from then on."""
    acts = 0
    real = place.engine.signal_workflow

    async def signal_workflow(request: Any) -> Any:
        nonlocal acts
        acts += 1
        answer = await real(request)
        if acts > after:
            await asyncio.Event().wait()
        return answer

    place.engine.signal_workflow = signal_workflow  # type: ignore[method-assign]


@pytest.mark.parametrize("after", [0, 3, 11])
async def test_killed_in_the_middle_another_process_does_the_rest_and_each_once(tmp_path: Path, after: int) -> None:
    clock = ShiftedClock()
    async with embedded(tmp_path / "b.db", clock) as place:
        runs = await place.runs(*ids(14))
        await crashed(place, after)
        named = [WorkflowExecution(workflow_id=run.workflow_id) for run in runs]
        await place.batch(BatchSignal(signal_name="hurry"), named)

        async def begun() -> bool:
            return len([run for run in runs if await place.signals(run)]) > after

        async with asyncio.timeout(30):
            while not await begun():
                await asyncio.sleep(0.02)
    clock.shift = timedelta(minutes=2)
    async with embedded(tmp_path / "b.db", clock) as place:
        found = await place.over()
        assert (found.info.state, found.info.complete_operation_count) == (State.COMPLETED, 14)
        for run in runs:
            assert len(await place.signals(run)) == 1


async def test_a_repeat_behind_a_crash_never_reaches_a_run_that_was_started_meanwhile(tmp_path: Path) -> None:
    """The ids were resolved before anything was done, and a run that is gone by then is done."""
    clock = ShiftedClock()
    async with embedded(tmp_path / "b.db", clock) as place:
        await place.runs("order-1")
        real = place.engine.delete_workflow

        async def delete_workflow(request: Any) -> Any:
            await real(request)
            await asyncio.Event().wait()

        place.engine.delete_workflow = delete_workflow  # type: ignore[method-assign]
        await place.batch(BatchDelete(), [WorkflowExecution(workflow_id="order-1")])
        async with asyncio.timeout(30):
            while await place.backend.log.head(("default", "order-1")) is not None:  # type: ignore[arg-type]
                await asyncio.sleep(0.02)
        (second,) = await place.runs("order-1")
    clock.shift = timedelta(minutes=2)
    async with embedded(tmp_path / "b.db", clock) as place:
        found = await place.over()
        assert (found.info.complete_operation_count, found.info.failure_operation_count) == (1, 0)
        assert await place.status(second) == "RUNNING"


async def test_a_start_that_broke_off_at_any_write_is_finished_by_its_repeat(kind: str, place: Place) -> None:
    runs = await place.runs(*ids(2))
    control: Any = place.backend.control
    real, died = control.put, 0
    for number in range(9):
        puts = 0

        async def put(record: ControlRecord, *, arm: Any = None, number: int = number) -> ControlRecord:
            nonlocal puts
            puts += 1
            if puts == number + 1:
                raise StoreUnavailable("dead")
            return await real(record, arm=arm)

        place.batches._store.put = put  # type: ignore[method-assign]
        try:
            await place.batch(BatchTerminate(), runs)
        except (StoreUnavailable, Unavailable):
            died += 1
            continue
        finally:
            place.batches._store.put = real  # type: ignore[method-assign]
        break
    assert died >= 3
    assert (await place.over()).info.complete_operation_count == 2


async def test_a_job_that_is_gone_before_it_begins_is_not_said_to_run() -> None:
    """Two calls for one job, of which one found another batch running, and the other one did not any more."""
    async with embedded() as place:
        (run,) = await place.runs("order-1")
        control, real = place.backend.control, place.batches._store.put

        async def put(record: ControlRecord, *, arm: Any = None) -> ControlRecord:
            if record.kind == "batch-turn":
                job = await control.get("batch", "default", "job")
                assert job is not None
                await control.delete(job)
            return await real(record, arm=arm)

        place.batches._store.put = put  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="was taken away while it began"):
            await place.batch(BatchTerminate(), [run])
        place.batches._store.put = real  # type: ignore[method-assign]
        await place.batch(BatchTerminate(), [run])
        assert (await place.over()).info.complete_operation_count == 1


async def test_the_longest_ids_fit(place: Place) -> None:
    longest = [WorkflowExecution(workflow_id=f"{number:04d}" + "x" * 996, run_id="r" * 100) for number in range(251)]
    await place.batch(BatchTerminate(), longest, "j" * 1_000)
    found = await place.over("j" * 1_000, holds=lambda described: described.info.failure_operation_count > 0)
    assert found.info.total_operation_count == 251


@pytest.mark.parametrize(("writes", "state"), [(1, State.FAILED), (2, State.COMPLETED), (3, State.COMPLETED)])
async def test_a_start_that_nobody_repeats_comes_to_an_end(tmp_path: Path, writes: int, state: State) -> None:
    """Behind the job, the list, the turn: without its list it cannot go on, and says so."""
    clock = ShiftedClock()
    async with embedded(tmp_path / "b.db", clock) as place:
        runs = await place.runs("order-1")
        real, puts = place.batches._store.put, 0

        async def put(record: ControlRecord, *, arm: Any = None) -> ControlRecord:
            nonlocal puts
            puts += 1
            if puts > writes:
                raise StoreUnavailable("dead")
            return await real(record, arm=arm)

        place.batches._store.put = put  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await place.batch(BatchTerminate(), runs)
        place.batches._store.put = real  # type: ignore[method-assign]
        assert (await place.described()).info.state is State.RUNNING
        clock.shift = timedelta(seconds=11)
        found = await place.over()
        assert found.info.state is state and bool(found.close_reason) == (state is State.FAILED)
        await place.batch(BatchTerminate(), runs, "next")
        assert (await place.over("next")).info.complete_operation_count == 1


async def test_a_job_is_kept_for_a_week_and_then_gone_with_its_list(tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with embedded(tmp_path / "b.db", clock) as place:
        await place.batch(BatchTerminate(), await place.runs("order-1"))
        await place.over()
    clock.shift = timedelta(days=7, minutes=1)
    async with embedded(tmp_path / "b.db", clock) as place:

        async def left() -> list[ControlRecord]:
            control = place.backend.control
            return [
                *await control.list("batch", "default", limit=9),
                *await control.list("batch-list", "default", limit=9),
            ]

        async with asyncio.timeout(30):
            while await left():
                await asyncio.sleep(0.02)


async def test_what_is_unavailable_for_a_moment_is_done_later() -> None:
    async with embedded() as place:
        runs = await place.runs(*ids(3))
        real, failures = place.engine.terminate_workflow, [Unavailable("full"), Unavailable("full")]

        async def terminate_workflow(request: Any) -> Any:
            if failures:
                raise failures.pop()
            return await real(request)

        place.engine.terminate_workflow = terminate_workflow  # type: ignore[method-assign]
        await place.batch(BatchTerminate(), runs)
        found = await place.over()
        assert (found.info.complete_operation_count, found.failures) == (3, ())
