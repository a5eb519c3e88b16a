"""Each scene ends as it should, and finds the faults that are planted into what it is about: with one play of it."""

import pytest

from tests.simulation.aws import plants, scenes
from tests.simulation.aws.stage import Scene, play
from tests.simulation.plants import Plant
from tests.simulation.violation import Violation

SCENES: dict[Scene, dict[Plant, str]] = {
    scenes.a_write_lands_behind_the_first_firing: {plants.writes_not_waited_for: "has not ended"},
    scenes.a_write_lands_behind_the_first_delivery: {plants.writes_not_waited_for: "has not ended"},
    scenes.a_writer_stands_still_between_a_row_and_its_write: {plants.writers_never_arm_again: "has not ended"},
    scenes.a_server_stands_still_between_the_row_and_the_start_of_an_attempt: {
        plants.writers_never_arm_again: "has not timed out"
    },
    scenes.a_record_lands_when_its_writer_has_given_up: {plants.writers_never_arm_again: "nobody was woken"},
    scenes.a_write_lands_minutes_behind_its_deadline: {plants.late_writes_left_alone: "has not ended"},
    scenes.a_reader_of_the_stream_dies_before_it_has_handled: {
        plants.records_done_before_they_are_handled: "is in no list"
    },
    scenes.a_row_appears_behind_what_was_read: {plants.young_rows_skipped: "has not ended"},
    scenes.a_slow_clock_arms_minutes_behind_what_was_read: {
        plants.young_rows_skipped: "has not ended",
        plants.slow_clocks_forgotten: "has not ended",
    },
    scenes.who_catches_up_dies_before_it_has_fired: {
        plants.rows_done_before_they_are_fired: "has not ended",
        plants.cursors_not_taken_over: "no call .* came",
    },
    scenes.a_tick_dies_before_it_has_sent: {plants.rows_done_before_they_are_sent: "was not scheduled"},
    scenes.a_container_arms_behind_the_last_sweeper: {plants.swept_partitions_taken_at_once: "has not ended"},
    scenes.a_collector_comes_between_an_object_and_its_write: {
        plants.young_objects_collected: "which is not there",
        plants.put_acknowledged_before_it_is_durable: "is not there",
    },
    scenes.a_collector_comes_by_while_an_activity_goes_on_for_days: {
        plants.items_overlooked_by_the_collector: "is lost"
    },
    scenes.two_processes_change_an_item_at_the_same_time: {plants.items_put_on_any_version: "was put over version"},
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_scene_ends_as_it_should(scene: Scene) -> None:
    play(scene)


@pytest.mark.parametrize(
    ("scene", "plant", "finding"),
    [(scene, plant, finding) for scene, found in SCENES.items() for plant, finding in found.items()],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_scene_finds_what_is_planted(scene: Scene, plant: Plant, finding: str) -> None:
    with plant(), pytest.raises(Violation, match=finding):
        play(scene)
