"""LC-06: the rate of runs of one workflow id, as one time in the state."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from stepwell.api.errors import ResourceExhausted
from stepwell.api.requests import StartWorkflowRequest

from stepwell_server.common.settings import EngineSettings
from stepwell_server.history.machines import pace, start
from stepwell_server.history.paces import pace_of
from stepwell_server.history.requests import NO_PACE, Pace, Start
from stepwell_server.history.state import ExecutionState

T0 = datetime(2026, 12, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PACE = Pace(every=SECOND, at_once=2)


def begun(paid_until: datetime | None) -> ExecutionState:
    asked = StartWorkflowRequest(workflow_id="order-1", workflow_type="order", task_queue="q")
    state = start.start(None, Start(run_id="run-1", start=asked), T0).state
    return msgspec.structs.replace(state, starts_paid_until=paid_until)


def test_so_many_at_once_and_then_one_at_a_time() -> None:
    first = pace.admit(None, PACE, T0)
    assert first == T0 + SECOND
    second = pace.admit(begun(first), PACE, T0)
    assert second == T0 + 2 * SECOND
    for moment, wait in ((T0, "1.000"), (T0 + 0.9 * SECOND, "0.100")):
        with pytest.raises(ResourceExhausted, match="more often than 1 times a second, with 2 at once") as refused:
            pace.admit(begun(second), PACE, moment)
        assert refused.value.details["retry_after"] == wait
    assert pace.admit(begun(second), PACE, T0 + SECOND) == T0 + 3 * SECOND
    later = T0 + 60 * SECOND
    assert pace.admit(begun(second), PACE, later) == later + SECOND


def test_starts_that_are_not_held_to_it_leave_what_is_used() -> None:
    used = T0 + 2 * SECOND
    assert pace.admit(begun(used), NO_PACE, T0) == used
    assert pace.admit(begun(used), NO_PACE, used) is None
    assert pace.admit(begun(None), NO_PACE, T0) is None


def test_what_a_clock_ahead_has_written_holds_up_no_longer_than_a_full_bucket() -> None:
    with pytest.raises(ResourceExhausted) as refused:
        pace.admit(begun(T0 + 3600 * SECOND), PACE, T0)
    assert refused.value.details["retry_after"] == "1.000"


@pytest.mark.parametrize(("rate", "at_once"), [(0.1, 1), (1.0, 2), (25.0, 50)])
def test_the_rate_of_an_installation(rate: float, at_once: int) -> None:
    made = pace_of(replace(EngineSettings(), id_starts_per_second=rate))
    assert (made.every, made.at_once) == (SECOND / rate, at_once)
    assert pace_of(EngineSettings()) == NO_PACE
