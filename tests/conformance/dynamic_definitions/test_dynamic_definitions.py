"""PM-05, PM-06: what has no definition of its own goes to the dynamic one."""

import pytest
from stepwell.client import WorkflowQueryFailedError

from tests.conformance.dynamic_definitions.workflow import Interpreter, known, named, perform
from tests.support.cases import until
from tests.support.conformance import Feature


async def test_a_dynamic_workflow_with_dynamic_handlers_and_activities(feature: Feature) -> None:
    async with feature.worker([Interpreter, named], [perform, known]):
        handle = await feature.start("greet", "ann", 2)
        await until(lambda: handle.query("greet"))
        await feature.idle(handle)
        await handle.signal("known")
        await until(lambda: handle.query("known"))
        await feature.idle(handle)
        await handle.signal("close")
        assert await handle.result() == ["greet['ann', 2]", "known"]


async def test_a_definition_of_that_name_comes_first(feature: Feature) -> None:
    async with feature.worker([Interpreter, named], [perform]):
        handle = await feature.start("named")
        assert await handle.result() == "named"
        with pytest.raises(WorkflowQueryFailedError):
            await handle.query("greet")
