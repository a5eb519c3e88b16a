"""MS-02, MS-03, MS-05, MS-06: what comes while a task is started is held until it is over, and no close may miss it.

The first task of a run is taken by hand, so that it is open for as long as a test needs.
"""

import pytest
from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import WorkflowExecutionClosing

from tests.conformance.messages_during_a_task.workflow import Ends
from tests.support.cases import events_of, json_payload, types
from tests.support.conformance import Feature

EMPTY = CompleteWorkflowExecution(result=(json_payload("[]"),))


async def test_messages_are_held_back_while_a_task_is_started(feature: Feature) -> None:
    handle = await feature.start(Ends.run, 2)
    task = await feature.take_task()
    await handle.signal(Ends.item, "first")
    await handle.signal(Ends.item, "second")
    assert "WorkflowExecutionSignaled" not in types(await events_of(handle))
    assert await feature.complete_task(task) is CompletionOutcome.ACCEPTED
    async with feature.worker([Ends]):
        assert await handle.result() == ["first", "second"]


async def test_a_close_that_has_not_seen_a_signal_is_refused(feature: Feature) -> None:
    handle = await feature.start(Ends.run, 0)
    task = await feature.take_task()
    await handle.signal(Ends.item, "late")
    assert await feature.complete_task(task, EMPTY) is CompletionOutcome.UNSEEN_EVENTS
    async with feature.worker([Ends]):
        assert await handle.result() == ["late"]


async def test_senders_wait_when_a_close_was_refused_twice(feature: Feature) -> None:
    """Else a busy sender could keep a workflow from ever ending."""
    handle = await feature.start(Ends.run, 0)
    for name, outcome in (("first", CompletionOutcome.UNSEEN_EVENTS), ("second", CompletionOutcome.FAILED)):
        task = await feature.take_task()
        await handle.signal(Ends.item, name)
        assert await feature.complete_task(task, EMPTY) is outcome
    with pytest.raises(WorkflowExecutionClosing, match="try again"):
        await feature.signal_by_request(handle.id, "item", json_payload('"third"'))
    async with feature.worker([Ends]):
        assert await handle.result() == ["first", "second"]


async def test_a_terminated_run_keeps_what_was_held_back(feature: Feature) -> None:
    """Terminating does not wait for the task that is started; what it answers comes too late."""
    handle = await feature.start(Ends.run, 0)
    task = await feature.take_task()
    await handle.signal(Ends.item, "unseen")
    await handle.terminate(reason="enough")
    assert await feature.complete_task(task, EMPTY) is CompletionOutcome.STALE
