"""ER-01 to ER-04: chains of causes arrive whole; a failure fails the workflow, any other exception only its task."""

import pytest
from stepwell.client import WorkflowFailureError
from stepwell.exceptions import ActivityError, ApplicationError

from tests.conformance.failures.workflow import (
    CardProblem,
    charge,
    fails_by_itself,
    has_a_bug,
    has_a_bug_for_ever,
    lets_through,
    reads_the_chain,
    wraps,
)
from tests.support.conformance import Feature

WORKFLOWS = (lets_through, wraps, reads_the_chain, fails_by_itself)
CHARGE = ["Payment: cannot charge", "CardProblem: no such card", "KeyError: 'card 42'"]


async def chain(feature: Feature, workflow: object) -> list[BaseException]:
    """The errors that a caller sees, from the outside in."""
    async with feature.worker(WORKFLOWS, [charge]):
        handle = await feature.start(workflow)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    links: list[BaseException] = []
    error = failed.value.cause
    while error is not None:
        links.append(error)
        error = error.__cause__
    return links


async def test_an_activity_failure_has_all_its_causes(feature: Feature) -> None:
    activity, *causes = await chain(feature, lets_through)
    assert isinstance(activity, ActivityError)
    assert (activity.activity_type, activity.activity_id) == ("charge", "1")
    assert [str(cause) for cause in causes] == CHARGE
    payment = causes[0]
    assert isinstance(payment, ApplicationError) and payment.non_retryable
    assert list(payment.details) == [{"card": 42}]


async def test_a_workflow_adds_its_own(feature: Feature) -> None:
    order, activity, *causes = await chain(feature, wraps)
    assert isinstance(order, ApplicationError) and isinstance(activity, ActivityError)
    assert (order.type, order.message, list(order.details)) == ("Order", "no order", ["order 1"])
    assert [str(cause) for cause in causes] == CHARGE


async def test_a_workflow_reads_the_chain(feature: Feature) -> None:
    async with feature.worker(WORKFLOWS, [charge]):
        handle = await feature.start(reads_the_chain)
        assert await handle.result() == ["ActivityError", "Payment", "CardProblem", "KeyError"]


async def test_a_failure_fails_the_workflow(feature: Feature) -> None:
    (error,) = await chain(feature, fails_by_itself)
    assert isinstance(error, ApplicationError) and error.type == "Told"


async def test_another_exception_fails_only_the_task(feature: Feature) -> None:
    """Until the code is repaired: the run goes on then as if nothing had been."""
    async with feature.worker([has_a_bug]):
        handle = await feature.start(has_a_bug, 1)
        assert await handle.result() == "repaired"


@pytest.mark.slow
async def test_only_the_first_failed_task_is_recorded(feature: Feature) -> None:
    """The second attempt comes at once, the third 5 s later."""
    async with feature.worker([has_a_bug]):
        handle = await feature.start(has_a_bug, 2)
        assert await handle.result() == "repaired"


async def test_a_listed_exception_fails_the_workflow(feature: Feature) -> None:
    async with feature.worker([has_a_bug_for_ever], workflow_failure_exception_types=[CardProblem]):
        handle = await feature.start(has_a_bug_for_ever)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, ApplicationError) and failed.value.cause.type == "CardProblem"
