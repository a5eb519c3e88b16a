"""How long a history may become: when its workflow is told to go on as new, and when it must end (LC-22, DA-09)."""

from collections.abc import Callable, Sequence

from stepwell.api import limits
from stepwell.api.enums import SuggestContinueAsNewReason
from stepwell.api.events import HistoryEvent, WorkflowTaskStarted

from .state import ExecutionState

Reasons = tuple[SuggestContinueAsNewReason, ...]

_WAY_OUT = (
    "Let the workflow continue as new before that (workflow.info().is_continue_as_new_suggested() says when), and "
    "start it again for what is left to do."
)


def suggestion(events: int, size: int, updates: int) -> Reasons:
    """Why workflow code should continue as new; nothing while it is early."""
    if (
        events < limits.SUGGEST_CONTINUE_EVENTS
        and size < limits.SUGGEST_CONTINUE_BYTES
        and updates < limits.SUGGEST_CONTINUE_UPDATES
    ):
        return ()
    reasons = []
    if size >= limits.SUGGEST_CONTINUE_BYTES:
        reasons.append(SuggestContinueAsNewReason.HISTORY_SIZE_TOO_LARGE)
    if events >= limits.SUGGEST_CONTINUE_EVENTS:
        reasons.append(SuggestContinueAsNewReason.TOO_MANY_HISTORY_EVENTS)
    if updates >= limits.SUGGEST_CONTINUE_UPDATES:
        reasons.append(SuggestContinueAsNewReason.TOO_MANY_UPDATES)
    return tuple(reasons)


def suggested(state: ExecutionState) -> Reasons:
    """The same of a run."""
    if (
        state.next_event_id <= limits.SUGGEST_CONTINUE_EVENTS
        and state.history_size < limits.SUGGEST_CONTINUE_BYTES
        and state.update_count < limits.SUGGEST_CONTINUE_UPDATES
    ):
        return ()  # as ``suggestion`` says, without its call: each step asks twice
    return suggestion(state.next_event_id - 1, state.history_size, state.update_count)


def started(scheduled_event_id: int, size: int, reasons: Reasons) -> WorkflowTaskStarted:
    """The event of a workflow task of a history that has ``size`` bytes before it."""
    if not reasons:
        return WorkflowTaskStarted(scheduled_event_id=scheduled_event_id, history_size_bytes=size)
    return WorkflowTaskStarted(
        scheduled_event_id=scheduled_event_id,
        history_size_bytes=size,
        suggest_continue_as_new=True,
        suggest_continue_as_new_reasons=reasons,
    )


def exceeded(state: ExecutionState) -> str:
    """Why the run, as it would be, must not be written but terminated; empty when it is within its limits."""
    events = state.next_event_id - 1
    if events > limits.MAX_HISTORY_EVENTS:
        return (
            f"history count exceeds limit: the history would have {events} events, the most is "
            f"{limits.MAX_HISTORY_EVENTS}. {_WAY_OUT}"
        )
    if state.history_size > limits.MAX_HISTORY_BYTES:
        return (
            f"history size exceeds limit: the history would have {state.history_size} bytes, the most is "
            f"{limits.MAX_HISTORY_BYTES}. {_WAY_OUT}"
        )
    return ""


def warning(state: ExecutionState, events: Sequence[HistoryEvent], size_of: Callable[[HistoryEvent], int]) -> str:
    """What people should hear of a run whose last commit, of ``events``, took it over a mark; once for each mark."""
    now = state.next_event_id - 1
    if now - len(events) < limits.WARN_HISTORY_EVENTS <= now:
        return f"{now} events; at {limits.MAX_HISTORY_EVENTS} it is terminated"
    size = state.history_size
    if size >= limits.WARN_HISTORY_BYTES and size - sum(map(size_of, events)) < limits.WARN_HISTORY_BYTES:
        return f"a history of {size} bytes; at {limits.MAX_HISTORY_BYTES} it is terminated"
    return ""
