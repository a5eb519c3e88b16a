"""Checks on what the engine says: histories that readers and workers are shown, wake-ups behind acknowledged results,
and that no attempt of an activity is ever begun twice."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
from stepwell.activity import Info
from stepwell.api import requests as r
from stepwell.api.enums import CompletionOutcome, WorkflowExecutionStatus
from stepwell.api.events import HistoryEvent
from stepwell.api.operations import Operation

from stepwell_server.history.activity_item import FINISHED
from stepwell_server.history.commit import ExecutionKey
from stepwell_server.history.task_tokens import ActivityToken
from tests.simulation.faults import Faults
from tests.simulation.history_rules import Violation
from tests.simulation.model import Model

_WAKE_UP_WITHIN = timedelta(seconds=12).total_seconds()
"""Virtual time between an acknowledged result and its wake-up; far less than the 30 s of a deadline's repair."""

_MAC_BYTES = 16
_decode_activity_token = msgspec.msgpack.Decoder(ActivityToken).decode


class Witness:
    """``incarnation`` tells which engine runs, ``fail`` ends the simulation."""

    def __init__(
        self, model: Model, faults: Faults, incarnation: Callable[[], int], fail: Callable[[BaseException], None]
    ) -> None:
        self._model = model
        self._faults = faults
        self._incarnation = incarnation
        self._fail = fail
        self._shown: dict[bytes, tuple[str, str, tuple[HistoryEvent, ...]]] = {}
        self._attempts: dict[tuple[str, str, int, int], str] = {}
        self.seen: Counter[str] = Counter()
        """What happened how often, to see what the seeds reach."""

    def reply(self, operation: Operation[Any, Any], request: Any, response: Any) -> None:
        """The engine gives this answer now."""
        self._count(request, response)
        try:
            match response:
                case r.PollWorkflowTaskResponse():
                    for task in response.tasks:
                        if task.query is None:
                            execution = task.execution
                            self._shown[task.task_token] = (execution.workflow_id, execution.run_id, task.events)
                case r.GetHistoryResponse():
                    key = ExecutionKey(request.namespace, request.execution.workflow_id)
                    self._model.check_read(key, response.run_id, response.events)
                case r.RespondWorkflowTaskCompletedResponse():
                    self._completed(request, response)
                case r.UpdateWorkflowResponse() | r.PollWorkflowUpdateResponse() | r.UpdateWithStartWorkflowResponse():
                    self._model.updates.check_answer(response)
                case r.RespondActivityTasksResponse():
                    self._reported(request, response)
        except Violation as violation:
            self._fail(violation)

    def _count(self, request: Any, response: Any) -> None:
        match response:
            case r.RespondWorkflowTaskCompletedResponse():
                self.seen[f"{'task' if request.task_token[:1] == b'W' else 'fused'} {response.outcome}"] += 1
                self.seen["leases"] += len(response.leases)
            case r.QueryWorkflowResponse():
                self.seen["query answered"] += 1
            case r.ActivitiesChangedResponse():
                self.seen["steered"] += len(response.activity_ids)
            case r.SignalWorkflowResponse() if request.signal_name != "note":
                self.seen["session signal"] += 1
            case r.UpdateWorkflowResponse() | r.PollWorkflowUpdateResponse():
                self.seen[f"update {response.stage}"] += 1

    def attempt_begins(self, info: Info, worker: str) -> None:
        """A worker begins an attempt. A local one may begin again on another worker."""
        if info.is_local:
            self.seen["local attempt"] += 1
            return
        token = _decode_activity_token(info.task_token[1:-_MAC_BYTES])
        attempt = (info.workflow_run_id, info.activity_id, info.attempt, token.stamp)
        if attempt in self._attempts:
            self._fail(
                Violation(
                    f"{info.workflow_id}: attempt {info.attempt} of activity {info.activity_id} was begun by "
                    f"{self._attempts[attempt]} and again by {worker} (invariant 4)"
                )
            )
        self._attempts[attempt] = worker

    def _completed(
        self, request: r.RespondWorkflowTaskCompletedRequest, response: r.RespondWorkflowTaskCompletedResponse
    ) -> None:
        if response.outcome is not CompletionOutcome.ACCEPTED:
            return
        shown = self._shown.get(request.task_token)
        if shown is not None:
            workflow_id, run_id, events = shown
            self._model.check_read(ExecutionKey(request.namespace, workflow_id), run_id, events)

    def _reported(self, request: r.RespondActivityTasksRequest, response: r.RespondActivityTasksResponse) -> None:
        for outcome, reply in zip(request.outcomes, response.replies, strict=True):
            token = _decode_activity_token(outcome.task_token[1:-_MAC_BYTES])
            if not reply.error_code and not token.leased:
                before = (self._incarnation(), self._store_failures())
                asyncio.get_running_loop().call_later(_WAKE_UP_WITHIN, self._check_wake_up, token, before)

    def _check_wake_up(self, token: ActivityToken, before: tuple[int, int]) -> None:
        """Unless the engine crashed or the store failed in between, an acknowledged result was noticed by now."""
        if before != (self._incarnation(), self._store_failures()):
            return
        key = ExecutionKey(token.namespace, token.workflow_id)
        item = self._model.items.get((key, token.run_id, token.scheduled_event_id))
        head = self._model.heads[key]
        if item is None or item.state not in FINISHED or head.run_id != token.run_id:
            return
        state = head.state
        open_and_idle = state.status is WorkflowExecutionStatus.RUNNING and state.workflow_task is None
        if open_and_idle and token.scheduled_event_id in state.activities:
            self._fail(
                Violation(
                    f"{token.workflow_id}: the result of activity {token.scheduled_event_id} was acknowledged "
                    f"{_WAKE_UP_WITHIN:.0f} s ago, and no workflow task was scheduled for it (invariant 3)"
                )
            )

    def _store_failures(self) -> int:
        return self._faults.happened.get("write_refused", 0) + self._faults.happened.get("write_answer_lost", 0)
