"""The rules between workflows find each kind of breach; a checker that never objects proves nothing."""

from typing import Any

import msgspec
import pytest
from stepwell.api.commands import CompleteWorkflowExecution, SignalExternalWorkflowExecution
from stepwell.api.common import WorkflowExecution
from stepwell.api.enums import SignalExternalWorkflowExecutionFailedCause as Cause

from stepwell_server.history.answers import Delivery, Discharge, ExternalDelivered
from stepwell_server.history.commit import Commit, ExecutionKey
from stepwell_server.history.requests import Signal
from tests.simulation.crossing_rules import CrossingRules
from tests.simulation.lineage import Lineage
from tests.simulation.violation import Violation
from tests.support.history_run import Run

TARGET = WorkflowExecution(workflow_id="target")
ASK = SignalExternalWorkflowExecution(execution=TARGET, signal_name="ship")
ASKED = 5
"""Event id of the first signal to another."""


class Pair:
    """A sender and its target, with every commit shown to the rules."""

    def __init__(self) -> None:
        self.heads: dict[ExecutionKey, Commit] = {}
        self.rules = CrossingRules(self.heads, Lineage())
        self.sender = Run(begun=False)
        self.target = Run(begun=False)
        for run, workflow_id in ((self.target, "target"), (self.sender, "sender")):
            run.start("of " + workflow_id, workflow_id=workflow_id)
            self.saw(run)

    def saw(self, run: Run, **changes: Any) -> None:
        assert run.last is not None
        state = run.last.state
        commit = Commit(
            namespace=state.namespace,
            workflow_id=state.workflow_id,
            seq=state.seq,
            run_id=state.run_id,
            kind="",
            time=run.now,
            nonce="",
            events=run.last.events,
            state=state,
            closed=run.last.closed,
        )
        commit = msgspec.structs.replace(commit, **changes)
        self.rules.add(commit, self.heads.get(commit.key))
        self.heads[commit.key] = commit

    def ask(self, *more: Any) -> None:
        self.sender.accept(ASK, *more)
        self.saw(self.sender)

    def deliver(self, request_id: str = f"of sender:{ASKED}") -> None:
        sender = WorkflowExecution(workflow_id="sender", run_id="of sender")
        self.target.step(Signal(run_id="", signal_name="ship", request_id=request_id, sender=sender))
        self.saw(self.target)

    def answer(self, cause: Cause | None = None) -> None:
        self.sender.step(ExternalDelivered(deliveries=(answered(cause),)))
        self.saw(self.sender, kind="ExternalDelivered")

    def close_target(self) -> None:
        self.target.terminate()
        self.saw(self.target)


def answered(cause: Cause | None = None) -> Delivery:
    return Delivery(
        run_id="of sender",
        initiated_event_id=ASKED,
        workflow_task_completed_event_id=4,
        execution=TARGET,
        cause=cause,
    )


NOT_FOUND = Cause.EXTERNAL_WORKFLOW_EXECUTION_NOT_FOUND


def test_what_is_lawful_passes() -> None:
    pair = Pair()
    pair.ask()
    pair.deliver()
    pair.answer()
    pair = Pair()
    pair.ask()
    pair.close_target()
    pair.answer(NOT_FOUND)
    pair = Pair()
    pair.ask(CompleteWorkflowExecution())
    pair.sender.start("of the next", workflow_id="sender")
    pair.saw(pair.sender)
    pair.deliver()
    pair.sender.step(Discharge(deliveries=(answered(),)))
    pair.saw(pair.sender, kind="Discharge")


def test_an_answer_before_its_delivery() -> None:
    pair = Pair()
    pair.ask()
    with pytest.raises(Violation, match="delivered, but it was not"):
        pair.answer()


def test_a_refusal_of_what_was_delivered_or_could_have_been() -> None:
    pair = Pair()
    pair.ask()
    with pytest.raises(Violation, match="given up"):
        pair.answer(NOT_FOUND)
    pair = Pair()
    pair.ask()
    pair.deliver()
    with pytest.raises(Violation, match="failed, but it was delivered"):
        pair.answer(NOT_FOUND)


def test_a_signal_that_arrives_twice_or_was_never_sent() -> None:
    pair = Pair()
    pair.ask()
    pair.target.accept()
    pair.saw(pair.target)
    pair.deliver()
    pair.target.accept()
    pair.saw(pair.target)
    pair.target.s.request_ids = ()
    with pytest.raises(Violation, match="second time"):
        pair.deliver()
    pair = Pair()
    pair.target.accept()
    pair.saw(pair.target)
    with pytest.raises(Violation, match="nobody sent"):
        pair.deliver()


def test_one_that_overtakes_another() -> None:
    pair = Pair()
    pair.ask(ASK)
    pair.target.accept()
    pair.saw(pair.target)
    pair.deliver(f"of sender:{ASKED + 1}")
    pair.target.accept()
    pair.saw(pair.target)
    with pytest.raises(Violation, match="overtaken"):
        pair.deliver()


def test_a_close_that_does_not_owe_and_a_debt_that_goes() -> None:
    pair = Pair()
    pair.sender.accept(ASK, CompleteWorkflowExecution())
    assert pair.sender.last is not None
    with pytest.raises(Violation, match="does not owe it"):
        pair.saw(pair.sender, state=msgspec.structs.replace(pair.sender.last.state, owed=()))
    pair = Pair()
    pair.ask(CompleteWorkflowExecution())
    pair.sender.start("of the next", workflow_id="sender")
    assert pair.sender.last is not None
    with pytest.raises(Violation, match="owed no more"):
        pair.saw(pair.sender, state=msgspec.structs.replace(pair.sender.last.state, owed=()))
