"""ER-06: a workflow task that nobody answers is offered again, without an event; one answer counts."""

from datetime import timedelta

from stepwell.api.commands import CompleteWorkflowExecution
from stepwell.api.enums import CompletionOutcome

from tests.conformance.workflow_task_timeouts.workflow import ends
from tests.support.cases import json_payload
from tests.support.conformance import Feature

LATE = CompleteWorkflowExecution(result=(json_payload('"late"'),))


async def test_a_silent_workers_task_is_offered_again(feature: Feature) -> None:
    handle = await feature.start(ends, task_timeout=timedelta(seconds=1))
    task = await feature.take_task()
    async with feature.worker([ends]):
        assert await handle.result() == "ended at attempt 1 of the run"
    assert await feature.complete_task(task, LATE) is CompletionOutcome.STALE


async def test_the_first_answer_counts_whichever_attempt_gave_it(feature: Feature) -> None:
    """A slow worker's work is not thrown away while nobody else has answered."""
    handle = await feature.start(ends, task_timeout=timedelta(seconds=1))
    first = await feature.take_task()
    second = await feature.take_task()
    answer = CompleteWorkflowExecution(result=(json_payload('"ended at attempt 1 of the run"'),))
    assert await feature.complete_task(first, answer) is CompletionOutcome.ACCEPTED
    assert await feature.complete_task(second, LATE) is CompletionOutcome.STALE
    assert await handle.result() == "ended at attempt 1 of the run"
    feature.worker([ends])  # whose workflow the history is replayed with
