"""The rules about standing updates find what vanishes and what is said too early."""

import msgspec
import pytest
from stepwell.api.commands import AcceptUpdate, RejectUpdate
from stepwell.api.enums import WorkflowUpdateStage
from stepwell.api.failures import Failure
from stepwell.api.requests import UpdateWorkflowResponse
from stepwell.api.updates import UpdateOutcome

from stepwell_server.history.commit import Commit
from stepwell_server.history.requests import AdmitUpdate
from tests.simulation.update_rules import StandingUpdates
from tests.simulation.violation import Violation
from tests.support.history_run import Run
from tests.support.lawful_events import update_request

REJECT = RejectUpdate(update_id="u", failure=Failure(message="no"))


class Watched:
    """A run with an admitted update ``u``, its commits shown to the rules."""

    def __init__(self) -> None:
        self.rules = StandingUpdates()
        self.head: Commit | None = None
        self.run = Run()
        self.saw()
        self.run.accept()
        self.saw()
        self.run.step(AdmitUpdate(run_id="", request=update_request("u")))
        self.saw()

    def saw(self, *, less: str = "") -> None:
        last = self.run.last
        assert last is not None
        state = last.state
        if less:
            state = msgspec.structs.replace(state, updates={})
        commit = Commit(
            namespace=state.namespace,
            workflow_id=state.workflow_id,
            seq=state.seq,
            run_id=state.run_id,
            kind="",
            time=self.run.now,
            nonce="",
            events=last.events,
            state=state,
            closed=last.closed,
            rejected=last.rejected,
        )
        self.rules.add(commit, self.head)
        self.head = commit

    def say(self, stage: WorkflowUpdateStage, outcome: UpdateOutcome | None = None) -> None:
        self.rules.check_answer(UpdateWorkflowResponse(run_id="run-1", update_id="u", stage=stage, outcome=outcome))


def test_what_is_lawful_passes() -> None:
    watched = Watched()
    watched.say(WorkflowUpdateStage.ADMITTED)
    watched.run.accept(AcceptUpdate(update_id="u"))
    watched.saw()
    watched.say(WorkflowUpdateStage.ACCEPTED)
    watched.run.terminate()
    watched.saw()
    watched.say(WorkflowUpdateStage.COMPLETED, UpdateOutcome(failure=Failure(message="its run is over")))


def test_one_that_vanishes_is_found() -> None:
    watched = Watched()
    watched.run.signal()
    with pytest.raises(Violation, match="no longer there"):
        watched.saw(less="u")


def test_a_rejection_is_its_end() -> None:
    watched = Watched()
    watched.run.complete(REJECT)
    watched.saw()
    watched.say(WorkflowUpdateStage.COMPLETED, UpdateOutcome(failure=REJECT.failure))


@pytest.mark.parametrize(
    ("stage", "outcome"),
    [
        (WorkflowUpdateStage.ACCEPTED, None),
        (WorkflowUpdateStage.COMPLETED, None),
        (WorkflowUpdateStage.COMPLETED, UpdateOutcome()),
        (WorkflowUpdateStage.COMPLETED, UpdateOutcome(failure=Failure(message="no"))),
    ],
)
def test_what_is_said_too_early_is_found(stage: WorkflowUpdateStage, outcome: UpdateOutcome | None) -> None:
    with pytest.raises(Violation, match="which it is not"):
        Watched().say(stage, outcome)
