"""Starts of a client's workflow: plain ones, and those that bring a message along and so may find it closed."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import RetryPolicy
from stepwell.api.enums import WorkflowIDConflictPolicy, WorkflowUpdateStage
from stepwell.api.errors import FailedPrecondition, NotFound, WorkflowExecutionClosed

from tests.simulation.ledger import Ledger, payload
from tests.simulation.other_workflows import WORKFLOW_TYPE
from tests.simulation.programs import Program

Call = Callable[[Any, Any], Awaitable[Any]]
_WITH_A_RUN = (WorkflowIDConflictPolicy.USE_EXISTING, WorkflowIDConflictPolicy.TERMINATE_EXISTING)


def start_fields(ledger: Ledger, task_queue: str, request_id: str) -> dict[str, Any]:
    """Of every request that may start the workflow; noted as asked for."""
    if request_id not in ledger.start_requests:
        ledger.start_requests.append(request_id)
    return {
        "workflow_id": ledger.workflow_id,
        "workflow_type": WORKFLOW_TYPE,
        "task_queue": task_queue,
        "input": (payload(ledger.program.root),),
        "workflow_run_timeout": _seconds(ledger.run_timeout),
        "workflow_task_timeout": timedelta(seconds=ledger.task_timeout),
        "workflow_execution_timeout": _seconds(ledger.execution_timeout),
        "retry_policy": _retries(ledger.program),
        "cron_schedule": "* * * * *" if ledger.program.cron else "",
        "workflow_start_delay": _seconds(ledger.start_delay),
        "request_id": request_id,
        # Every other one that meets an open run is remembered by it (LC-04).
        "on_conflict_options": r.OnConflictOptions(attach_request_id=len(ledger.start_requests) % 2 == 0),
    }


class Starter:
    """Signals and updates that start the workflow when it is closed. ``call`` repeats what gets no answer."""

    def __init__(
        self, call: Call, random: Random, ledger: Ledger, pause: Callable[[float], Awaitable[None]], task_queue: str
    ) -> None:
        self._call = call
        self._random = random
        self._ledger = ledger
        self._pause = pause
        self._task_queue = task_queue

    async def send_some(self) -> None:
        for number in range(self._random.randint(1, 4)):
            await self._pause(25.0)
            together = self._random.choice([1, 1, 2, 6])
            await asyncio.gather(*(self._one(f"w{number}.{index}") for index in range(together)))

    async def _one(self, name: str) -> None:
        if self._random.random() < 0.7 or self._ledger.start_delay is not None:
            await self._signal(name)
        else:
            await self._update(name)

    async def _signal(self, name: str) -> None:
        ledger, request_id = self._ledger, f"{self._ledger.workflow_id}-{name}"
        ledger.signals_sent.append(name)
        request = r.SignalWithStartWorkflowRequest(
            **start_fields(ledger, self._task_queue, request_id),
            workflow_id_conflict_policy=self._random.choice(_WITH_A_RUN),
            signal_name="note",
            signal_input=(payload(name),),
        )
        answer = await self._call(o.SIGNAL_WITH_START_WORKFLOW, request)
        ledger.signals_acknowledged.append(name)
        ledger.signalled_runs.append((answer.run_id, name))
        if answer.started:
            ledger.started[request_id] = answer.run_id
        if self._random.random() < 0.3:
            await self._pause(30.0)
            again = await self._call(o.SIGNAL_WITH_START_WORKFLOW, request)
            ledger.signalled_runs.append((again.run_id, name))

    async def _update(self, name: str) -> None:
        ledger, request_id = self._ledger, f"{self._ledger.workflow_id}-{name}"
        ledger.updates[name] = "plain"
        request = r.UpdateWithStartWorkflowRequest(
            **start_fields(ledger, self._task_queue, request_id),
            workflow_id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            update_id=name,
            update_name="revise",
            update_input=(payload(name), payload("plain")),
            wait_for_stage=self._random.choice([WorkflowUpdateStage.ACCEPTED, WorkflowUpdateStage.COMPLETED]),
        )
        try:
            answer = await self._call(o.UPDATE_WITH_START_WORKFLOW, request)
        except (FailedPrecondition, NotFound, WorkflowExecutionClosed):
            return
        if answer.started:
            ledger.started[request_id] = answer.run_id
        if answer.outcome is not None:
            ledger.update_ends.append((answer.run_id, answer.update_id, answer.outcome))


def _seconds(count: float | None) -> timedelta | None:
    return None if count is None else timedelta(seconds=count)


def _retries(program: Program) -> RetryPolicy | None:
    if not program.attempts:
        return None
    return RetryPolicy(
        initial_interval=timedelta(seconds=1), maximum_interval=timedelta(seconds=8), maximum_attempts=program.attempts
    )
