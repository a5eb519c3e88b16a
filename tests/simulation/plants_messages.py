"""Faults planted into updates; found as those of ``plants``."""

from typing import Any
from unittest import mock

from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.requests import UpdateWorkflowRequest, UpdateWorkflowResponse

from stepwell_server.history.builder import TransitionBuilder
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.machines import update, workflow_task
from stepwell_server.history.updates import Updates


def dropped_task_without_fence() -> Any:
    """The token of a task that was dropped, since all it showed was rejected, is good for the next one."""

    def drop(draft: TransitionBuilder) -> None:
        numbered = draft.state.numbered_seq
        original(draft)
        draft.state.numbered_seq = numbered

    original = workflow_task.drop
    return mock.patch.object(workflow_task, "drop", drop)


def update_acknowledged_before_its_commit() -> Any:
    """Who waits for admission only is told of it when the engine begins with it."""
    original = Updates.update

    async def hasty(self: Updates, key: ExecutionKey, request: UpdateWorkflowRequest) -> UpdateWorkflowResponse:
        if request.wait_for_stage is not WorkflowUpdateStage.ADMITTED or request.execution.run_id:
            return await original(self, key, request)
        state = await self._reader.state_of(key, "")
        return UpdateWorkflowResponse(
            run_id=state.run_id, update_id=request.update_id, stage=WorkflowUpdateStage.ADMITTED
        )

    return mock.patch.object(Updates, "update", hasty)


def unseen_update_lost_between_runs() -> Any:
    """Updates that a run has not seen go with it when it continues as new."""
    return mock.patch.object(update, "pass_on", return_value=None)


def repeat_admitted_again() -> Any:
    """The engine does not remember which updates have ended."""
    return mock.patch.object(update, "ended", return_value=None)
