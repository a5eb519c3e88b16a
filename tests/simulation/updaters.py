"""A client's updates: sent, sent again, asked for, and what it may be told of each."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec
from stepwell.api import operations as o
from stepwell.api import requests as r
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.errors import FailedPrecondition, NotFound, WorkflowExecutionClosed
from stepwell.api.failures import ApplicationFailureInfo
from stepwell.api.updates import UpdateOutcome

from tests.simulation.ledger import Ledger, payload
from tests.simulation.violation import Violation

_KINDS = ["plain", "plain", "working", "slow", "failing", "bad", "bad"]
_TOO_LATE = (NotFound, WorkflowExecutionClosed)

Call = Callable[[Any, Any], Awaitable[Any]]


class Updater:
    """``call`` repeats what gets no answer; ``pause`` is some time."""

    def __init__(self, call: Call, random: Random, ledger: Ledger, pause: Callable[[float], Awaitable[None]]) -> None:
        self._call = call
        self._random = random
        self._ledger = ledger
        self._pause = pause

    async def send_some(self) -> None:
        together = self._random.random() < 0.3
        updates = []
        for number in range(self._random.randint(1, 8)):
            if not together:
                await self._pause(12.0)
            update = self._one(f"u{number}", self._random.choice(_KINDS))
            if together:
                updates.append(update)
            else:
                await update
        await asyncio.gather(*updates)

    async def _one(self, update_id: str, kind: str) -> None:
        ledger, random = self._ledger, self._random
        ledger.updates[update_id] = kind
        request = r.UpdateWorkflowRequest(
            execution=WorkflowExecution(workflow_id=ledger.workflow_id),
            update_id=update_id,
            update_name="revise",
            input=(payload(update_id), payload(kind)),
            wait_for_stage=random.choice(list(WorkflowUpdateStage)),
        )
        try:
            answer = await self._call(o.UPDATE_WORKFLOW, request)
            self._told(answer)
            if random.random() < 0.3:
                await self._pause(10.0)
                self._told(await self._call(o.UPDATE_WORKFLOW, request))
            if answer.outcome is None and random.random() < 0.7:
                await self._ask_until_ended(answer)
        except (FailedPrecondition, *_TOO_LATE):
            return

    async def _ask_until_ended(self, answer: r.UpdateWorkflowResponse) -> None:
        execution = WorkflowExecution(workflow_id=self._ledger.workflow_id, run_id=answer.run_id)
        request = r.PollWorkflowUpdateRequest(execution=execution, update_id=answer.update_id)
        while True:
            polled = await self._call(o.POLL_WORKFLOW_UPDATE, request)
            self._told(polled)
            if polled.outcome is not None:
                return

    def _told(self, answer: r.UpdateWorkflowResponse | r.PollWorkflowUpdateResponse) -> None:
        if answer.outcome is not None:
            self._ledger.update_ends.append((answer.run_id, answer.update_id, answer.outcome))


def check_updates(ledger: Ledger) -> None:
    """Everybody is told the same of an update in one run, and what its kind makes of it."""
    told: dict[tuple[str, str], UpdateOutcome] = {}
    for run_id, update_id, outcome in ledger.update_ends:
        kind = ledger.updates[update_id]
        if told.setdefault((run_id, update_id), outcome) != outcome:
            raise Violation(f"update {update_id} of run {run_id} ended with {told[run_id, update_id]} and {outcome}")
        ends = {"bad": {"Rejected"}, "failing": {"Refused"}}.get(kind, {f"revised-{update_id}", "cut"})
        if _what(outcome) not in ends:
            raise Violation(f"{kind} update {update_id} ended with {outcome}")


def _what(outcome: UpdateOutcome) -> str:
    if outcome.failure is None:
        return msgspec.json.decode(outcome.success[0].data, type=str)
    info = outcome.failure.info
    kind = info.failure_type if isinstance(info, ApplicationFailureInfo) else ""
    return "cut" if kind == "AcceptedUpdateCompletedWorkflow" else kind
