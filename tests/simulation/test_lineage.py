"""What runs of resets have asked of others has one name, whichever of them is asked about it."""

from stepwell.api import events as e
from stepwell.api.enums import WorkflowTaskFailedCause
from stepwell.api.events import EventAttributes, HistoryEvent

from tests.simulation.environment import EPOCH
from tests.simulation.lineage import Lineage
from tests.simulation.test_history_rules import STARTED


def reset(run_id: str) -> e.WorkflowTaskFailed:
    return e.WorkflowTaskFailed(
        scheduled_event_id=2, started_event_id=3, cause=WorkflowTaskFailedCause.RESET_WORKFLOW, new_run_id=run_id
    )


def prefix(*bodies: EventAttributes) -> list[HistoryEvent]:
    return [HistoryEvent(event_id=number, event_time=EPOCH, attributes=body) for number, body in enumerate(bodies, 1)]


def test_the_run_that_recorded_an_event_asks_by_it() -> None:
    lineage = Lineage()
    lineage.begin("a", prefix(STARTED, reset("a")))
    lineage.begin("b", prefix(STARTED, reset("a"), reset("b")))
    assert [lineage.name("b", event_id)[0] for event_id in (1, 2, 3, 9)] == ["r", "a", "b", "b"]
    assert lineage.name("a", 3) == ("a", 3) != lineage.name("b", 3)
    assert lineage.name("other", 1) == ("other", 1)
    assert lineage.runs_with(("r", 1)) == ["a", "b"] and lineage.runs_with(("a", 2)) == ["b"]
