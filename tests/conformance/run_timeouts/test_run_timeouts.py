"""ER-10, ER-11: the run timeout ends the run, the execution timeout caps it; code does not see either."""

from datetime import timedelta
from typing import Any

import pytest
from stepwell.client import WorkflowExecutionStatus, WorkflowFailureError
from stepwell.exceptions import TimeoutError

from tests.conformance.run_timeouts.workflow import waits
from tests.support.conformance import Feature

SHORT = timedelta(seconds=0.5)


@pytest.mark.parametrize(
    "timeouts",
    [
        {"run_timeout": SHORT},
        {"execution_timeout": SHORT},
        {"run_timeout": timedelta(seconds=30), "execution_timeout": SHORT},
    ],
    ids=["run", "execution", "both"],
)
async def test_the_run_is_timed_out(feature: Feature, timeouts: dict[str, Any]) -> None:
    async with feature.worker([waits]):
        handle = await feature.start(waits, name=" and ".join(timeouts), **timeouts)
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
    assert isinstance(failed.value.cause, TimeoutError)
    assert (await handle.describe()).status is WorkflowExecutionStatus.TIMED_OUT


async def test_without_a_worker_it_is_timed_out_as_well(feature: Feature) -> None:
    handle = await feature.start(waits, run_timeout=SHORT)
    with pytest.raises(WorkflowFailureError):
        await handle.result()
