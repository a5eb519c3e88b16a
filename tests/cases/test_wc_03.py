"""WC-03: starts, their request keys and their ids. (Signal-with-start is not there yet.)"""

import asyncio

import pytest
from stepwell import workflow
from stepwell.api.errors import WorkflowExecutionAlreadyStarted
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError
from stepwell.common import WorkflowIDReusePolicy
from stepwell.exceptions import ApplicationError, WorkflowAlreadyStartedError

from tests.support.cases import EVERYWHERE, IN_PROCESS, Case, json_payload

HERE_AND_THERE = (IN_PROCESS[0], EVERYWHERE[2])
"""The cache of a worker has no part in a start."""

pytestmark = pytest.mark.parametrize("setting", HERE_AND_THERE, ids=str, indirect=True)


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
