"""Finds the point that a reset goes back to in a history that is read once (LC-13, LC-15).

A point is a workflow task: its WorkflowTaskStarted is the last event that is kept. It may be named by that event or by
the one that closed the task.
"""

from stepwell.api.enums import ResetType
from stepwell.api.errors import InvalidArgument
from stepwell.api.events import (
    HistoryEvent,
    WorkflowTaskCompleted,
    WorkflowTaskFailed,
    WorkflowTaskStarted,
    WorkflowTaskTimedOut,
)

from ..state import ExecutionState

_CLOSES = (WorkflowTaskCompleted, WorkflowTaskFailed, WorkflowTaskTimedOut)


class PointFinder:
    """``event_id`` counts when there is no ``reset_type``."""

    def __init__(self, reset_type: ResetType | None, event_id: int, build_id: str) -> None:
        self._type = reset_type
        self._event_id = event_id
        self._build_id = build_id
        self._found = 0
        self._first_started = 0
        self._last_started = 0
        self._before = 0
        """The last event before the one that was named which could have been."""
        self._named: HistoryEvent | None = None

    @property
    def is_found(self) -> bool:
        return bool(self._found)

    @property
    def may_be_earlier(self) -> bool:
        """Whether a run before may have a better point: the first task of a build may be there."""
        return self._type is ResetType.BUILD_ID

    def look_at(self, event: HistoryEvent) -> bool:
        """Takes in the next event; whether to go on."""
        attributes = event.attributes
        if self._type is None and event.event_id == self._event_id:
            return self._take_named(event)
        if isinstance(attributes, WorkflowTaskStarted):
            self._first_started = self._first_started or event.event_id
            self._last_started = self._before = event.event_id
        elif isinstance(attributes, _CLOSES):
            self._before = event.event_id
        if not isinstance(attributes, WorkflowTaskCompleted):
            return True
        match self._type:
            case ResetType.FIRST_WORKFLOW_TASK:
                self._found = attributes.started_event_id
            case ResetType.BUILD_ID if attributes.binary_checksum == self._build_id:
                self._found = attributes.started_event_id
            case ResetType.LAST_WORKFLOW_TASK | ResetType.LAST_CONTINUED_AS_NEW:
                self._found = attributes.started_event_id
                return True
        return not self._found

    def _take_named(self, event: HistoryEvent) -> bool:
        self._named = event
        attributes = event.attributes
        if isinstance(attributes, WorkflowTaskStarted):
            self._found = event.event_id
        elif isinstance(attributes, _CLOSES):
            self._found = event.event_id - 1
        return False

    def last_event_id(self, run: ExecutionState) -> int:
        """The last event that is kept. Raises InvalidArgument when there is no such point."""
        found = self._found
        if not found and self._type in (ResetType.FIRST_WORKFLOW_TASK, ResetType.LAST_WORKFLOW_TASK):
            first = self._type is ResetType.FIRST_WORKFLOW_TASK
            found = self._first_started if first else self._last_started
        if found:
            return found
        run_id = run.run_id
        if self._type is None:
            raise self._bad_event(run_id)
        if self._type is ResetType.BUILD_ID:
            raise InvalidArgument(
                f"no workflow task of run {run_id} was completed by a worker of build {self._build_id!r}",
                field="build_id",
            )
        raise InvalidArgument(
            f"run {run_id} has no workflow task that was started, so there is nothing to go back to; "
            "terminate it and start another one instead",
            field="reset_type",
        )

    def _bad_event(self, run_id: str) -> InvalidArgument:
        what = f"is {self._named.event_type}" if self._named is not None else f"is not in the history of run {run_id}"
        near = f"; the last one before it is event {self._before}" if self._before else ""
        return InvalidArgument(
            f"event {self._event_id} {what}. A reset goes back to a WorkflowTaskCompleted, WorkflowTaskFailed, "
            f"WorkflowTaskTimedOut or WorkflowTaskStarted event{near}",
            field="workflow_task_finish_event_id",
        )
