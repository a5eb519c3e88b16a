"""Who asked for something first. A reset lets a run go on in another one under the same event numbers, so what a run
has asked of others may be a question of a run before it; whoever delivers and answers means the same thing by both."""

from collections.abc import Sequence

from stepwell.api import events as e
from stepwell.api.events import HistoryEvent

Name = tuple[str, int]
"""The run that recorded an Initiated event, and the event's id."""


class Lineage:
    """Told of every run that begins as a reset, before any of its own events."""

    def __init__(self) -> None:
        self._recorders: dict[str, list[tuple[int, str]]] = {}

    def begin(self, run_id: str, prefix: Sequence[HistoryEvent]) -> None:
        """``prefix`` is what the run has from others and what came in behind that."""
        recorders = self._recorders[run_id] = []
        for event in prefix:
            body = event.attributes
            if isinstance(body, e.WorkflowExecutionStarted):
                recorders.append((event.event_id, body.original_execution_run_id))
            elif isinstance(body, e.WorkflowTaskFailed) and body.new_run_id:
                recorders.append((event.event_id, body.new_run_id))

    def name(self, run_id: str, event_id: int) -> Name:
        """Of what the event of this run has asked for."""
        recorded_by = run_id
        for since, recorder in self._recorders.get(run_id, ()):
            if since <= event_id:
                recorded_by = recorder
        return recorded_by, event_id

    def runs_with(self, name: Name) -> list[str]:
        """Runs from resets in whose prefix the event is, besides the one that recorded it."""
        return [run_id for run_id in self._recorders if run_id != name[0] and self.name(run_id, name[1]) == name]
