"""Updates from admission to their end, checked at every write and every answer: none vanishes, and nobody is told of
one what is not so (invariant 5, MS-25 to MS-31)."""

from collections.abc import Sequence

from stepwell.api import events as e
from stepwell.api.enums import WorkflowExecutionStatus, WorkflowUpdateStage
from stepwell.api.events import HistoryEvent
from stepwell.api.requests import PollWorkflowUpdateResponse, UpdateWithStartWorkflowResponse, UpdateWorkflowResponse
from stepwell.api.updates import UpdateOutcome

from stepwell_server.history.commit import Commit
from stepwell_server.history.state import ExecutionState
from tests.simulation.violation import Violation

UpdateAnswer = UpdateWorkflowResponse | PollWorkflowUpdateResponse | UpdateWithStartWorkflowResponse
Name = tuple[str, str]
"""Run and update id."""


class StandingUpdates:
    """Fed with every commit, before it is the head. Raises :class:`Violation`."""

    def __init__(self) -> None:
        self._admitted: set[Name] = set()
        self._accepted: set[Name] = set()
        self._ends: dict[Name, UpdateOutcome] = {}
        self._rejected: set[Name] = set()
        self._closed: set[str] = set()

    def begin(self, run_id: str, prefix: Sequence[HistoryEvent]) -> None:
        """Before the commit of a reset: what its run has from the runs before it."""
        self._events(run_id, prefix)

    def _events(self, run_id: str, events: Sequence[HistoryEvent]) -> None:
        for event in events:
            body = event.attributes
            if isinstance(body, e.WorkflowExecutionUpdateAccepted):
                self._accepted.add((run_id, body.protocol_instance_id))
            elif isinstance(body, e.WorkflowExecutionUpdateCompleted):
                self._ends[run_id, body.meta.update_id] = body.outcome

    def add(self, commit: Commit, previous: Commit | None) -> None:
        for state in (commit.state, *([commit.closed.state] if commit.closed is not None else [])):
            self._events(state.run_id, commit.events_of(state.run_id))
            self._admitted.update((state.run_id, update_id) for update_id in state.updates)
            if state.close_time is not None:
                self._closed.add(state.run_id)
        self._rejected.update((entry.run_id, entry.update_id) for entry in commit.rejected)
        if previous is not None and previous.state.close_time is None:
            self._check_none_vanished(previous.state, commit)

    def _check_none_vanished(self, before: ExecutionState, commit: Commit) -> None:
        after = commit.state_of(before.run_id)
        if after is None:
            return  # which is a violation of its own
        continues = after.status is WorkflowExecutionStatus.CONTINUED_AS_NEW
        for update_id, update in before.updates.items():
            name = (before.run_id, update_id)
            if update_id in after.updates or name in self._ends or name in self._rejected:
                continue
            if continues and not update.accepted_event_id and update_id in commit.state.updates:
                continue
            if after.close_time is None or (continues and not update.accepted_event_id):
                raise Violation(f"update {update_id!r} is neither ended nor rejected, and is no longer there")

    def check_answer(self, answer: UpdateAnswer) -> None:
        """``answer`` is being given now."""
        name = (answer.run_id, answer.update_id)
        match answer.stage:
            case WorkflowUpdateStage.ADMITTED:
                known = name in self._admitted
            case WorkflowUpdateStage.ACCEPTED:
                known = name in self._accepted
            case WorkflowUpdateStage.COMPLETED:
                known = self._is_end(name, answer.outcome)
        if not known:
            raise Violation(f"update {name} was said to be {answer.stage} with {answer.outcome}, which it is not")

    def _is_end(self, name: Name, outcome: UpdateOutcome | None) -> bool:
        if outcome is None:
            return False
        if name in self._ends:
            return self._ends[name] == outcome
        cut = name in self._accepted and name[0] in self._closed
        return outcome.failure is not None and (cut or name in self._rejected)
