"""What is wrong with a run, as search attributes that the system sets (VI-19): by them runs are found that would never
move, and those that ended because of one cause.

Told is what commits know. While the run is open: workflow tasks that fail, and activities of which an attempt failed
that the log held, or of which ``FAILING_FROM`` attempts failed that only its item knows. Those leave no commit; the
next firing of the run's deadline finds them, and there is one for each wait until a next attempt. Once it ended badly:
the failure with its causes. A run that is well costs nothing; one that fails is projected once more, and again when it
recovers.
"""

from collections.abc import Iterable

import msgspec
from stepwell.api.common import Memo
from stepwell.api.failures import (
    ActivityFailureInfo,
    ApplicationFailureInfo,
    ChildWorkflowExecutionFailureInfo,
    Failure,
    TimeoutFailureInfo,
)
from stepwell.api.limits import MAX_FAILURE_CAUSES
from stepwell.api.payloads import ENCODING, ENCODING_JSON, Payload

from .state import ExecutionState

FAILING_ACTIVITY = "StepwellFailingActivity"
"""Types of the activities that fail, or failed the run."""

FAILURE_CAUSE = "StepwellFailureCause"
"""Types of the errors behind it, and why workflow tasks fail, such as NON_DETERMINISTIC_ERROR."""

FAILING_FROM = 5
"""So many failed attempts in a row are told of, as Temporal does with workflow tasks; fewer pass by themselves."""

MOST = 10
_MOST_CHARACTERS = 100
_METADATA = {ENCODING: ENCODING_JSON, "type": "KeywordList"}


class Problems(msgspec.Struct, frozen=True, gc=False):
    activities: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    def __add__(self, other: "Problems") -> "Problems":
        return Problems(self.activities + other.activities, self.causes + other.causes)

    def attributes(self) -> Memo:
        """As search attributes; none when nothing is wrong."""
        told = {FAILING_ACTIVITY: _few(self.activities), FAILURE_CAUSE: _few(self.causes)}
        return {
            name: Payload(metadata=_METADATA, data=msgspec.json.encode(values))
            for name, values in told.items()
            if values
        }


NONE = Problems()


def of_state(state: ExecutionState) -> Problems:
    """Of an open run."""
    found = NONE
    task = state.workflow_task
    if task is not None and task.last_cause is not None:
        found = Problems((), (task.last_cause.value,)) + _of_failure(task.last_failure)
    for pending in state.activities.values():
        if pending.last_failure is not None and len(found.activities) < MOST:
            found += Problems((pending.activity_type,), ()) + _of_failure(pending.last_failure)
    return found


def of_end(before: Problems, attributes: object) -> Problems:
    """Of a run that an event closed: what it failed with, or what was wrong when it was ended from outside."""
    failure = getattr(attributes, "failure", None)
    if isinstance(failure, Failure):
        return _of_failure(failure)
    return before


def have_changed(before: ExecutionState, after: ExecutionState) -> bool:
    if before.activities is after.activities and before.workflow_task is after.workflow_task:
        return False
    for state in (before, after):
        if state.workflow_task is not None and state.workflow_task.last_cause is not None:
            return _signs(before) != _signs(after)
        for pending in state.activities.values():
            if pending.last_failure is not None:
                return _signs(before) != _signs(after)
    return False


def _signs(state: ExecutionState) -> tuple[object, list[int]]:
    task = state.workflow_task
    failing = [id for id, pending in state.activities.items() if pending.last_failure is not None]
    return task.last_cause if task is not None else None, failing


def _of_failure(failure: Failure | None) -> Problems:
    activities: list[str] = []
    causes: list[str] = []
    for _ in range(MAX_FAILURE_CAUSES):
        if failure is None:
            break
        info = failure.info
        if isinstance(info, ActivityFailureInfo):
            activities.append(info.activity_type)
        elif isinstance(info, ApplicationFailureInfo):
            causes.append(info.failure_type)
        elif isinstance(info, TimeoutFailureInfo):
            causes.append(f"{info.timeout_type.value}_TIMEOUT")
        elif isinstance(info, ChildWorkflowExecutionFailureInfo):
            causes.append(info.workflow_type)
        failure = failure.cause
    return Problems(tuple(activities), tuple(causes))


def _few(values: Iterable[str]) -> list[str]:
    different = dict.fromkeys(value[:_MOST_CHARACTERS] for value in values if value)
    return list(different)[:MOST]
