"""Faults planted into how a worker runs local activities; found as those of ``plants``."""

from dataclasses import replace
from typing import Any
from unittest import mock

from stepwell.api.commands import RecordMarker
from stepwell.api.requests import WorkflowTask
from stepwell.worker import query_answers
from stepwell.worker.cached_run import CachedRun
from stepwell.worker.local_turns import LocalTurns, _Turn


def local_result_recorded_twice() -> Any:
    """A turn that is kept alive says again in its next workflow task what it has recorded."""
    go_on = LocalTurns._go_on

    async def again(self: LocalTurns, cached: CachedRun, turn: _Turn, task: WorkflowTask) -> None:
        said = [command for command in turn.result.commands if isinstance(command, RecordMarker)]
        await go_on(self, cached, turn, task)
        turn.result = replace(turn.result, commands=(*said, *turn.result.commands))

    return mock.patch.object(LocalTurns, "_go_on", again)


def runner_awaited_under_the_lock() -> Any:
    """A query waits for the run's lock, which is held until the local activities have ended."""
    return mock.patch.object(query_answers, "between_ends", mock.AsyncMock(return_value=False))
