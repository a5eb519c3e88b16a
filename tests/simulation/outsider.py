"""Who ends activities that their functions have left open: a process that is no worker, and knows them by their task
token or by their ids (AC-21)."""

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from stepwell.activity import Info
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import ApiError
from stepwell.api.failures import ApplicationFailureInfo, Failure

from tests.simulation.ledger import payload
from tests.simulation.loop import Process
from tests.simulation.network import SimulatedTransport

if TYPE_CHECKING:
    from tests.simulation.world import World

_WORKER = r.WorkerInfo(identity="outsider", worker_key="outsider")
_FAILURE = Failure(message="not yet", info=ApplicationFailureInfo(failure_type="Flaky"))


class Outsider:
    def __init__(self, world: "World") -> None:
        self._random = Random(f"outsider {world.scenario.seed}")
        self._transport = SimulatedTransport(world.network)
        self._process = Process("outsider")

    def take(self, info: Info, spec: dict[str, Any]) -> None:
        """To end this attempt later; some beat until then, some answer twice. One in a while is forgotten."""
        if info.attempt <= 2 and self._random.random() < 0.15:
            return
        self._process.spawn(self._end(info, spec), name=f"late {info.activity_id}")

    async def _end(self, info: Info, spec: dict[str, Any]) -> None:
        for _ in range(spec.get("beats", 0)):
            await asyncio.sleep(self._random.random() * 2.0)
            await self._until_answered(
                o.RECORD_ACTIVITY_HEARTBEAT, r.RecordActivityHeartbeatRequest(task_token=info.task_token)
            )
        await asyncio.sleep(self._random.random() * spec["after"])
        for _ in range(self._random.choice([1, 1, 2])):
            await self._answer(info, spec)

    async def _answer(self, info: Info, spec: dict[str, Any]) -> None:
        completed = r.ActivityCompleted(task_token=info.task_token, result=(payload(f"done-{spec['id']}"),))
        if spec["by-id"]:
            execution = WorkflowExecution(workflow_id=info.workflow_id, run_id=info.workflow_run_id)
            by_id = r.RespondActivityByIdRequest(execution=execution, activity_id=info.activity_id, outcome=completed)
            await self._until_answered(o.RESPOND_ACTIVITY_BY_ID, by_id)
            return
        failed = r.ActivityFailed(task_token=info.task_token, failure=_FAILURE)
        outcome = failed if info.attempt <= spec["failures"] else completed
        by_token = r.RespondActivityTasksRequest(worker=_WORKER, outcomes=(outcome,))
        await self._until_answered(o.RESPOND_ACTIVITY_TASKS, by_token)

    async def _until_answered(self, operation: Any, request: Any) -> None:
        """An attempt that is over, or whose run is, needs no answer."""
        while True:
            try:
                await self._transport.call(operation, request)
            except ApiError as error:
                if not error.retryable:
                    return
                await asyncio.sleep(0.2 + self._random.random())
            else:
                return
