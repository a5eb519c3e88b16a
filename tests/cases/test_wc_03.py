"""WC-03: starts, their request keys and their ids; signals that start."""

import asyncio

import pytest
from stepwell import workflow
from stepwell.api import operations as op
from stepwell.api import requests as r
from stepwell.api.errors import WorkflowExecutionAlreadyStarted
from stepwell.api.events import WorkflowExecutionSignaled
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError
from stepwell.common import WorkflowIDReusePolicy
from stepwell.exceptions import ApplicationError, WorkflowAlreadyStartedError

from tests.support.cases import EVERYWHERE, IN_PROCESS, Case, attributes, events_of, json_payload

HERE_AND_THERE = (IN_PROCESS[0], EVERYWHERE[2])
"""The cache of a worker has no part in a start."""

pytestmark = pytest.mark.parametrize("setting", HERE_AND_THERE, ids=str, indirect=True)


@workflow.defn
class Collector:
    """Ends when it has what it waits for."""

    def __init__(self) -> None:
        self.got: list[int] = []

    @workflow.signal
    def add(self, number: int) -> None:
        self.got.append(number)

    @workflow.run
    async def run(self, count: int) -> list[int]:
        await workflow.wait_condition(lambda: len(self.got) >= count)
        return self.got


@workflow.defn
class Gate:
    """Ends when it is told to, well or badly."""

    def __init__(self) -> None:
        self.ending: list[str] = []

    @workflow.signal
    def end(self, how: str) -> None:
        self.ending.append(how)

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: bool(self.ending))
        if self.ending[0] == "fail":
            raise ApplicationError("as told", type="Told")
        return self.ending[0]


@pytest.mark.parametrize("used_before", [False, True])
async def test_fifty_signals_with_start_at_once(case: Case, used_before: bool) -> None:
    """Tried (a): 50 parallel signal-with-start calls on an unused id; (b) on an id whose last run is closed.

    Right: none fails, there is one run more, and it gets all 50.
    """
    async with case.worker([Collector]):
        if used_before:
            before = await case.start(Collector.run, 0, id="collector")
            await before.result()
    handles = await asyncio.gather(
        *(
            case.start(Collector.run, 50, id="collector", start_signal="add", start_signal_args=[number])
            for number in range(50)
        )
    )
    assert len({handle.result_run_id for handle in handles}) == 1
    assert len(await runs(case)) == 1 + used_before
    async with case.worker([Collector]):
        assert sorted(await handles[0].result()) == list(range(50))


async def test_a_repeat_of_a_signal_with_start(case: Case) -> None:
    """Tried (c): a signal-with-start is repeated with its request key after the run has closed.

    Right: the first run's id comes back, there is no second run, no second signal.
    """
    request = r.SignalWithStartWorkflowRequest(
        workflow_id="collector",
        workflow_type="Collector",
        task_queue=case.task_queue,
        input=(json_payload("1"),),
        request_id="key-1",
        signal_name="add",
        signal_input=(json_payload("7"),),
    )
    first = await case.client.transport.call(op.SIGNAL_WITH_START_WORKFLOW, request)
    handle = case.client.get_workflow_handle("collector")
    async with case.worker([Collector]):
        assert await handle.result() == [7]
    again = await case.client.transport.call(op.SIGNAL_WITH_START_WORKFLOW, request)
    assert again.run_id == first.run_id
    assert await runs(case) == [first.run_id]
    assert len(attributes(await events_of(handle), WorkflowExecutionSignaled)) == 1


async def runs(case: Case) -> list[str]:
    return [execution.run_id async for execution in case.client.list_workflows()]


async def test_a_repeated_start_is_the_same_start(case: Case) -> None:
    """Tried (d): a start is repeated with its request key while the run is open, then with a fresh key; (c) the start
    is repeated with its key after the run has closed; then with a fresh key.

    Right: the same key gives the same run id and success, open or closed, and no second run; a fresh key on the open
    run is a conflict that names the run; a fresh key on the closed run is a new run.
    """
    first = await case.start_by_request("Gate", "gate", request_id="key-1")
    again = await case.start_by_request("Gate", "gate", request_id="key-1")
    assert again.run_id == first.run_id
    with pytest.raises(WorkflowExecutionAlreadyStarted) as refused:
        await case.start_by_request("Gate", "gate", request_id="key-2")
    assert refused.value.details["run_id"] == first.run_id
    handle = case.client.get_workflow_handle("gate")
    async with case.worker([Gate]):
        await handle.signal(Gate.end, "done")
        assert await handle.result() == "done"
    late = await case.start_by_request("Gate", "gate", request_id="key-1")
    assert late.run_id == first.run_id
    assert await runs(case) == [first.run_id]
    assert (await handle.describe()).status is WorkflowExecutionStatus.COMPLETED
    fresh = await case.start_by_request("Gate", "gate", request_id="key-3")
    assert fresh.run_id != first.run_id
    assert sorted(await runs(case)) == sorted([first.run_id, fresh.run_id])


async def test_plain_starts_at_once(case: Case) -> None:
    """Tried: 20 starts of one id at once, each with a key of its own, and 20 of another id, all with one key.

    Right: of the first, one succeeds and 19 are conflicts that name its run; of the second all succeed with one run id.
    Each id has one run.
    """
    keys = [f"key-{number}" for number in range(20)]
    own = await asyncio.gather(
        *(case.start_by_request("Gate", "own", request_id=key) for key in keys), return_exceptions=True
    )
    started = [reply for reply in own if not isinstance(reply, BaseException)]
    refused = [reply for reply in own if isinstance(reply, WorkflowExecutionAlreadyStarted)]
    assert (len(started), len(refused)) == (1, 19)
    assert {error.details["run_id"] for error in refused} == {started[0].run_id}
    shared = await asyncio.gather(*(case.start_by_request("Gate", "shared", request_id="key") for _ in range(20)))
    assert len({reply.run_id for reply in shared}) == 1
    assert len(await runs(case)) == 2


@pytest.mark.parametrize(
    ("ending", "policy", "allowed"),
    [
        ("done", WorkflowIDReusePolicy.REJECT_DUPLICATE, False),
        ("done", WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY, False),
        ("fail", WorkflowIDReusePolicy.REJECT_DUPLICATE, False),
        ("fail", WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY, True),
    ],
)
async def test_reuse_of_a_closed_id(case: Case, ending: str, policy: WorkflowIDReusePolicy, allowed: bool) -> None:
    """Tried (e, f): after a run that completed, and after one that failed, start again under "reject duplicate" and
    under "allow only after failure".

    Right: after completion both are refused; after failure the first is refused and the second allowed. A refusal names
    the run that is there, and leaves it as it was.
    """
    async with case.worker([Gate]):
        first = await case.start(Gate.run, id="gate")
        await first.signal(Gate.end, ending)
        if ending == "fail":
            with pytest.raises(WorkflowFailureError):
                await first.result()
        else:
            await first.result()
        if allowed:
            second = await case.start(Gate.run, id="gate", id_reuse_policy=policy)
            assert second.result_run_id != first.result_run_id
            await case.signal_by_request("gate", "end", json_payload('"again"'))
            assert await second.result() == "again"
            return
        with pytest.raises(WorkflowAlreadyStartedError) as refused:
            await case.start(Gate.run, id="gate", id_reuse_policy=policy)
    assert refused.value.run_id == first.result_run_id
    assert await runs(case) == [first.result_run_id]
