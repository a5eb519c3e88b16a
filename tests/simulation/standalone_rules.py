"""What the history of a stand-alone activity may be (AC-28): its start with its activity, a request to cancel, one end
of the activity, and with it the close."""

import re

from stepwell.api.events import HistoryEvent

from tests.simulation.violation import Violation

_ENDS = ("Completed", "Failed", "TimedOut", "Canceled")
_CLOSE = "|".join(f"(ActivityTaskStarted )?ActivityTask{end} WorkflowExecution{end} " for end in _ENDS)
_BEGUN = "WorkflowExecutionStarted ActivityTaskScheduled "
_ASKED = "(WorkflowExecutionCancelRequested ActivityTaskCancelRequested )?"
_OPEN = re.compile(_BEGUN + _ASKED)
_CLOSED = re.compile(f"{_BEGUN}{_ASKED}({_CLOSE}|WorkflowExecutionTerminated )")


class StandaloneRules:
    """In place of the rules of workflows; looks at whole commits."""

    def __init__(self) -> None:
        self.closed = False
        self._told = ""
        self._count = 0

    def add(self, event: HistoryEvent) -> None:
        self._count += 1
        if event.event_id != self._count:
            raise Violation(f"event {event.event_id} is the {self._count}th")
        self._told += f"{event.event_type} "
        self.closed = _CLOSED.fullmatch(self._told) is not None

    def end_of_commit(self, outstanding: bool) -> None:
        if outstanding:
            raise Violation("a stand-alone activity has a workflow task")
        if not self.closed and not _OPEN.fullmatch(self._told):
            raise Violation(f"no history of a stand-alone activity: {self._told}")
