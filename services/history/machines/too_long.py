"""A run whose history or state would become too large is terminated instead, with the reason (DA-09, DA-10).

What would have taken it over the limit is given up as a whole, and whoever asked for it is told.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from stepwell.api.enums import CompletionOutcome
from stepwell.api.errors import ApiError, WorkflowExecutionClosed
from stepwell.api.events import WorkflowExecutionTerminated
from stepwell.api.requests import ActivityOutcomeReply

from .. import history_limits
from ..builder import TransitionBuilder
from ..requests import (
    AdmitUpdate,
    CompleteWorkflowTask,
    FailWorkflowTask,
    FireDeadline,
    LeasedOutcome,
    RecordLeasedOutcomes,
    Request,
    Signal,
    Signals,
    Start,
    UpdateWithStart,
)
from ..state import ExecutionState
from ..transition import CompletionReply, OutcomesReply, Reply, SignalsReply, Transition
from . import closing, inbox, with_start

IDENTITY = "stepwell"
"""Who terminates."""


def within_limits(state: ExecutionState, request: Request, transition: Transition, now: datetime) -> Transition:
    """The transition, or the one that terminates the run in its place."""
    after = transition.state
    if after.close_time is not None or not transition.changed or after.run_id != state.run_id:
        return transition
    why = history_limits.exceeded(after)
    return transition if not why else give_up(state, request, now, why)


def give_up(state: ExecutionState, request: Request, now: datetime, why: str) -> Transition:
    """Terminates the open run in place of what was asked. ``why``: which limit it would exceed, and what to do."""
    reason = f"Workflow {why}"
    draft = TransitionBuilder(state, now)
    inbox.flush(draft)
    closing.close(draft, WorkflowExecutionTerminated(reason=reason, identity=IDENTITY))
    refusal = WorkflowExecutionClosed(
        f"run {state.run_id} of workflow {state.workflow_id!r} was terminated: {reason}",
        status=draft.state.status.value,
    )
    reply, refused = _answer(state, request, refusal)
    if isinstance(request, FireDeadline):
        return draft.finish(reply, firing=True, fired=request.fire_at)
    transition = draft.finish(reply)
    return msgspec.structs.replace(transition, refusal=refusal) if refused else transition


def _answer(state: ExecutionState, request: Any, refusal: ApiError) -> tuple[Reply, bool]:
    """The reply, and whether the caller is refused."""
    match request:
        case CompleteWorkflowTask() | FailWorkflowTask():
            return CompletionReply(
                outcome=CompletionOutcome.STALE,
                run_id=state.run_id,
                outcome_replies=_gone(request.outcomes, refusal),
                message=f"the completion does not count: {refusal.message}",
            ), False
        case RecordLeasedOutcomes():
            return OutcomesReply(outcome_replies=_gone(request.outcomes, refusal)), False
        case Signals():
            known = [with_start.known(state, asked) for asked in request.signals]
            refusals = tuple([None if repeat else refusal for repeat, _ in known])
            return SignalsReply(refusals=refusals, starts=tuple([started for _, started in known])), False
        case Signal() | AdmitUpdate() | Start() | UpdateWithStart():
            return None, True
    return None, False


def _gone(outcomes: Sequence[LeasedOutcome], refusal: ApiError) -> tuple[ActivityOutcomeReply, ...]:
    return tuple([ActivityOutcomeReply(error_code="NOT_FOUND", message=refusal.message) for _ in outcomes])
