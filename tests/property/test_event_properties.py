"""The fold's law over every kind of event, also those that no request of this release makes yet: whatever is recorded
in whatever transitions, ``rebuild(history)`` is the state less what is transient.
"""

from datetime import timedelta
from random import Random
from typing import get_args

import pytest
from stepwell.api import events as e
from stepwell.api.codec import decode_json, encode_json
from stepwell.api.events import EventAttributes, HistoryEvent

from stepwell_server.history.apply import durable_part, rebuild
from stepwell_server.history.builder import TransitionBuilder
from stepwell_server.history.codec import decode_commit, encode_commit
from stepwell_server.history.commit import Commit
from stepwell_server.history.state import ExecutionState
from tests.simulation.history_rules import HistoryRules
from tests.simulation.model import state_difference
from tests.support.history_run import T0, Run
from tests.support.lawful_events import Lawful

CLOSES: tuple[EventAttributes, ...] = (
    e.WorkflowExecutionTerminated(),
    e.WorkflowExecutionTimedOut(new_execution_run_id="run-2"),
)


class Life:
    """A run whose events are recorded directly, in transitions of several workflow tasks."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        run = Run()
        self.state: ExecutionState = run.s
        self.events: list[HistoryEvent] = list(run.events)
        self.rules = HistoryRules()
        for event in self.events:
            self.rules.add(event)
        self.lawful = Lawful(self.random, completed_event_id=0)
        self.seconds = 0

    def turn(self, close: EventAttributes | None = None) -> None:
        """One transition: what a workflow task saw, and what it asked for."""
        self.seconds += self.random.randrange(3)
        draft = TransitionBuilder(self.state, T0 + timedelta(seconds=self.seconds))
        before = encode_json(self.state)
        scheduled = self.state.workflow_task.scheduled_event_id if self.state.workflow_task else 0
        started = draft.record(e.WorkflowTaskStarted(scheduled_event_id=scheduled)).event_id
        completed = draft.record(e.WorkflowTaskCompleted(scheduled_event_id=scheduled, started_event_id=started))
        self.lawful.completed_event_id = completed.event_id
        for _ in range(self.random.randrange(6)):
            self._record(draft, self.lawful.command())
        for _ in range(self.random.randrange(6)):
            answer = self.lawful.answer()
            if answer is not None:
                self._record(draft, answer)
        if close is None:
            draft.record(e.WorkflowTaskScheduled(task_queue="orders", start_to_close_timeout=timedelta(seconds=10)))
        else:
            draft.record(close)
        assert encode_json(self.state) == before, "a draft changed the state that it began from"
        self.state = draft.state
        self.events += draft.events
        for event in draft.events:
            self.rules.add(event)
        self.rules.end_of_commit(True)

    def _record(self, draft: TransitionBuilder, attributes: EventAttributes) -> None:
        self.lawful.recorded(attributes, draft.record(attributes).event_id)

    def check(self) -> None:
        rebuilt = rebuild(self.events, self.state.namespace)
        assert durable_part(rebuilt) == durable_part(self.state)
        assert state_difference(rebuilt, self.state) == ""
        assert [decode_json(encode_json(event), HistoryEvent) for event in self.events] == self.events
        commit = Commit(
            namespace=self.state.namespace,
            workflow_id=self.state.workflow_id,
            seq=self.state.seq,
            run_id=self.state.run_id,
            kind="Test",
            base=self.state.seq - 1,
            time=T0,
            nonce="n",
            events=tuple(self.events),
            state=self.state,
        )
        assert decode_commit(*encode_commit(commit)).state == self.state


@pytest.mark.parametrize("seed", range(40))
def test_a_rebuilt_history_is_the_state(seed: int):
    life = Life(seed)
    for _ in range(8):
        life.turn()
        life.check()
    life.turn(close=life.random.choice(CLOSES))
    life.check()
    assert not life.state.children and not life.state.updates
    assert not life.state.external_signals and not life.state.external_cancels


def test_every_kind_of_event_occurs():
    """Else the law above would be held to less than it says; the other kinds are made by the engine's own machine."""
    seen: set[type] = set()
    for seed in range(40):
        life = Life(seed)
        for _ in range(8):
            life.turn()
        seen |= {type(event.attributes) for event in life.events}
    made = (
        "ChildWorkflow",
        "StartChild",
        "External",
        "SignalExternal",
        "RequestCancelExternal",
        "WorkflowExecutionUpdate",
        "Upsert",
        "WorkflowProperties",
    )
    assert {kind for kind in get_args(EventAttributes) if kind.__name__.startswith(made)} <= seen
