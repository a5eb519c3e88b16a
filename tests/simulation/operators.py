"""Those who operate a client's workflow: they pause its activities and let them go on, reset them and change their
options (AC-25, AC-26). None of that changes what comes of a program, only when."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.errors import InvalidArgument, NotFound

from tests.simulation.ledger import Ledger
from tests.simulation.workflows import ACTIVITY_TYPE

Call = Callable[[Any, Any], Awaitable[Any]]


class Operator:
    """``call`` repeats what gets no answer; ``pause`` is some time."""

    def __init__(self, call: Call, random: Random, ledger: Ledger, pause: Callable[[float], Awaitable[None]]) -> None:
        self._call = call
        self._random = random
        self._ledger = ledger
        self._pause = pause

    async def steer(self) -> None:
        for _ in range(self._random.randint(3, 12)):
            await self._pause(8.0)
            try:
                await self._one()
            except (NotFound, InvalidArgument):
                continue  # it has ended, or has no such activity

    async def _one(self) -> None:
        random = self._random
        execution = WorkflowExecution(workflow_id=self._ledger.workflow_id)
        described = await self._call(o.DESCRIBE_WORKFLOW, r.DescribeWorkflowRequest(execution=execution))
        execution = described.info.execution
        pending = [activity.activity_id for activity in described.pending_activities]
        if not pending:
            return
        which: dict[str, Any] = {"execution": execution, "activity_id": random.choice(pending)}
        if random.random() < 0.3:
            which = {"execution": execution, "activity_type": ACTIVITY_TYPE}
        jitter = random.choice([None, timedelta(seconds=2)])
        match random.choice(["pause", "pause", "reset", "options"]):
            case "pause":
                await self._call(o.PAUSE_ACTIVITY, r.PauseActivityRequest(**which))
                await self._pause(10.0)
                if random.random() < 0.3:
                    await self._call(o.RESET_ACTIVITY, r.ResetActivityRequest(**which, keep_paused=True))
                again = r.UnpauseActivityRequest(**which, jitter=jitter, reset_attempts=random.random() < 0.3)
                await self._call(o.UNPAUSE_ACTIVITY, again)
            case "reset":
                reset = r.ResetActivityRequest(
                    **which,
                    jitter=jitter,
                    reset_heartbeat=random.random() < 0.5,
                    restore_original_options=random.random() < 0.3,
                )
                await self._call(o.RESET_ACTIVITY, reset)
            case _:
                change = r.UpdateActivityOptionsRequest(**which, options=self._options())
                await self._call(o.UPDATE_ACTIVITY_OPTIONS, change)

    def _options(self) -> r.ActivityOptionsChange:
        random = self._random
        if random.random() < 0.3:
            return r.ActivityOptionsChange(restore_original=True)
        return r.ActivityOptionsChange(
            start_to_close_timeout=random.choice([None, timedelta(seconds=35)]),
            retry_initial_interval=timedelta(seconds=random.choice([0.1, 2.0])),
            retry_maximum_interval=timedelta(seconds=6),
        )
