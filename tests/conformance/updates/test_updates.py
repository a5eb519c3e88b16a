"""MS-25 to MS-28, MS-30, MS-32: updates are taken or rejected, have one outcome, and leave what they should."""

import asyncio

import pytest
from stepwell.client import WithStartWorkflowOperation, WorkflowUpdateFailedError, WorkflowUpdateStage
from stepwell.common import WorkflowIDConflictPolicy
from stepwell.exceptions import ApplicationError

from tests.conformance.updates.workflow import Ledger
from tests.support.conformance import Feature


@pytest.mark.continued
async def test_updates_change_the_workflow_and_answer(feature: Feature) -> None:
    async with feature.worker([Ledger]):
        ledger = await feature.start(Ledger.run, 1)
        await feature.idle(ledger)
        assert await ledger.execute_update(Ledger.book, 2, id="first") == "booked 2"
        await feature.idle(ledger)
        assert await ledger.execute_update(Ledger.book, 3, id="second") == "booked 3"
        await feature.idle(ledger)
        await ledger.signal(Ledger.close)
        assert await ledger.result() == 6


async def test_a_rejected_update_leaves_nothing(feature: Feature) -> None:
    async with feature.worker([Ledger]):
        ledger = await feature.start(Ledger.run, 1)
        await feature.idle(ledger)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await ledger.execute_update(Ledger.book, 0)
        assert isinstance(refused.value.__cause__, ApplicationError)
        assert (refused.value.__cause__.message, refused.value.__cause__.type) == ("nothing to book", "Nothing")
        with pytest.raises(WorkflowUpdateFailedError, match="no handler for update 'unheard_of'"):
            await ledger.execute_update("unheard_of")
        await ledger.signal(Ledger.close)
        assert await ledger.result() == 1


async def test_one_that_fails_has_its_failure_as_outcome(feature: Feature) -> None:
    async with feature.worker([Ledger]):
        ledger = await feature.start(Ledger.run, 1)
        await feature.idle(ledger)
        for _ in range(2):
            with pytest.raises(WorkflowUpdateFailedError, match="not today"):
                await ledger.execute_update(Ledger.refuse, id="once")
        await ledger.signal(Ledger.close)
        assert await ledger.result() == 1


async def test_one_that_takes_time_is_waited_for_before_the_end(feature: Feature) -> None:
    async with feature.worker([Ledger]):
        ledger = await feature.start(Ledger.run, 1)
        await feature.idle(ledger)
        pending = await ledger.start_update(
            Ledger.book_later, args=[5, 0.2], id="later", wait_for_stage=WorkflowUpdateStage.ACCEPTED
        )
        await ledger.signal(Ledger.close)
        assert await pending.result() == "booked 5 later"
        assert await ledger.result() == 6


async def test_a_repeat_is_the_same_update(feature: Feature) -> None:
    async with feature.worker([Ledger]):
        ledger = await feature.start(Ledger.run, 0)
        await feature.idle(ledger)
        answers = await asyncio.gather(*(ledger.execute_update(Ledger.book, 7, id="one") for _ in range(4)))
        assert answers == ["booked 7"] * 4
        await feature.idle(ledger)
        await ledger.signal(Ledger.close)
        assert await ledger.result() == 7
        assert await ledger.execute_update(Ledger.book, 7, id="one") == "booked 7"
        assert await ledger.get_update_handle_for(Ledger.book, "one").result() == "booked 7"


async def test_an_update_starts_its_workflow(feature: Feature) -> None:
    start = WithStartWorkflowOperation(
        Ledger.run,
        0,
        id=feature.id_of("ledger"),
        task_queue=feature.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    async with feature.worker([Ledger]):
        answer = await feature.client.execute_update_with_start_workflow(
            Ledger.book, 9, id="nine", start_workflow_operation=start
        )
        assert answer == "booked 9"
        ledger = await start.workflow_handle()
        await feature.follow(ledger, name="ledger")
        await feature.idle(ledger)
        await ledger.signal(Ledger.close)
        assert await ledger.result() == 9


async def test_a_signal_starts_its_workflow(feature: Feature) -> None:
    ledger = await feature.start(Ledger.run, 4, start_signal="close")
    async with feature.worker([Ledger]):
        assert await ledger.result() == 4
