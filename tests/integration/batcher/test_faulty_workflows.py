"""A batch among whose workflows is one that the engine cannot even read."""

from typing import Any

import pytest
from stepwell.api.batches import BatchTerminate
from stepwell.api.enums import BatchOperationState

from stepwell_server.batcher import step
from stepwell_server.history.codec import UnreadableRecord
from tests.integration.batcher.places import embedded


async def test_one_that_cannot_be_read_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "MAX_TRIES", 2)
    async with embedded() as place:
        runs = await place.runs("w-1", "w-2", "w-3")
        real = place.engine.terminate_workflow

        async def terminate_workflow(request: Any) -> Any:
            if request.execution == runs[1]:
                raise UnreadableRecord("damaged")
            return await real(request)

        place.engine.terminate_workflow = terminate_workflow  # type: ignore[method-assign]
        await place.batch(BatchTerminate(), runs)
        found = await place.over()
        assert (found.info.state, found.info.complete_operation_count) == (BatchOperationState.COMPLETED, 2)
        assert [(one.execution, one.code) for one in found.failures] == [(runs[1], "INTERNAL")]
