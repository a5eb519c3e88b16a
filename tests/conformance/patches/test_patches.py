"""VE-01, VE-02, VE-19: code may change under open runs behind a patch; a change without one fails the task."""

from typing import Any

import pytest
from stepwell.client import WorkflowHandle
from stepwell.replay.errors import NondeterminismError
from stepwell.replay.replayer import Replayer

from tests.conformance.patches.workflow import STEPS, before, deprecated, patched, removed
from tests.support.cases import until
from tests.support.conformance import Feature


async def begun(feature: Feature, code: Any) -> WorkflowHandle[list[str]]:
    """A run whose first step was done by this code, which is then exchanged."""
    handle = await feature.start("rounds")
    async with feature.worker([code], STEPS):

        async def waits_for_the_signal() -> bool:
            described = await handle.describe()
            return described.history_length >= 10 and described.pending_workflow_task is None

        await until(waits_for_the_signal)
    return handle


async def ended(feature: Feature, handle: WorkflowHandle[list[str]], code: Any) -> list[str]:
    async with feature.worker([code], STEPS):
        await handle.signal("go")
        return await handle.result()


async def test_a_run_from_before_the_patch_stays_on_the_old_code(feature: Feature) -> None:
    handle = await begun(feature, before)
    assert await ended(feature, handle, patched) == ["old", "old"]


async def test_a_run_behind_the_patch_takes_the_new_code(feature: Feature) -> None:
    handle = await begun(feature, patched)
    assert await ended(feature, handle, patched) == ["new", "new"]


async def test_a_patched_run_goes_on_when_the_patch_is_deprecated(feature: Feature) -> None:
    handle = await begun(feature, patched)
    assert await ended(feature, handle, deprecated) == ["new", "new"]


async def test_a_deprecated_patch_may_be_removed(feature: Feature) -> None:
    handle = await begun(feature, deprecated)
    assert await ended(feature, handle, removed) == ["new", "new"]


async def test_a_change_without_a_patch_fails_the_task_and_not_the_run(feature: Feature) -> None:
    handle = await begun(feature, before)
    await handle.signal("go")
    async with feature.worker([removed], STEPS):

        async def failing() -> str:
            task = (await handle.describe()).pending_workflow_task
            return task.last_failure.message if task is not None and task.last_failure is not None else ""

        said = await until(failing)
    assert "old_step" in said and "new_step" in said
    with pytest.raises(NondeterminismError):
        await Replayer(workflows=[removed]).replay_workflow(await handle.fetch_history())
    async with feature.worker([before], STEPS):  # the run would go on with it, in 5 s
        await handle.terminate()
