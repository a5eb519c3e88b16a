"""Sends the outcomes of activities that do not travel in a fused step; those that end together go together."""

import logging

from ..api.errors import ApiError
from ..api.limits import MAX_OUTCOMES_PER_REQUEST
from ..api.operations import RESPOND_ACTIVITY_TASKS
from ..api.payloads import size_of
from ..api.requests import (
    ActivityCanceled,
    ActivityCompleted,
    ActivityOutcome,
    ActivityOutcomeReply,
    ActivityPending,
    RespondActivityTasksRequest,
    WorkerInfo,
)
from ..converter.failure_size import failure_size
from .engine_calls import EngineCalls

_MAX_BATCH_BYTES = 4 * 1024 * 1024
"""Half of what one HTTP request may hold, leaving room for base64."""

_log = logging.getLogger("stepwell.worker")


class OutcomeReporter:
    """One request is on its way at a time; what ends in the meantime makes up the next one."""

    def __init__(self, calls: EngineCalls, namespace: str, worker: WorkerInfo) -> None:
        self._calls = calls
        self._namespace = namespace
        self._worker = worker
        self._waiting: list[ActivityOutcome] = []
        self._sending = False

    async def report(self, *outcomes: ActivityOutcome) -> None:
        """Returns when they are sent, or at once when another caller is sending and will take them along."""
        self._waiting.extend(outcomes)
        if self._sending:
            return
        self._sending = True
        try:
            while self._waiting:
                await self._send(self._next_batch())
        finally:
            self._sending = False

    def _next_batch(self) -> list[ActivityOutcome]:
        batch: list[ActivityOutcome] = []
        size = 0
        for outcome in self._waiting[:MAX_OUTCOMES_PER_REQUEST]:
            size += _size(outcome)
            if batch and size > _MAX_BATCH_BYTES:
                break
            batch.append(outcome)
        del self._waiting[: len(batch)]
        return batch

    async def _send(self, batch: list[ActivityOutcome]) -> None:
        request = RespondActivityTasksRequest(namespace=self._namespace, worker=self._worker, outcomes=tuple(batch))
        try:
            response = await self._calls.until_answered(RESPOND_ACTIVITY_TASKS, request)
        except ApiError as error:
            if len(batch) == 1:
                _log.error("The outcome of an activity was refused, its timeout will end it: %s", error)
                return
            for outcome in batch:  # one that is refused must not take the others along
                await self._send([outcome])
            return
        log_refused(response.replies)


def log_refused(replies: tuple[ActivityOutcomeReply, ...]) -> None:
    """A refused outcome belongs to an attempt that is over, or to a closed run: worth a note, not an alarm."""
    for reply in replies:
        if reply.error_code:
            _log.info("Outcome of an activity no longer counts: %s: %s", reply.error_code, reply.message)


def _size(outcome: ActivityOutcome) -> int:
    if isinstance(outcome, ActivityCompleted):
        return size_of(outcome.result)
    if isinstance(outcome, ActivityCanceled):
        return size_of(outcome.details)
    if isinstance(outcome, ActivityPending):
        return 0
    return size_of(outcome.last_heartbeat_details) + failure_size(outcome.failure)
