"""Faults planted into how a run goes on as another; found as those of ``plants``."""

from collections.abc import Callable, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from unittest import mock

from stepwell.api.common import UserMetadata
from stepwell.api.events import EventAttributes, WorkflowExecutionStarted

from stepwell_server.history import builder, deadlines, retry
from stepwell_server.history.builder import TransitionBuilder
from stepwell_server.history.machines import chain, succession
from stepwell_server.history.state import BufferedEvent, ExecutionState


def carried_signal_in_both_runs() -> Any:
    """What a run has not seen becomes its own and the next one's."""
    succeed = succession.succeed

    def doubled(
        draft: TransitionBuilder,
        closing_event: EventAttributes,
        started: WorkflowExecutionStarted,
        run_id: str,
        carried: Sequence[BufferedEvent] = (),
        user_metadata: UserMetadata | None = None,
    ) -> ExecutionState:
        for entry in carried:
            succession.inbox.number(draft, entry)
        return succeed(draft, closing_event, started, run_id, carried, user_metadata)

    return mock.patch.object(succession, "succeed", doubled)


def carried_signal_lost() -> Any:
    """What a run has not seen goes with it."""

    def without(state: ExecutionState) -> Sequence[BufferedEvent]:
        state.buffered = ()
        return ()

    return mock.patch.object(chain, "carried", without)


def backoff_not_armed() -> Any:
    """The deadline of a run that waits for its first task does not know of that."""
    deadline = deadlines.deadline

    def without(state: ExecutionState, *rest: Any, **options: Any) -> datetime | None:
        waits, state.first_task_at = state.first_task_at, None
        try:
            return deadline(state, *rest, **options)
        finally:
            state.first_task_at = waits

    return mock.patch.object(deadlines, "deadline", without)


def next_run_forgets_the_chain() -> Any:
    """Request ids do not pass on, so that a repeat behind continue-as-new counts again."""
    pass_on = builder._pass_on

    def forgetful(before: ExecutionState, state: ExecutionState) -> None:
        pass_on(before, state)
        state.request_ids = ()

    return mock.patch.object(builder, "_pass_on", forgetful)


def retry_past_the_expiry() -> Any:
    """A retry of the workflow does not look at when its execution expires."""

    def decide(*rest: Any, **options: Any) -> Any:
        return retry.decide(*rest, **(options | {"expires": None}))

    return _with_retry(decide)


def attempts_not_counted() -> Any:
    """Every attempt of a workflow is taken for its first."""

    def decide(policy: Any, _: int, *rest: Any, **options: Any) -> Any:
        return retry.decide(policy, 1, *rest, **options)

    return _with_retry(decide)


def _with_retry(decide: Callable[..., Any]) -> Any:
    own = SimpleNamespace(decide=decide, Retry=retry.Retry, timeout_failure=retry.timeout_failure)
    return mock.patch.object(chain, "retry", own)
