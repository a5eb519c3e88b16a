"""The pages on costs and capacity are what their scripts make of the counts and prices in the repository."""

from pathlib import Path

import pytest

from benchmarks import capacity, capacity_model, cost_model, cost_page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_of_costs_is_that_of_its_script() -> None:
    assert (DOCS / "cost.md").read_text(encoding="utf-8") == cost_page.page(), "run python benchmarks/cost.py"


def test_the_page_of_capacity_is_that_of_its_script() -> None:
    assert (DOCS / "capacity.md").read_text(encoding="utf-8") == capacity.page(), "run python benchmarks/capacity.py"


@pytest.mark.parametrize("place", cost_model.PLACES)
def test_targets_of_steps_are_met(place: str) -> None:
    assert cost_model.step(place, "fused").total <= cost_page.STEP_TARGETS[place]


def test_the_target_of_an_idle_installation_is_met() -> None:
    assert sum(each.month for each in cost_model.idle()) <= cost_page.IDLE_TARGET == 2.00


def test_dollars_by_hand() -> None:
    """A step of 2 units written and as many marked, 1 read, 1 request."""
    counts = {
        "calls": {"exec put_item": 1, "exec update_item": 1, "exec query": 1},
        "writes": {"exec put_item": 2, "exec update_item": 2},
        "reads": {"exec query": 1.0},
        "stored": {"exec put_item": 1_900, "exec update_item": 1_900},
        "api": {"Respond": 1},
        "sqs": {"send_message_batch": 3},
        "functions": {"feed": 1},
    }
    functions = cost_model.dollars("functions", counts)
    assert functions.writes == functions.retention == pytest.approx(1.25)
    assert functions.reads == pytest.approx(0.125)
    assert functions.queues == pytest.approx(1.2)
    assert functions.api == 1.0
    assert functions.processes == pytest.approx(0.2 + 0.02 * 13.3334 + 0.2 + 0.02 * 0.5 * 13.3334)
    assert functions.storage == pytest.approx(2.0 * 0.25 * 7 / 30.4)
    container = cost_model.dollars("container", counts)
    assert (container.api, container.writes) == (0.0, functions.writes)
    assert container.processes == pytest.approx(0.04937 / 3_600 / 150 * 1e6)


def test_larger_events_need_more_units_and_fused_steps_fewer_than_queued_ones() -> None:
    fused, queued = (capacity_model.run("functions", mode, event_bytes=1_024) for mode in ("fused", "queued"))
    assert capacity_model.run("functions", "fused", event_bytes=0).writes < fused.writes < queued.writes
    assert fused.api_requests < queued.api_requests
    assert capacity_model.cells("container", "fused") <= capacity_model.cells("container", "queued")
